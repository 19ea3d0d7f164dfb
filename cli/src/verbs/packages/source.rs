//! Where a package is: a directory, a tar, or a registry, which the program `weir-registry` speaks to.

use std::{
    convert::Infallible,
    env, fmt,
    io::{self, Read, Seek},
    path::PathBuf,
    process::Stdio,
    str::FromStr,
};

use anyhow::{Context, bail};
use semver::Version;
use tempfile::TempDir;
use tokio::process::Command;
use weir_host::config::Limits;
use weir_package::Package;

use crate::client::until_interrupted;

/// How the name of a package in a registry begins.
const SCHEME: &str = "oci://";

/// The program for registries.
const PROGRAM: &str = "weir-registry";

/// Where a package is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Source {
    /// A directory or a tar.
    Path(PathBuf),
    /// `REGISTRY/NAME:TAG`, with or without a digest.
    Registry(String),
}

impl FromStr for Source {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.strip_prefix(SCHEME) {
            Some(reference) => Self::Registry(reference.to_owned()),
            None => Self::Path(text.into()),
        })
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Registry(reference) => write!(f, "{SCHEME}{reference}"),
        }
    }
}

impl Source {
    /// Reads the package, and verifies it against its digests.
    pub(super) async fn fetch(&self) -> anyhow::Result<Package> {
        let most = Limits::max().file_size;
        let failed = || format!("the package `{self}` cannot be read");
        match self {
            Self::Path(path) => weir_package::read(path, most).with_context(failed),
            Self::Registry(reference) => {
                let dir = TempDir::with_prefix("weir-pull-").with_context(failed)?;
                let layout = dir.path().join("package");
                let pulled = self.ask(registry().args(["pull", "--", reference]).arg(&layout)).await?;
                if pulled.is_none() {
                    bail!("the package `{self}` was not pulled");
                }
                weir_package::read(&layout, most).with_context(failed)
            }
        }
    }

    /// Where there may be a newer version: in a registry, at the highest version among the tags, if this one is a
    /// version, too. Everything else stays where it is. `None` if there is none.
    pub(super) async fn newest(&self) -> anyhow::Result<Option<Self>> {
        let Self::Registry(reference) = self else { return Ok(Some(self.clone())) };
        let Some((repository, Ok(current))) = tagged(reference) else { return Ok(Some(self.clone())) };
        let listed = self.ask(registry().args(["tags", "--", repository])).await?;
        let Some(tags) = listed else { bail!("the versions of `{self}` were not listed") };
        let versions = tags.lines().filter_map(|tag| tag.trim().parse::<Version>().ok());
        // An operator who runs no preview is offered none.
        let fits = |version: &Version| version.pre.is_empty() || !current.pre.is_empty();
        let newest = versions.filter(fits).max().filter(|newest| *newest > current);
        Ok(newest.map(|newest| Self::Registry(format!("{repository}:{newest}"))))
    }

    /// As it can be read again later, from any directory.
    pub(super) fn lasting(&self) -> anyhow::Result<Self> {
        match self {
            Self::Path(path) => {
                let full = path.canonicalize();
                Ok(Self::Path(full.with_context(|| format!("cannot find `{}` again", path.display()))?))
            }
            Self::Registry(_) => Ok(self.clone()),
        }
    }

    /// Runs the program for registries, and returns what it prints. None if it fails, which it says itself. If a signal
    /// ends this command, the program ends first.
    async fn ask(&self, program: &mut Command) -> anyhow::Result<Option<String>> {
        let mut printed = tempfile::tempfile().context("no temporary file can be made")?;
        let out = printed.try_clone().context("no temporary file can be made")?;
        let mut started = None;
        let ended = until_interrupted(async {
            // From here on, a signal does not end this command by itself.
            let child = program.stdout(out).spawn().map_err(|error| self.unavailable(error))?;
            Ok(started.insert(child).wait().await?)
        })
        .await;
        if ended.is_err()
            && let Some(child) = &mut started
        {
            // It may have ended by itself.
            let _gone = child.kill().await;
        }
        if !ended?.success() {
            return Ok(None);
        }
        let mut text = Vec::new();
        printed
            .rewind()
            .and_then(|()| printed.read_to_end(&mut text))
            .context("cannot read a temporary file")?;
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }

    fn unavailable(&self, error: io::Error) -> anyhow::Error {
        if error.kind() == io::ErrorKind::NotFound {
            anyhow::anyhow!(
                "`{self}` needs the program `{PROGRAM}`, which is neither beside `weir` nor in a directory of `PATH`: \
                 install it, or copy the package to a file and add that"
            )
        } else {
            anyhow::Error::new(error).context(format!("cannot start `{PROGRAM}`"))
        }
    }
}

/// The repository and the version of a reference such as `registry:5000/echo:1.0.0`. `None` if it has no tag, or a digest
/// says which one is meant.
fn tagged(reference: &str) -> Option<(&str, Result<Version, semver::Error>)> {
    let (repository, tag) = reference.rsplit_once(':')?;
    let is_tag = !tag.contains('/') && !reference.contains('@');
    is_tag.then(|| (repository, tag.parse()))
}

/// The program for registries: the one beside this program, or one of `PATH`. It says itself what goes wrong.
fn registry() -> Command {
    let beside =
        env::current_exe().ok().map(|weir| weir.with_file_name(PROGRAM)).filter(|path| path.is_file());
    let mut command = Command::new(beside.unwrap_or_else(|| PROGRAM.into()));
    command.stdin(Stdio::null()).stderr(Stdio::inherit()).kill_on_drop(true);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_tag_that_is_a_version_may_be_outdated() {
        let version =
            |reference| tagged(reference).and_then(|(name, tag)| Some((name, tag.ok()?.to_string())));
        assert_eq!(version("a:5000/b/c:1.0.0"), Some(("a:5000/b/c", "1.0.0".to_owned())));
        for other in ["a/b", "a:5000/b", "a/b:latest", "a/b:1.0.0@sha256:00"] {
            assert_eq!(version(other), None, "{other}");
        }
    }
}
