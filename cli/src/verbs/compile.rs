//! `weir keygen` and `weir compile`: artifacts for devices that do not compile.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::ValueHint;
use weir_host::{
    component::{self, AddressClass, CompileTarget, SigningKey},
    config::{Feature, Limits, Traces},
};

use crate::{
    features::compilation,
    output::{self, printable},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
In the configuration, `path` names the artifact instead of the component. The artifact runs only where
`main.trusted-keys` lists the public half of the key, and only under versions of Weir with the same major
version and settings of wasmtime. The compilation has the limits of the class `max`.

For 32-bit processors, and others for which wasmtime makes no code, the artifact is for the interpreter:
its target is `pulley32` or `pulley64`. `weir inspect` shows the target of an artifact. A Main with a small
address space needs artifacts with a small one: see `main.address-space`.

Examples:
  weir compile storage.wasm --key release.key
  weir compile storage.wasm --key release.key --target aarch64-unknown-linux-gnu --output arm/storage.cwasm
  weir compile storage.wasm --key release.key --target aarch64-unknown-linux-gnu --address-space small
  weir compile storage.wasm --key release.key --target armv7-unknown-linux-gnueabihf")]
pub(crate) struct Args {
    /// The component
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// The signing key, from `weir keygen`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    key: PathBuf,
    /// The processor and system of the devices; by default, any processor of this machine's kind
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// The address space of the devices: `large` or `small`; by default, large unless addresses have 32 bits
    #[arg(long, value_name = "SIZE")]
    address_space: Option<AddressClass>,
    /// A part of WebAssembly that the class of the devices turns on: `exceptions`, `gc`, `tail-calls`, `relaxed-simd` or
    /// `memory64`. Can be repeated
    #[arg(long = "feature", value_name = "FEATURE")]
    features: Vec<Feature>,
    /// Detail of traces: `functions`, or `lines`, which makes the artifact larger
    #[arg(long, value_name = "WHAT", default_value = "functions")]
    traces: Traces,
    /// Where the artifact goes; by default beside the component, as `.cwasm`
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The file is a private key (Ed25519, PKCS #8 in PEM). Keep it secret: with it, anybody can make artifacts that
your devices run. Paste the printed line into `[main]` of every device that must run such artifacts.

Examples:
  weir keygen release.key
  weir keygen --public release.key")]
pub(crate) struct KeygenArgs {
    /// The file of the key; a new key needs a new file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,
    /// Make no key; print the line for the key in the file
    #[arg(long)]
    public: bool,
}

pub(super) fn keygen(args: KeygenArgs) -> anyhow::Result<()> {
    let key = if args.public { read_key(&args.file)? } else { make_key(&args.file)? };
    output::line(&format!("trusted-keys = [\"{}\"]", key.trusted_key()))
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let key = read_key(&args.key)?;
    let target = CompileTarget::new(args.target.as_deref(), args.address_space)?;
    let what = format!("compiling `{}`", printable(&args.file.display().to_string()));
    let mut limits = Limits::max();
    limits.features = args.features.iter().copied().collect();
    let artifact = output::during(&what, || {
        component::compile(&args.file, Some(&target), &limits, args.traces, &compilation(), &key)
    });
    output::warn_of_confinement();
    let artifact = artifact?;
    let output = args.output.clone().unwrap_or_else(|| args.file.with_extension("cwasm"));
    anyhow::ensure!(
        output != args.file,
        "the artifact would overwrite `{}`: choose another `--output`",
        output.display()
    );
    write(&output, &artifact).with_context(|| format!("cannot write `{}`", output.display()))
}

fn make_key(file: &Path) -> anyhow::Result<SigningKey> {
    let failed = || format!("cannot make the key `{}`", file.display());
    let key = SigningKey::generate().with_context(failed)?;
    let pem = key.to_pem().with_context(failed)?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).with_context(failed)?;
    file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
    Ok(key)
}

pub(super) fn read_key(file: &Path) -> anyhow::Result<SigningKey> {
    let failed = || format!("cannot use the key `{}`", file.display());
    SigningKey::from_pem(&fs::read_to_string(file).with_context(failed)?).with_context(failed)
}

/// Writes the whole file, or leaves the old one.
pub(super) fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = fs::Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(dir)?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}
