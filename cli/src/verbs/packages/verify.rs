//! `weir verify`: whether a component or a package is signed with a trusted key.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::ValueHint;
use weir_host::{MainConfig, component::Signature, config::TrustedKey};

use super::{device::hash, sha256, signed, source::Source, trust};
use crate::{features, output};

/// How a component begins.
const WASM: [u8; 4] = *b"\0asm";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The signature of a component is in the file of that name with `.sig` at its end. Exit code 1: there is none, it is
not right, or its key is not trusted or is revoked.

Examples:
  weir verify echo-1.0.0.tar --config weir.toml
  weir verify echo.wasm --trusted-keys 11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=
  weir verify oci://registry.example.com/echo:1.0.0 --config weir.toml")]
pub(crate) struct Args {
    /// The component, or the package as for `weir add`
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    source: Source,
    /// Public keys, as `weir keygen` shows them
    #[arg(long, value_name = "KEY", num_args = 1.., required_unless_present = "config")]
    trusted_keys: Vec<TrustedKey>,
    /// Take the keys, and what is revoked, from this configuration
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "trusted_keys")]
    config: Option<PathBuf>,
}

pub(crate) async fn run(Args { source, trusted_keys, config }: Args) -> anyhow::Result<()> {
    let mut main = match config {
        Some(file) => features::load(&file)?.main,
        None => MainConfig::default(),
    };
    main.trusted_keys.extend(trusted_keys);
    let name = source.to_string();
    let (signature, sha256, size) = match &source {
        Source::Path(path) if is_component(path) => {
            let failed = || format!("cannot read `{}`", path.display());
            let (sha256, size) = path.canonicalize().and_then(|path| hash(&path)).with_context(failed)?;
            (beside(path)?, sha256, size)
        }
        _ => {
            let (package, signature) = signed(&source).await?;
            (signature, sha256(&package), package.size)
        }
    };
    trust::check(&main, &name, signature.as_ref(), sha256, size)?;
    let Some(Signature { id, version, key, .. }) = signature else { bail!("`{name}` has no signature") };
    output::line(&format!("`{id}` {version}, signed with the key `{key}`"))
}

/// Whether the file begins as a component does.
pub(in super::super) fn is_component(path: &Path) -> bool {
    let mut start = [0; 4];
    path.canonicalize()
        .and_then(|path| weir_package::open(&path))
        .and_then(|mut file| file.read_exact(&mut start))
        .is_ok()
        && start == WASM
}

/// The signature beside a component, if there is one.
fn beside(component: &Path) -> anyhow::Result<Option<Signature>> {
    let path = Signature::path_of(component);
    let failed = || format!("cannot read `{}`", path.display());
    if !path.try_exists().with_context(failed)? {
        return Ok(None);
    }
    let mut text = Vec::new();
    let file = weir_package::open(&path).with_context(failed)?;
    file.take(Signature::MAX_BYTES as u64 + 1).read_to_end(&mut text).with_context(failed)?;
    let parsed = Signature::parse(&text);
    parsed.map(Some).map_err(|why| anyhow::anyhow!("`{}` {why}", component.display()))
}
