//! Hashes of a group's inputs: of the files as they are, committed or not.

use std::{
    collections::BTreeMap,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::run::output;

/// Digits of a hash in the record.
const DIGITS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Inputs(pub(super) BTreeMap<String, String>);

impl Inputs {
    /// Hashes each file or folder. Ignored files do not count; new ones do.
    ///
    /// # Errors
    /// If an input holds no file. It has moved, and the group must name its new place.
    pub(super) fn of(root: &Path, inputs: &[&str]) -> Result<Self> {
        let hash = |input: &&str| Ok(((*input).to_owned(), hash(root, input)?));
        inputs.iter().map(hash).collect::<Result<_>>().map(Self)
    }

    /// The inputs that have changed, and those added or removed.
    pub(super) fn changed_since(&self, kept: &Self) -> Vec<String> {
        let mut names: Vec<_> = self.0.keys().chain(kept.0.keys()).collect();
        names.sort();
        names.dedup();
        let changed = names.into_iter().filter(|name| self.0.get(*name) != kept.0.get(*name));
        changed.map(|name| format!("`{name}`")).collect()
    }
}

/// Git's hash of names and contents.
fn hash(root: &Path, input: &str) -> Result<String> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(root);
        git
    };
    let listed =
        output(&mut git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", input]))?;
    let mut files: Vec<_> = listed.split('\0').filter(|file| root.join(file).is_file()).collect();
    files.sort_unstable();
    files.dedup();
    ensure!(
        !files.is_empty(),
        "`{input}`, an input of a group, holds no file: if it moved, `xtask/src/full.rs` is to say whereto"
    );
    let blobs = output(git(&["hash-object", "--no-filters", "--"]).args(&files))?;
    let lines: String =
        files.iter().zip(blobs.lines()).map(|(file, blob)| format!("{blob} {file}\n")).collect();

    let mut whole = git(&["hash-object", "--stdin"]);
    let mut whole = whole.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("cannot run `git`")?;
    whole.stdin.take().context("git takes no input")?.write_all(lines.as_bytes())?;
    let hashed = whole.wait_with_output()?;
    ensure!(hashed.status.success(), "`git hash-object` failed: {}", hashed.status);
    String::from_utf8_lossy(&hashed.stdout).get(..DIGITS).map(str::to_owned).context("git printed no hash")
}
