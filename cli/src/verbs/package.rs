//! `weir package`: a component with all that an operator wants to know of it, as an OCI image layout.

use std::{
    env, fs,
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use anyhow::Context;
use clap::ValueHint;
use weir_host::component::{Inspection, inspect};
use weir_package::{Contents, Digest, Documents};

use super::{
    compile::read_key,
    sign::{Named, signed},
};
use crate::output;

/// The time of what is made, in seconds since 1970: <https://reproducible-builds.org/docs/source-date-epoch>.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

#[derive(Debug, clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "\
The package is an OCI image layout: a directory, or a tar if the name of OUTPUT ends with `.tar`. Registries and
their tools take it, such as oras and skopeo. It holds the component, its manifest and contracts, a table for the
operator's file, the licence, and an SBOM (CycloneDX) of the lock files. The same input makes the same package; its time
is that of SOURCE_DATE_EPOCH, or 1970.

Lock files are Cargo.lock and package-lock.json. Of a Cargo.lock with a package named as the component, only the
dependencies of that package are listed, with those of its build and its tests.

Examples:
  weir package echo.wasm --lock Cargo.lock --licence LICENSE --key release.key
  weir package echo.wasm --output dist/echo"
)]
pub(crate) struct Args {
    /// The component
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Where the package goes; by default beside the component, as ID-VERSION.tar
    #[arg(short, long, value_name = "OUTPUT", value_hint = ValueHint::AnyPath)]
    output: Option<PathBuf>,
    /// The text of the component's licence
    #[arg(long, visible_alias = "license", value_name = "FILE", value_hint = ValueHint::FilePath)]
    licence: Option<PathBuf>,
    /// A lock file of the project, for the SBOM
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    lock: Vec<PathBuf>,
    /// Sign the component with this key, from `weir keygen`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key: Option<PathBuf>,
    #[command(flatten)]
    named: Named,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let found = inspect(&args.file)?;
    let (id, version) = args.named.of(&args.file, found.manifest.as_ref())?;
    let sha256 = Digest::from(*found.sha256.as_bytes());
    let mut contents = Contents {
        id: id.to_string(),
        version: version.clone(),
        created: time()?,
        imports: found.imports.clone(),
        exports: found.exports.clone(),
        documents: documents(&args, &found)?,
        signature: None,
    };
    contents.documents.sbom = sbom(&args, &contents, &sha256)?;
    if let Some(key) = &args.key {
        contents.signature = Some(signed(&read_key(key)?, id, &version, found.sha256, found.bytes)?);
    }
    let beside = || args.file.with_file_name(format!("{}-{version}.tar", contents.id));
    let output = args.output.clone().unwrap_or_else(beside);
    let digest = weir_package::write(&args.file, &contents, &output)?;
    output::line(&format!("{}@{digest}", output.display()))
}

fn documents(args: &Args, found: &Inspection) -> anyhow::Result<Documents> {
    let contracts = found.contracts.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    Ok(Documents {
        manifest: found.manifest.as_ref().map(serde_json::to_value).transpose()?,
        contracts,
        stanza: Some(found.stanza()),
        licence: args.licence.as_deref().map(read).transpose()?,
        sbom: None,
    })
}

/// The SBOM, if there is a lock file to make it of.
fn sbom(args: &Args, contents: &Contents, sha256: &Digest) -> anyhow::Result<Option<serde_json::Value>> {
    if args.lock.is_empty() {
        return Ok(None);
    }
    let texts =
        args.lock.iter().map(|path| Ok((&**path, read(path)?))).collect::<anyhow::Result<Vec<_>>>()?;
    let stem = args.file.file_stem().unwrap_or_default().to_string_lossy();
    Ok(Some(weir_package::sbom(&stem, contents, sha256, &texts)?))
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn time() -> anyhow::Result<String> {
    let seconds = match env::var_os(EPOCH) {
        None => 0,
        Some(text) => {
            let seconds = text.to_str().and_then(|text| text.parse::<u32>().ok());
            seconds.with_context(|| format!("the variable {EPOCH} has no number of seconds since 1970"))?
        }
    };
    let time = UNIX_EPOCH + Duration::from_secs(seconds.into());
    Ok(humantime::format_rfc3339_seconds(time).to_string())
}
