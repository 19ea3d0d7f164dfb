//! The licences of all crates in a build, as their authors want them passed on.

use std::{collections::BTreeMap, fmt::Write, fs};

use anyhow::{Context, Result};

use super::packages::{Id, Package, Packages};

/// How files with a licence or a notice are called.
const NAMES: [&str; 5] = ["license", "licence", "copying", "notice", "copyright"];

/// Each text once, below the crates that have it.
pub(super) fn text(packages: &Packages) -> Result<String> {
    let mut text =
        "Programs of Weir contain these crates. Below each group of crates stands a text that their authors \
                    want passed on.\n"
            .to_owned();
    let mut texts = BTreeMap::<String, Vec<&Id>>::new();
    // Those of this repository are under the licence beside this file.
    for (id, package) in packages.0.iter().filter(|(_, package)| package.checksum.is_some()) {
        write!(text, "\n{} {}: {}", id.0, id.1, package.licence)?;
        for kept in kept(package)? {
            texts.entry(kept).or_default().push(id);
        }
    }
    for (kept, ids) in &texts {
        let names: Vec<_> = ids.iter().map(|(name, version)| format!("{name} {version}")).collect();
        write!(text, "\n\n{}\n{}\n\n{}", "=".repeat(80), names.join(", "), kept.trim_end())?;
    }
    Ok(text + "\n")
}

/// The texts of one crate.
fn kept(package: &Package) -> Result<Vec<String>> {
    let entries = fs::read_dir(&package.directory)
        .with_context(|| format!("cannot read `{}`", package.directory.display()))?;
    let mut texts = Vec::new();
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if NAMES.iter().any(|known| name.starts_with(known)) && entry.file_type()?.is_file() {
            texts.push(String::from_utf8_lossy(&fs::read(entry.path())?).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}
