//! The arguments of the verbs for components and artifacts.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueHint};
use weir_host::config::Traces;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The artifact takes the place of the component: `path` in the configuration names it. It runs only where
`main.trusted-keys` lists the public half of the key, and under versions of Weir with the same major version
of wasmtime and the same settings of it. The limits are those of the class `max`.

Examples:
  weir compile storage.wasm --key release.key
  weir compile storage.wasm --key release.key --target aarch64-unknown-linux-gnu --output arm/storage.cwasm")]
pub(crate) struct CompileArgs {
    /// The component
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The key to sign with, of `weir keygen`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: PathBuf,
    /// The processor and system of the devices; else any processor of this machine's kind
    #[arg(long, value_name = "TRIPLE")]
    pub(crate) target: Option<String>,
    /// What traces tell: `functions`, or `lines`, with which the artifact is larger
    #[arg(long, value_name = "WHAT", default_value = "functions")]
    pub(crate) traces: Traces,
    /// Where the artifact goes; else beside the component, as `.cwasm`
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The file is a private key (Ed25519, PKCS #8 in PEM): whoever has it can make what your devices run. The line
that is printed belongs into `[main]` of every device that is to run what the key signs.

Examples:
  weir keygen release.key
  weir keygen --public release.key")]
pub(crate) struct KeygenArgs {
    /// Where the key goes; nothing may be there yet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Make nothing, and print the line for the key that is there
    #[arg(long)]
    pub(crate) public: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
What is printed is TOML. Write the host's side where it says FILL-IN, and take out what the extension
shall not have. Nothing of the component is run.

Examples:
  weir inspect storage.wasm
  weir inspect storage.wasm >> conf.d/storage.toml
  weir inspect --json storage.wasm | jq .imports")]
pub(crate) struct InspectArgs {
    /// The component
    #[arg(value_name = "FILE.wasm", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The trace must be of an extension with `traces = \"lines\"`. The component is the one that ran, or the same before it was
stripped, with its debug information (DWARF).

Examples:
  weir status --json storage | weir symbolise --component target/wasm32-wasip2/release/storage.wasm
  weir symbolise failure.json --component storage.wasm")]
pub(crate) struct SymboliseArgs {
    /// The failure as JSON: the object, or one that lists failures, of which the last counts; else stdin
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    pub(crate) failure: String,
    /// The component with its debug information
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) component: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
