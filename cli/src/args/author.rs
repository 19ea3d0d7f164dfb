//! Arguments of the commands for authors.

use std::path::PathBuf;

use clap::{ArgGroup, Args as ClapArgs, ValueEnum, ValueHint};

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Makes a directory of that name, with sources, tests, a `weir.toml` and a workflow for CI. Touches nothing
that is there.

Examples:
  weir new greeter
  weir new check --kind hook
  weir new counter --lang go
  weir new thermal --lang python --kind sidecar
  weir new greeter --sdk ~/src/weir")]
pub(crate) struct NewArgs {
    /// The name of the project and its directory, as in `greeter`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The language
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    pub(crate) lang: Language,
    /// What the program is
    #[arg(long, value_name = "KIND", default_value = "extension")]
    pub(crate) kind: Kind,
    /// A clone of Weir to use instead of published packages; also WEIR_SDK
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(env = "WEIR_SDK", hide_env = true)]
    pub(crate) sdk: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    /// Rust
    Rust,
    /// Python
    Python,
    /// TypeScript
    #[value(name = "typescript")]
    TypeScript,
    /// Go
    Go,
    /// C
    C,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A component that Main runs and that serves messages
    Extension,
    /// A component that Main runs to its end
    Hook,
    /// A program outside Main that calls extensions
    App,
    /// A program outside Main that serves a contract
    Sidecar,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
In Rust, builds with `cargo`: for WebAssembly if `weir.toml` has extensions or hooks. In other languages,
builds what `weir new` makes. If there is a `manifest.json`, or a `contracts.json` (OpenRPC documents: one,
or a list of them), it is put into the component that `weir.toml` names, in place of an older one.

Examples:
  weir build
  weir build ../greeter
  weir build --component greeter.wasm --manifest manifest.json --contracts contracts.json")]
#[command(group(ArgGroup::new("descriptions").args(["manifest", "contracts"]).multiple(true)))]
pub(crate) struct BuildArgs {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Build nothing; put `--manifest` and `--contracts` into this component
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "descriptions")]
    pub(crate) component: Option<PathBuf>,
    /// The manifest; by default `manifest.json` of the project, if it is there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) manifest: Option<PathBuf>,
    /// The description; by default `contracts.json` of the project, if it is there
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) contracts: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Builds the project, runs its `weir.toml` in a Main of its own, and does so again after each change of a file.
Prints the socket of that Main for other commands, and then its log, its events, and the messages that its
extensions receive. If a build fails, the version before goes on. Ctrl-C ends everything.

Examples:
  weir dev
  weir dev ../greeter")]
pub(crate) struct DevArgs {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Builds the project, runs its `weir.toml` in a Main of its own, and then the tests: by default `cargo test`,
`npm test` or `python3 -m unittest`. They find that Main through WEIR_SOCKET, the `weir` command as WEIR, and
`main.peer-socket` as WEIR_PEER_SOCKET. Each test that the program reports, as TAP or as `cargo test` does, is
a case; a program that reports none is one case. Exit code 1: a case failed.

`.weir/main.log` has Main's log, and `.weir/measured.json` the limits and what was used of them.

Examples:
  weir test
  weir test --junit report.xml
  weir test --tap -- ./tests/run.sh")]
pub(crate) struct TestArgs {
    /// The directory of the project
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) dir: PathBuf,
    /// Write the cases to this file, as JUnit XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Print the cases as TAP; the program's output goes to stderr
    #[arg(long)]
    pub(crate) tap: bool,
    /// Time limit for the test program
    #[arg(long, value_name = "TIME", default_value = "10min")]
    pub(crate) timeout: humantime::Duration,
    /// The test program, which runs in the directory of the project
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
