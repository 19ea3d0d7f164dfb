//! Licences, sources, bans and advisories of all dependencies: `deny.toml`, checked by cargo-deny.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::run::{cargo, root, run, target_dir};

const VERSION: &str = "0.20.2";

/// Each has its own lock file.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "spec-tests/Cargo.toml", "fuzz/Cargo.toml"];

/// Names a clone of the advisory database, for machines without access to the one of `deny.toml`.
const DATABASE: &str = "WEIR_ADVISORY_DB";

/// As in `deny.toml`.
const DATABASE_URL: &str = "https://github.com/rustsec/advisory-db";

/// Seconds that fetching the database may take.
const FETCH_TIMEOUT_S: u32 = 120;

/// Checks every manifest. Without a database it leaves out advisories, and prints a line that says so.
pub(crate) fn check() -> Result<()> {
    let program = program()?;
    let has_database = fetch_database(&program)?;
    for manifest in MANIFESTS {
        // One manifest may not need what another skips.
        let known = ["unmatched-skip", "unmatched-skip-root", "unnecessary-skip"];
        let check = |offline: &[&str], what: &[&str]| {
            let mut deny = Command::new(&program);
            deny.args(["--config", "deny.toml", "--locked", "--manifest-path", manifest]).args(offline);
            deny.arg("check").args(known.iter().flat_map(|lint| ["--allow", lint])).args(what);
            run(deny.current_dir(root()?))
        };
        check(&[], &["licenses", "sources", "bans"])?;
        if has_database {
            check(&["--offline"], &["advisories"])?;
        }
    }
    Ok(())
}

/// The pinned cargo-deny: the installed one, or else one built once below `target`.
fn program() -> Result<PathBuf> {
    let tools = target_dir()?.join("tools");
    let built = tools.join("bin/cargo-deny");
    for program in [PathBuf::from("cargo-deny"), built.clone()] {
        let version = Command::new(&program).arg("--version").output();
        let pinned = format!("cargo-deny {VERSION}\n");
        if version.is_ok_and(|version| version.stdout == pinned.as_bytes()) {
            return Ok(program);
        }
    }
    // Unoptimised: it builds much faster, and runs for seconds only.
    let mut install = cargo(["install", "cargo-deny", "--locked", "--debug", "--version"])?;
    install.arg(format!("={VERSION}")).arg("--root").arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "false");
    // Nothing else can use its artifacts.
    run(install.env_remove("CARGO_TARGET_DIR"))?;
    Ok(built)
}

/// Updates the advisory database. False, with a printed reason, if it cannot be reached.
fn fetch_database(program: &Path) -> Result<bool> {
    // Git would wait on a silent network without end, and would ask for a password.
    let mut fetch = Command::new("timeout");
    fetch.arg(FETCH_TIMEOUT_S.to_string()).arg(program).args(["fetch", "db"]);
    fetch.current_dir(root()?).env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    if let Some(clone) = env::var_os(DATABASE) {
        let clone =
            fs::canonicalize(&clone).with_context(|| format!("`{DATABASE}` names `{}`", clone.display()))?;
        fetch.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_VALUE_0", DATABASE_URL);
        fetch.env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", clone.display()));
        return run(&mut fetch).map(|()| true);
    }
    let fetched = fetch.output().context("cannot run `timeout`")?;
    if !fetched.status.success() {
        let said = String::from_utf8_lossy(&fetched.stderr);
        let why = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no answer in time");
        eprintln!("advisories were skipped: {why}; `{DATABASE}` can name a clone of {DATABASE_URL}");
    }
    Ok(fetched.status.success())
}
