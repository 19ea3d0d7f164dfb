//! What would be published, held against `packaging/names.toml` before a release: names, versions, manifests, the
//! changelog, and every file of every package.
//!
//! A finding is one line: the package or page, what is wrong, and what to do.

mod changelog;
mod crates;
mod others;
mod pages;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
    iter,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::{
    files, first_extension,
    run::{output, root, target_dir},
};

const VERSION: &str = env!("CARGO_PKG_VERSION");

const NAMES: &str = "packaging/names.toml";

/// The directory of all packages, below the target directory. Cargo puts crates into `package` there.
const PACKAGES: &str = "release-packages";

/// The golden lists: for each registry, the files of each package.
const LISTS: &str = "packaging/files.json";

type Lists = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Arguments {
    /// Make the packages for all registries, and print what must be mended before a release.
    #[arg(long)]
    check: bool,
    /// Accept the files that are in the packages now, and check all else.
    #[arg(long)]
    bless: bool,
}

pub(crate) fn release(arguments: &Arguments) -> Result<()> {
    let mut release = Release::begin(arguments.bless)?;
    release.crates(true)?;
    release.others()?;
    release.end()
}

/// Checks all, and has an author of each language begin with the packages.
pub(crate) fn full() -> Result<Vec<String>> {
    release(&Arguments { check: true, bless: false })?;
    let names = names()?;
    let crates: Vec<_> = names.crates.keys().map(String::as_str).collect();
    first_extension::from_packages(&crates, &target_dir()?.join(PACKAGES))?;
    Ok(Vec::new())
}

/// Checks all that needs neither the network nor other languages' tools.
pub(crate) fn check_crates() -> Result<()> {
    let mut release = Release::begin(false)?;
    release.crates(false)?;
    release.end()
}

/// What is published: for each registry, the folders of packages by their names.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Names {
    published: bool,
    crates: BTreeMap<String, PathBuf>,
    npm: BTreeMap<String, PathBuf>,
    pypi: BTreeMap<String, PathBuf>,
    go: BTreeMap<String, PathBuf>,
}

/// A check that is under way.
struct Release {
    names: Names,
    /// Whether the golden lists are written instead of compared.
    bless: bool,
    lists: Lists,
    findings: Vec<String>,
}

impl Release {
    fn begin(bless: bool) -> Result<Self> {
        let lists = lists()?;
        let mut release = Self { names: names()?, bless, lists, findings: Vec::new() };
        let changelog = changelog::faults(&files::read("CHANGELOG.md")?, VERSION);
        release.findings.extend(changelog.into_iter().map(|fault| format!("CHANGELOG.md: {fault}")));
        release.findings.extend(pages::faults(&release.names)?);
        Ok(release)
    }

    fn end(self) -> Result<()> {
        if self.bless {
            files::write(&root()?.join(LISTS), serde_json::to_string_pretty(&self.lists)? + "\n")?;
        }
        if !self.findings.is_empty() {
            bail!("{} to mend before a release:\n{}", self.findings.len(), self.findings.join("\n"));
        }
        Ok(())
    }

    fn find(&mut self, package: &str, what: impl Display, to_do: impl Display) {
        self.findings.push(format!("{package}: {what}: {to_do}"));
    }

    /// Whether what stands in a manifest is what should. If not, that is a finding.
    fn compare(&mut self, package: &str, what: &str, found: Option<&str>, expected: &str) -> bool {
        let is_right = found == Some(expected);
        if !is_right {
            let found = found.map_or_else(|| "missing".to_owned(), |found| format!("`{found}`"));
            self.find(package, format!("{what} is {found}"), format!("make it `{expected}`"));
        }
        is_right
    }

    /// Checks the files of a package, which are named as in it, and the page that its registry shows.
    fn contents(
        &mut self,
        registry: &str,
        package: &str,
        files: &BTreeSet<String>,
        readme: Option<&str>,
    ) -> Result<()> {
        let title = format!("{package} ({registry})");
        let list = self.lists.entry(registry.to_owned()).or_default().entry(package.to_owned()).or_default();
        if self.bless {
            list.clone_from(files);
        } else {
            let golden = std::mem::take(list);
            let accept = "or accept that with `cargo xtask release --bless`";
            for stray in files.difference(&golden) {
                self.find(
                    &title,
                    format!("has `{stray}`, which is not in `{LISTS}`"),
                    format!("remove it, {accept}"),
                );
            }
            for missing in golden.difference(files) {
                self.find(
                    &title,
                    format!("has no `{missing}`, which is in `{LISTS}`"),
                    format!("bring it back, {accept}"),
                );
            }
        }
        for needed in iter::once("LICENSE").chain(readme.map(|_| "README.md")) {
            if !files.iter().any(|file| Path::new(file).ends_with(needed)) {
                self.find(
                    &title,
                    format!("has no `{needed}`"),
                    "put it into the folder, and into what the manifest includes",
                );
            }
        }
        for link in pages::links_that_end_outside(readme.unwrap_or_default(), files) {
            self.find(
                &title,
                format!("its README links to `{link}`, which is not in it"),
                "write the whole address",
            );
        }
        Ok(())
    }
}

fn lists() -> Result<Lists> {
    serde_json::from_str(&files::read(LISTS)?).with_context(|| format!("cannot read `{LISTS}`"))
}

fn names() -> Result<Names> {
    toml::from_str(&files::read(NAMES)?).with_context(|| format!("cannot read `{NAMES}`"))
}

/// An empty directory for the packages of a registry.
fn directory(registry: &str) -> Result<PathBuf> {
    let directory = target_dir()?.join(PACKAGES).join(registry);
    files::clear(&directory)?;
    files::make_directory(&directory)?;
    Ok(directory)
}

/// The files of a tarball, without the directory that all of them are in.
fn in_tarball(tarball: &Path) -> Result<BTreeSet<String>> {
    let listed = output(Command::new("tar").arg("-tzf").arg(tarball))?;
    let files = listed.lines().filter(|line| !line.ends_with('/'));
    Ok(files.filter_map(|line| Some(line.split_once('/')?.1.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stray_file_and_a_missing_one_are_found() {
        let lists = lists().unwrap();
        let mut files = lists["npm"]["weir-client"].clone();
        let mut release =
            Release { names: names().unwrap(), bless: false, lists: lists.clone(), findings: Vec::new() };
        release.contents("npm", "weir-client", &files, Some("")).unwrap();
        assert_eq!(release.findings, Vec::<String>::new());

        release.lists = lists;
        files.remove("LICENSE");
        files.insert("notes.txt".to_owned());
        release.contents("npm", "weir-client", &files, Some("[a](gone.md)")).unwrap();
        let beginnings = [
            "has `notes.txt`, which is not in `packaging/files.json`: remove it",
            "has no `LICENSE`, which is in `packaging/files.json`: bring it back",
            "has no `LICENSE`: put it",
            "its README links to `gone.md`",
        ];
        assert_eq!(release.findings.len(), beginnings.len(), "{:?}", release.findings);
        for (finding, beginning) in release.findings.iter().zip(beginnings) {
            assert!(finding.starts_with(&format!("weir-client (npm): {beginning}")), "{finding}");
        }
    }
}
