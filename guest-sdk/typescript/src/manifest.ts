// What an extension is and needs, stated once. It travels inside the finished component. It grants nothing: the operator's
// file decides.

import { Contract, type Queue, type Topic } from "./contract.js";
import { isContract, isId, isPattern, repeated } from "./names.js";

/** A directory that an extension opens, by its path inside the sandbox. */
export interface Dir {
  guest: string;
  /** `ro` by default. */
  mode?: "ro" | "rw";
}

/** What an extension is and needs. */
export interface Manifest {
  /** The id that the author suggests. Default: the name of the package. */
  id?: string;
  /** Default: that of the package. */
  version?: string;
  /** The oldest version of the extension that can read what this one writes into its stores, as in `1.2.0`. Default: all can. */
  dataSince?: string;
  /** Contracts that it serves. */
  fulfills?: Contract[];
  /** Contracts that it cannot do without: their owners start before it. */
  requires?: (Contract | string)[];
  /** Contracts that it calls if they are available. */
  wants?: (Contract | string)[];
  /** Topics that it publishes, and patterns of them. */
  publishes?: (Topic<any> | string)[];
  /** Topics that it subscribes to, and patterns of them. */
  subscribes?: (Topic<any> | string)[];
  /** Queues that it puts jobs into. */
  puts?: (Queue<any> | string)[];
  /** Queues that it takes jobs from. */
  takes?: (Queue<any> | string)[];
  /** Directories that it opens. */
  dirs?: Dir[];
  /** Environment variables that it reads. */
  env?: string[];
}

/** The manifest with names in place of values: the content of the section `weir:manifest`. */
export interface ManifestSection {
  schema: 1;
  id: string;
  version: string;
  "data-since"?: string;
  fulfills: string[];
  requires: string[];
  wants: string[];
  publishes: string[];
  subscribes: string[];
  puts: string[];
  takes: string[];
  grants: { dirs: { guest: string; mode: "ro" | "rw" }[]; env: string[]; net: string[] };
}

/** Throws if a name is one that Main would refuse. */
export function manifestSection(manifest: Manifest, defaults: { id: string; version: string }): ManifestSection {
  const { id = defaults.id, version = defaults.version } = manifest;
  const names = (items: readonly unknown[] = []) => items.map(String);
  const section: ManifestSection = {
    schema: 1,
    id,
    version,
    ...(manifest.dataSince === undefined ? {} : { "data-since": manifest.dataSince }),
    fulfills: names(manifest.fulfills),
    requires: names(manifest.requires),
    wants: names(manifest.wants),
    publishes: names(manifest.publishes),
    subscribes: names(manifest.subscribes),
    puts: names(manifest.puts),
    takes: names(manifest.takes),
    grants: {
      dirs: (manifest.dirs ?? []).map(({ guest, mode = "ro" }) => ({ guest, mode })),
      env: manifest.env ?? [],
      net: [],
    },
  };
  const faults = [
    ...(isId(id) && id !== "main"
      ? []
      : [
          `\`id\` is \`${id}\`: it must be 1 to 64 of \`a-z\`, \`0-9\` and \`-\`, starting with a letter, and not \`main\``,
        ]),
    ...wrong(section, ["fulfills", "requires", "wants"], isContract, "contract, such as `settings@1`"),
    ...wrong(section, ["publishes", "subscribes"], isPattern, "topic or pattern, such as `settings.changed.>`"),
    ...wrong(section, ["puts", "takes"], isId, "name of a queue, such as `uploads`"),
    ...section.grants.dirs
      .filter(({ guest }) => !guest.startsWith("/"))
      .map(({ guest }) => `\`dirs\` has \`${guest}\`, which is no absolute path`),
  ];
  if (faults.length > 0) throw new TypeError(`the manifest of \`${id}\` is wrong: ${faults.join("; ")}`);
  return section;
}

/** The content of the section `weir:contracts`: one document a line. Throws if Main would refuse it. */
export function contractsSection(manifest: Manifest): string {
  const callers = [...(manifest.requires ?? []), ...(manifest.wants ?? [])].filter((item) => item instanceof Contract);
  const described = [
    ...(manifest.fulfills ?? []).map((contract) => ({ contract, role: "provider" as const })),
    ...callers.map((contract) => ({ contract, role: "caller" as const })),
  ];
  const [twice] = repeated((manifest.fulfills ?? []).map(String));
  if (twice !== undefined) throw new TypeError(`the contract \`${twice}\` is described twice`);
  if (described.length > MOST_DOCUMENTS)
    throw new TypeError(`the extension describes ${described.length} contracts, of at most ${MOST_DOCUMENTS}`);
  const section = described.map(({ contract, role }) => `${JSON.stringify(contract.document(role))}\n`).join("");
  const { length } = new TextEncoder().encode(section);
  if (length > MOST_DESCRIBED)
    throw new TypeError(`the descriptions of the contracts take ${length} bytes, of at most ${MOST_DESCRIBED}`);
  return section;
}

/** Contracts that an extension describes. */
const MOST_DOCUMENTS = 64;

/** Bytes of the descriptions of an extension. */
const MOST_DESCRIBED = 64 * 1024;

function wrong<K extends keyof ManifestSection>(
  section: ManifestSection,
  keys: K[],
  fits: (name: string) => boolean,
  kind: string,
): string[] {
  return keys.flatMap((key) =>
    (section[key] as unknown as string[])
      .filter((name) => !fits(name))
      .map((name) => `\`${key}\` has \`${name}\`, which is no ${kind}`),
  );
}
