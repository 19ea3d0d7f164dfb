//! Generated clients as their users have them: written by `weir generate` from what a running Main describes, read by
//! the type checkers of their languages, and calling the real extensions, also after Main was killed.

mod programs;

use std::{
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use self::programs::Tools;
use crate::{
    demo::{
        self,
        weir::{self, RunningWeir},
    },
    files, guests,
    run::target_dir,
};

/// The name under which all clients are peers of Main.
const PEER: &str = "app:contracts";

const CONTRACTS: [&str; 5] = ["device.info@1", "echo@1", "local.storage@1", "settings@1", "telemetry@1"];

/// Generated clients that are compiled as a part of the workspace. Main's descriptions must give the same text.
const COMPILED: [(&str, &str); 3] = [
    ("extension", "cli/generate/tests/golden/settings_extension.rs"),
    ("app", "cli/generate/tests/golden/settings_app.rs"),
    ("sidecar", "cli/generate/tests/golden/settings_sidecar.rs"),
];

/// Runs all, and returns what it skipped.
pub(crate) fn check() -> Result<Vec<String>> {
    guests::plugins()?;
    let weir = weir::build()?;
    demo::clear_storage()?;
    let directory = target_dir()?.join("contracts");
    files::make_directory(&directory)?;
    let access = Access::new(&weir, &directory)?;
    let (tools, skipped) = Tools::install(&directory)?;

    let mut main = RunningWeir::start(&weir, &access.config)?;
    compare(&main)?;
    generate(&main, &directory)?;
    let mut programs = tools.programs(&directory)?;
    let mut running = Vec::new();
    for program in &mut programs {
        running.push(program.start(&access)?);
    }
    for program in &mut running {
        program.wait_until_ready()?;
    }
    // Main is killed, as by a fault: it closes no connection itself.
    drop(main);
    main = RunningWeir::start(&weir, &access.config)?;
    for program in running {
        program.wait_until_done()?;
    }
    main.shut_down()?;
    Ok(skipped)
}

/// Fails unless Main's descriptions give the clients that Rust's compiler has read.
fn compare(main: &RunningWeir) -> Result<()> {
    for (kind, path) in COMPILED {
        let text = main.run(&["generate", "rust", "--for", kind, "settings@1"])?;
        ensure!(
            text == files::read(path)?,
            "`weir generate rust --for {kind} settings@1` does not write `{path}`"
        );
    }
    Ok(())
}

/// Writes clients of all contracts.
fn generate(main: &RunningWeir, directory: &Path) -> Result<()> {
    for (language, kind, file) in [
        ("typescript", "app", "clients.ts"),
        ("python", "app", "clients_app.py"),
        ("python", "sidecar", "clients_sidecar.py"),
    ] {
        let path = directory.join(file);
        let path = path.to_str().context("the directory has a name that is no text")?;
        let arguments = ["generate", language, "--for", kind, "--output", path];
        main.run(&[&arguments, &CONTRACTS[..]].concat())?;
    }
    Ok(())
}

/// How the clients reach Main.
#[derive(Debug)]
pub(crate) struct Access {
    config: PathBuf,
    gateway: String,
    peers: PathBuf,
    token: String,
}

impl Access {
    /// Writes a file for Main: that of `examples/device.toml`, and what lets the clients in.
    fn new(weir: &Path, directory: &Path) -> Result<Self> {
        let (token, hash) = weir::token(weir, PEER)?;
        // The listener ends here, so Main can have its port.
        let gateway = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let (config, peers) = (directory.join("weir.toml"), directory.join("peers.sock"));
        // The new file lies one folder deeper, so its relative paths go up once more.
        let device = files::read("examples/device.toml")?.replace("\"../", "\"../../").replacen(
            "[main]",
            "[main]\npeer-socket = \"peers.sock\"",
            1,
        );
        let let_in = format!(
            "\n[gateway]\nlisten = [\"{gateway}\"]\n\n[peer.\"{PEER}\"]\ntokens = [\"{hash}\"]\nwants = \
             {CONTRACTS:?}\nsubscribes = [\"settings.changed.>\"]\n"
        );
        files::write(&config, device + &let_in)?;
        Ok(Self { config, gateway: format!("ws://{gateway}"), peers, token })
    }

    fn give(&self, command: &mut Command) {
        command
            .env("WEIR_NAME", PEER)
            .env("WEIR_GATEWAY", &self.gateway)
            .env("WEIR_PEERS", &self.peers)
            .env("WEIR_TOKEN", &self.token);
    }
}

/// Puts a file of this group into a directory.
fn place(directory: &Path, name: &str, text: &str) -> Result<()> {
    let path = directory.join(name);
    files::write(&path, text)
}
