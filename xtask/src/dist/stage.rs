//! The tree that the tarball and the Debian package hold, as `/usr` has it, with `etc` beside.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    build::{self, Build},
    packages::{self, Packages},
};
use crate::{
    files,
    run::{cargo, root, run},
};

/// The metadata for cargo-deb in `cli/Cargo.toml` names this folder.
const FOLDER: &str = "stage";

/// Files of the repository, and their places. `PACKAGE` stands for the name of the package.
const FILES: [(&str, &str); 6] = [
    ("packaging/weir.toml", "etc/weir/weir.toml"),
    ("packaging/systemd/weir.service", "lib/systemd/system/weir.service"),
    ("packaging/systemd/weir-metrics.service", "lib/systemd/system/weir-metrics.service"),
    ("packaging/systemd/weir.conf", "lib/sysusers.d/weir.conf"),
    ("LICENSE", "share/doc/PACKAGE/LICENSE"),
    ("CHANGELOG.md", "share/doc/PACKAGE/CHANGELOG.md"),
];

/// Completions of shells, which are made of the command line, and their places.
const COMPLETIONS: [(&str, &str); 3] = [
    ("weir.bash", "share/bash-completion/completions/weir"),
    ("weir.fish", "share/fish/vendor_completions.d/weir.fish"),
    ("_weir", "share/zsh/vendor-completions/_weir"),
];

/// A file that only belongs to a `weir` with the feature `otlp`, and its place.
const OTLP_UNIT: (&str, &str) =
    ("packaging/systemd/weir-otlp.service", "lib/systemd/system/weir-otlp.service");

/// The extensions that need nothing but a grant, with their files for `conf.d`. Only a Main with a compiler runs them.
const EXTENSIONS: [&str; 2] = ["device-info", "echo"];

/// Features, and the commands that are there only with them.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("compiler", &["new", "build", "dev", "test", "compile", "keygen", "package", "sign"]),
    ("otlp", &["otlp"]),
    ("packages", &["verify", "add", "remove", "upgrade", "outdated"]),
    ("store", &["store"]),
    ("tools", &["top", "describe", "generate", "check-contract", "inspect", "symbolise"]),
];

/// Builds what belongs in the tree, and makes it.
pub(super) fn fill(build: &Build, packages: &Packages, to: &Path) -> Result<PathBuf> {
    let programs = build.run()?;
    let tree = to.join(FOLDER);
    files::clear(&tree)?;
    let root = root()?;
    let place = |place: &str| tree.join(place.replace("PACKAGE", build.package()));
    for program in &programs {
        files::copy(program, &place("bin").join(program.file_name().unwrap_or_default()))?;
    }
    for (from, to) in FILES.iter().chain(Some(&OTLP_UNIT).filter(|_| build.has("otlp"))) {
        files::copy(&root.join(from), &place(to))?;
    }
    let made = manual(to)?;
    for (from, to) in COMPLETIONS {
        files::copy(&made.join("completions").join(from), &place(to))?;
    }
    for page in files(&made.join("man"))? {
        let name = page.file_name().unwrap_or_default().to_string_lossy();
        if !is_missing(build, &name) {
            files::copy(&page, &place("share/man/man1").join(&*name))?;
        }
    }
    for page in
        files(&root.join("docs"))?.iter().filter(|page| page.extension().is_some_and(|end| end == "md"))
    {
        files::copy(page, &place("share/doc/PACKAGE/docs").join(page.file_name().unwrap_or_default()))?;
    }
    let licences = place("share/doc/PACKAGE/THIRD-PARTY-LICENSES.txt");
    files::write(&licences, packages::licences(packages)?)?;
    for (from, name) in build.target.licences()? {
        files::copy(&from, &place("share/doc/PACKAGE").join(name))?;
    }
    for extension in EXTENSIONS.iter().filter(|_| build.compiles()) {
        let folder = place("share/weir/extensions");
        files::copy(&build::extension(extension)?, &folder.join(format!("{extension}.wasm")))?;
        let stanza = format!("{extension}.toml");
        files::copy(&root.join("packaging/extensions").join(&stanza), &folder.join(&stanza))?;
    }
    Ok(tree)
}

/// Makes the manual pages and completions of a `weir` with all features, and returns their folder.
fn manual(to: &Path) -> Result<PathBuf> {
    let made = to.join("manual");
    files::clear(&made)?;
    let mut test = cargo(["test", "--workspace", "--bin", "weir", "--quiet", "manual_pages"])?;
    run(test.env("WEIR_MANUAL", &made))?;
    Ok(made)
}

/// Whether a manual page is of a command that the build does not have.
fn is_missing(build: &Build, page: &str) -> bool {
    let missing =
        COMMANDS.iter().filter(|(feature, _)| !build.has(feature)).flat_map(|(_, commands)| *commands);
    missing.into_iter().any(|command| {
        let rest = page.strip_prefix("weir-").and_then(|rest| rest.strip_prefix(command));
        rest.is_some_and(|rest| rest.starts_with(['.', '-']))
    })
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    entries.map(|entry| Ok(entry?.path())).collect()
}
