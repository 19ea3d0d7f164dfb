//! Arguments of the commands for components and artifacts.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};
#[cfg(feature = "compiler")]
use weir_host::{component::AddressClass, config::Traces};

#[cfg(feature = "compiler")]
#[derive(Debug, ClapArgs)]
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
pub(crate) struct CompileArgs {
    /// The component
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The signing key, from `weir keygen`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: PathBuf,
    /// The processor and system of the devices; by default, any processor of this machine's kind
    #[arg(long, value_name = "TRIPLE")]
    pub(crate) target: Option<String>,
    /// The address space of the devices: `large` or `small`; by default, large unless addresses have 32 bits
    #[arg(long, value_name = "SIZE")]
    pub(crate) address_space: Option<AddressClass>,
    /// Detail of traces: `functions`, or `lines`, which makes the artifact larger
    #[arg(long, value_name = "WHAT", default_value = "functions")]
    pub(crate) traces: Traces,
    /// Where the artifact goes; by default beside the component, as `.cwasm`
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[cfg(feature = "compiler")]
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The file is a private key (Ed25519, PKCS #8 in PEM). Keep it secret: with it, anybody can make artifacts that
your devices run. Paste the printed line into `[main]` of every device that must run such artifacts.

Examples:
  weir keygen release.key
  weir keygen --public release.key")]
pub(crate) struct KeygenArgs {
    /// The file of the key; a new key needs a new file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Make no key; print the line for the key in the file
    #[arg(long)]
    pub(crate) public: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
For an artifact of `weir compile`, it is what the artifact says of itself: the target, the address space and
the key. For a component it is TOML. Replace each FILL-IN with the host's side, and remove what the extension must not
have. Nothing of the component is run. With --measured, it has limits with room over those that were
measured: 1.5 times the peak of memory, and twice the fuel of the dearest message.

Examples:
  weir inspect storage.wasm
  weir inspect storage.wasm --measured .weir/measured.json >> conf.d/storage.toml
  weir inspect storage.wasm --sizes
  weir inspect storage.cwasm
  weir inspect --json storage.wasm | jq .imports")]
pub(crate) struct InspectArgs {
    /// The component, or an artifact
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Add limits, from the output of `weir limits --json` while it ran; `weir test` keeps that
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) measured: Option<PathBuf>,
    /// Show the largest functions, and how much data and custom sections take
    #[arg(long)]
    pub(crate) sizes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The trace must be of an extension with `traces = \"lines\"`. The component must have its debug information
(DWARF): it is the file that ran, or the same file before it was stripped.

Examples:
  weir status --json storage | weir symbolise --component target/wasm32-wasip2/release/storage.wasm
  weir symbolise failure.json --component storage.wasm")]
pub(crate) struct SymboliseArgs {
    /// The failure as JSON, or an object with `failures`, of which the last is taken; `-` for stdin
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) failure: String,
    /// The component with its debug information
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) component: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
