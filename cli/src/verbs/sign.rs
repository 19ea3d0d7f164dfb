//! `weir sign`: a signature over the digest, the id, the version and the size of a component.

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::ValueHint;
use weir_host::{
    component::{Manifest, Signature, SigningKey, inspect},
    config::{ArtifactHash, Limits},
    names::ExtensionId,
};

use super::{
    compile::{read_key, write},
    packages::verify::is_component,
};
use crate::{
    exit::Usage,
    output::{self, printable},
};

#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
The signature of a component goes to the file of that name with `.sig` at its end. That of a package goes into the
package, in place of an earlier one. The id and the version are those of the component's manifest. A device takes a signature if `main.trusted-keys` lists the public half of the key.

Examples:
  weir sign echo.wasm --key release.key
  weir sign echo-1.0.0.tar --key release.key
  weir sign other.wasm --key release.key --id other --version 2.1.0"
)]
pub(crate) struct Args {
    /// The component, or a package of `weir package`
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    file: PathBuf,
    /// The signing key, from `weir keygen`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key: PathBuf,
    #[command(flatten)]
    named: Named,
}

/// What a component is called.
#[derive(Debug, clap::Args)]
pub(super) struct Named {
    /// The id of a component without a manifest
    #[arg(long, value_name = "ID")]
    id: Option<ExtensionId>,
    /// The version of a component without a manifest, such as `1.2.0`
    #[arg(long = "version", value_name = "VERSION")]
    component_version: Option<String>,
}

impl Named {
    /// The id and the version: as the manifest has them, or as given without one.
    pub(super) fn of(
        &self,
        file: &Path,
        manifest: Option<&Manifest>,
    ) -> Result<(ExtensionId, String), Usage> {
        let id = self.id.clone().or_else(|| Some(manifest?.id.clone()));
        let version = self.component_version.clone().or_else(|| Some(manifest?.version.clone()));
        let given = id.as_ref().zip(version.as_ref());
        if let Some(Manifest { id, version, .. }) =
            manifest.filter(|own| given != Some((&own.id, &own.version)))
        {
            return Err(Usage(format!(
                "`{}` is `{id}` {} by its manifest, and devices take it under no other name",
                printable(&file.display().to_string()),
                printable(version)
            )));
        }
        id.zip(version).ok_or_else(|| {
            Usage(format!(
                "`{}` has no manifest: give `--id` and `--version`",
                printable(&file.display().to_string())
            ))
        })
    }
}

/// Returns the text of a signature.
pub(super) fn signed(
    key: &SigningKey,
    id: ExtensionId,
    version: &str,
    sha256: ArtifactHash,
    size: u64,
) -> anyhow::Result<String> {
    Ok(Signature::sign(key, id, version, sha256, size)?.text())
}

pub(super) fn run(Args { file, key, named }: Args) -> anyhow::Result<()> {
    let key = read_key(&key)?;
    if is_component(&file) {
        let found = inspect(&file)?;
        let (id, version) = named.of(&file, found.manifest.as_ref())?;
        let text = signed(&key, id, &version, found.sha256, found.bytes)?;
        let path = Signature::path_of(&file);
        write(&path, text.as_bytes()).with_context(|| format!("cannot write `{}`", path.display()))?;
        return output::line(&path.display().to_string());
    }
    let failed = || format!("the package `{}` cannot be read", file.display());
    let package = weir_package::read(&file, Limits::max().file_size).with_context(failed)?;
    let found = inspect(&package.component).with_context(failed)?;
    let (id, version) = named.of(&file, found.manifest.as_ref())?;
    let text = signed(&key, id, &version, found.sha256, found.bytes)?;
    let digest = package.write_signed(&text, &file)?;
    output::line(&format!("{}@{digest}", file.display()))
}
