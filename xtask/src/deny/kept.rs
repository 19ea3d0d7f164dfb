//! The advisories about our dependencies in one file, for machines that cannot reach their database.

use std::{collections::BTreeSet, path::Path, process::Command};

use anyhow::{Context, Result};

use super::{DATABASE_URL, FETCH_TIMEOUT_S, MANIFESTS, named_clone};
use crate::{
    files,
    run::{output, root, run},
};

/// The file, from the root.
pub(super) const FILE: &str = "advisories.txt";

/// Stands between two advisories in the file.
const BETWEEN: &str = "\n%%\n";

/// Writes the file anew, of the clone that is named or else of the database itself: of each advisory about a package of a
/// lock file, its data and its title.
pub(crate) fn update() -> Result<()> {
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let from = named_clone()?.map_or_else(|| DATABASE_URL.into(), std::path::PathBuf::into_os_string);
    let mut clone = Command::new("timeout");
    clone.arg(FETCH_TIMEOUT_S.to_string()).args(["git", "clone", "--quiet", "--depth", "1"]).arg(from);
    run(clone.arg(directory.path()).env("GIT_TERMINAL_PROMPT", "0"))?;
    let mut packages = BTreeSet::new();
    for manifest in MANIFESTS {
        let lock = files::read(root()?.join(manifest).with_file_name("Cargo.lock"))?;
        let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        packages.extend(names.map(ToOwned::to_owned));
    }
    let date = output(git(directory.path()).args(["log", "-1", "--format=%cs"]))?;
    let mut text = format!("Of {DATABASE_URL}, {}. Written by `cargo xtask advisories`.", date.trim());
    let mut count = 0;
    for package in packages {
        let Ok(found) = std::fs::read_dir(directory.path().join("crates").join(package)) else { continue };
        let mut paths = found.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
        paths.sort();
        for path in paths {
            let advisory = files::read(&path)?;
            // What follows the title tells people more, and the check nothing.
            let title = advisory.lines().find(|line| line.starts_with("# ")).context("no title")?;
            let data = advisory.split("\n```\n").next().unwrap_or_default();
            text.push_str(&format!("{BETWEEN}{data}\n```\n\n{title}"));
            count += 1;
        }
    }
    files::write(&root()?.join(FILE), text + "\n")?;
    eprintln!("{FILE}: {count} advisories");
    Ok(())
}

/// Makes a database of the file: a repository in this directory. Returns the file's first line, which says of which day it
/// is.
pub(super) fn database(directory: &Path) -> Result<String> {
    let text = files::read(root()?.join(FILE))?;
    for advisory in text.split(BETWEEN).skip(1) {
        let value = |key: &str| {
            let line = advisory.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
            let found = line.and_then(|rest| rest.strip_suffix('"'));
            // It is a part of a path.
            let is_name =
                |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
            found.filter(is_name).with_context(|| format!("no `{key}` in {advisory}"))
        };
        let of_package = directory.join("crates").join(value("package")?);
        files::make_directory(&of_package)?;
        files::write(&of_package.join(format!("{}.md", value("id")?)), format!("{advisory}\n"))?;
    }
    run(git(directory).args(["init", "--quiet", "--initial-branch", "main"]))?;
    run(git(directory).args(["add", "."]))?;
    let author = ["-c", "user.name=weir", "-c", "user.email=weir@localhost"];
    run(git(directory).args(author).args(["commit", "--quiet", "--message", "The kept advisories"]))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

fn git(directory: &Path) -> Command {
    let mut git = Command::new("git");
    git.arg("-C").arg(directory);
    git
}
