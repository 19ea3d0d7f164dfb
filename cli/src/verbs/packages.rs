//! Packages on a device: from a source into an operator's file, and out of it again.

pub(super) mod add;
mod asked;
mod device;
pub(super) mod outdated;
pub(super) mod remove;
mod source;
mod trust;
pub(super) mod upgrade;
pub(super) mod verify;

use std::path::PathBuf;

use anyhow::{Context, bail};
use clap::ValueHint;
use semver::Version;
use weir_host::{
    MainConfig,
    component::{Inspection, Signature, inspect},
    config::{ArtifactHash, not_in_this_build},
};
use weir_package::Package;

use self::source::Source;
use crate::output::{self, printable};

/// The operator's file that is changed.
#[derive(Debug, clap::Args)]
pub(super) struct OfFile {
    /// The configuration
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "weir.toml")]
    config: PathBuf,
}

/// Fetches a package, with its signature. Nothing is checked of that but that it is a signature.
async fn signed(source: &Source) -> anyhow::Result<(Package, Option<Signature>)> {
    let package = source.fetch().await?;
    let signature = package.signature.as_deref().map(str::as_bytes).map(Signature::parse);
    let signature = signature.transpose().map_err(|why| anyhow::anyhow!("the package `{source}` {why}"))?;
    Ok((package, signature))
}

/// The SHA-256 of the component of a package.
fn sha256(package: &Package) -> ArtifactHash {
    ArtifactHash::from_bytes(package.sha256.bytes())
}

/// A package that was fetched and verified against its digests, and what its component says of itself.
struct Fetched {
    source: Source,
    package: Package,
    found: Inspection,
    signature: Option<Signature>,
}

impl Fetched {
    /// Fetches a package that the operator allows. Its component is parsed only after its signature was verified.
    async fn of(source: Source, main: &MainConfig) -> anyhow::Result<Self> {
        let (package, signature) = signed(&source).await?;
        trust::check(main, &source.to_string(), signature.as_ref(), sha256(&package), package.size)?;
        let failed = || format!("the package `{source}` cannot be used");
        let found = inspect(&package.component).with_context(failed)?;
        let own = found.manifest.as_ref().map(|own| (own.id.to_string(), own.version.clone()));
        let signed = signature.as_ref().map(|signed| (signed.id.to_string(), signed.version.to_string()));
        if let (Some((own, version)), Some((id, signed))) = (&own, &signed)
            && (own, version) != (id, signed)
        {
            bail!(
                "the package `{source}` is signed as `{id}` {signed}, and its manifest says `{own}` {}",
                printable(version)
            );
        }
        let fetched = Self { source, package, found, signature };
        fetched.matches_tag()?;
        Ok(fetched)
    }

    /// Checks again what the operator allows, for a configuration that was read since.
    fn check(&self, main: &MainConfig) -> anyhow::Result<()> {
        let name = self.source.to_string();
        trust::check(main, &name, self.signature.as_ref(), sha256(&self.package), self.package.size)
    }

    /// Checks that a tag that is a version has this version. Else a registry could hide all later ones with one tag.
    fn matches_tag(&self) -> anyhow::Result<()> {
        let Source::Registry(reference) = &self.source else { return Ok(()) };
        let name = reference.split('@').next().unwrap_or_default();
        let tag = name.rsplit_once(':').and_then(|(_, tag)| tag.parse::<Version>().ok());
        let Some(tag) = tag else { return Ok(()) };
        let version = self.version()?;
        // A tag cannot have the `+` of build metadata.
        if tag.cmp_precedence(&version).is_ne() {
            bail!("the package `{}` has version {version}, and not that of its tag", self.source);
        }
        Ok(())
    }

    /// The id that its signer or its author gave it.
    fn id(&self) -> Option<&str> {
        let signed = self.signature.as_ref().map(|signature| signature.id.as_str());
        signed.or_else(|| Some(self.found.manifest.as_ref()?.id.as_str()))
    }

    /// The version that its signer or its author gave it.
    fn version(&self) -> anyhow::Result<Version> {
        if let Some(signature) = &self.signature {
            return Ok(signature.version.clone());
        }
        let version = self.found.manifest.as_ref().map(|manifest| manifest.version.as_str());
        let version = version.and_then(|version| version.parse().ok());
        version.with_context(|| {
            format!(
                "the package `{}` has no version such as `1.2.0`: its author gives it one with `weir sign --version`",
                self.source
            )
        })
    }

    /// Warns if this build cannot run what was fetched.
    fn warn_without_compiler() {
        if !cfg!(feature = "compiler") {
            let why = not_in_this_build("compiler");
            output::complain(&format!(
                "warning: compiling {why}. Only artifacts run here: see `weir compile`"
            ));
        }
    }

    /// Says what was fetched: `` `echo` 1.0.0, signed by KEY ``.
    fn shown(&self, version: &Version) -> String {
        let by = self.signature.as_ref().map_or_else(
            || "not signed".to_owned(),
            |signature| format!("signed with the key `{}`", signature.key),
        );
        let id = self.id().unwrap_or("a component without an id");
        format!("`{}` {}, {by}", printable(id), printable(&version.to_string()))
    }
}
