//! `weir inspect`: what a component imports, exports and needs, or what an artifact is.

mod measured;
pub(super) mod sizes;

use std::path::PathBuf;

use clap::ValueHint;
use serde_json::json;
use weir_host::{
    component::{ArtifactFacts, artifact_facts},
    openrpc::{Document, Role},
};

use self::sizes::Sizes;
use crate::{
    exit::Usage,
    output::{self, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
For an artifact of `weir compile`, it is what the artifact says of itself: the target, the address space and
the key. For a component it is TOML. Replace each FILL-IN with the host's side, and remove what the extension must not
have. Nothing of the component is run. With --measured, it has limits with room over those that were
measured: 1.5 times the peak of memory, and twice the fuel of the dearest message.

Examples:
  weir inspect storage.wasm
  weir inspect storage.wasm --measured .weir/measured.json >> conf.d/storage.toml
  weir inspect storage.wasm --sizes
  weir inspect storage.cwasm
  weir inspect --json storage.wasm | jq .imports")]
pub(crate) struct Args {
    /// The component, or an artifact
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Add limits, from the output of `weir limits --json` while it ran; `weir test` keeps that
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    measured: Option<PathBuf>,
    /// Show the largest functions, and how much data and custom sections take
    #[arg(long)]
    sizes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    if let Some(artifact) = artifact_facts(&args.file)? {
        return show_artifact(&args, &artifact);
    }
    let found = weir_host::component::inspect(&args.file)?;
    let (notes, mut stanza) = (found.notes(), found.stanza());
    if let Some(file) = &args.measured {
        let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
        let id = found.manifest.as_ref().map_or(&*stem, |manifest| manifest.id.as_str());
        stanza.push_str(&measured::limits(file, id)?);
    }
    let sizes = args.sizes.then(|| sizes::of(&args.file)).transpose()?;
    if args.json {
        let mut json = serde_json::to_value(&found)?;
        if let Some(json) = json.as_object_mut() {
            json.insert("notes".to_owned(), notes.into());
            json.insert("stanza".to_owned(), stanza.into());
            if let Some(sizes) = sizes {
                json.insert("sizes".to_owned(), serde_json::to_value(sizes)?);
            }
        }
        return output::json(&json);
    }
    let mut text = format!("# {}\n", printable(&args.file.display().to_string()));
    let mut fact = |name: &str, value: &str| text.push_str(&format!("# {name:<9}{}\n", printable(value)));
    if let Some(manifest) = &found.manifest {
        fact("version", &manifest.version);
        if let Some(since) = &manifest.data_since {
            fact("data", &format!("for {since} and later"));
        }
    }
    fact("size", &format!("{} bytes", found.bytes));
    fact("sha-256", &found.sha256.to_string());
    for (what, names) in [("imports", &found.imports), ("exports", &found.exports)] {
        for (index, name) in names.iter().enumerate() {
            fact(if index == 0 { what } else { "" }, name);
        }
    }
    for (what, role) in [("serves", Role::Provider), ("calls", Role::Caller)] {
        let contracts = found.contracts.iter().filter(|document| document.role == role);
        for (index, document) in contracts.enumerate() {
            fact(if index == 0 { what } else { "" }, &in_short(document));
        }
    }
    for note in notes {
        fact("note", &note);
    }
    for (index, line) in sizes.iter().flat_map(Sizes::lines).enumerate() {
        fact(if index == 0 { "sizes" } else { "" }, &line);
    }
    output::write(format!("{text}\n{stanza}").as_bytes())
}

fn show_artifact(args: &Args, artifact: &ArtifactFacts) -> anyhow::Result<()> {
    if args.sizes || args.measured.is_some() {
        return Err(
            Usage("`--sizes` and `--measured` need the component, not its artifact".to_owned()).into()
        );
    }
    let ArtifactFacts { bytes, sha256, target, key, is_signed } = artifact;
    let (triple, class) = (target.triple(), target.address_class().name());
    if args.json {
        return output::json(&json!({
            "bytes": bytes,
            "sha256": sha256.to_string(),
            "target": triple,
            "address-space": class,
            "key": key.to_string(),
            "signed": is_signed,
        }));
    }
    let signed = if *is_signed { "" } else { ", but the file was changed since" };
    output::write(
        format!(
            "# {}\n# size           {bytes} bytes\n# sha-256        {sha256}\n# target         {}\n\
             # address space  {class}\n# signed with    {key}{signed}\n",
            printable(&args.file.display().to_string()),
            printable(&triple),
        )
        .as_bytes(),
    )
}

/// Shows a contract with its parts by name: `settings@1: get, set; topics settings.changed.>`.
fn in_short(document: &Document) -> String {
    let parts = [
        ("", document.methods.iter().map(|method| &*method.name).collect::<Vec<_>>()),
        ("topics ", document.topics.iter().map(|topic| &*topic.pattern).collect()),
        ("queues ", document.queues.iter().map(|queue| &*queue.name).collect()),
    ];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let parts: Vec<String> = parts.map(|(what, names)| format!("{what}{}", names.join(", "))).collect();
    format!("{}: {}", document.contract, parts.join("; "))
}
