//! Licences, sources, bans and advisories of all dependencies: `deny.toml`, checked by cargo-deny. Where the database of
//! advisories cannot be reached, those of `advisories.txt` are checked.

mod kept;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result};

use crate::{
    run::{root, run},
    tools,
};

pub(crate) use self::kept::update;

/// The version of cargo-deny.
const VERSION: &str = "0.20.2";

/// The manifests of all workspaces, each with its own lock file.
const MANIFESTS: [&str; 3] = ["Cargo.toml", "tests/spec-tests/Cargo.toml", "tests/fuzz/Cargo.toml"];

/// The variable that names a clone of the advisory database, for machines without access to the one of `deny.toml`.
const DATABASE: &str = "WEIR_ADVISORY_DB";

/// The advisory database that `deny.toml` names.
const DATABASE_URL: &str = "https://github.com/rustsec/advisory-db";

/// Seconds that fetching the database may take.
const FETCH_TIMEOUT_S: u32 = 120;

/// Checks every manifest.
pub(crate) fn check() -> Result<()> {
    let program = tools::of_cargo("cargo-deny", VERSION)?;
    fetch_database(&program)?;
    for manifest in MANIFESTS {
        // These lints would complain of what `deny.toml` skips for another manifest.
        let known = ["unmatched-skip", "unmatched-skip-root", "unnecessary-skip"];
        let check = |offline: &[&str], what: &[&str]| {
            let mut deny = Command::new(&program);
            deny.args(["--config", "deny.toml", "--locked", "--manifest-path", manifest]).args(offline);
            deny.arg("check").args(known.iter().flat_map(|lint| ["--allow", lint])).args(what);
            run(deny.current_dir(root()?))
        };
        check(&[], &["licenses", "sources", "bans"])?;
        check(&["--offline"], &["advisories"])?;
    }
    Ok(())
}

/// The clone that [`DATABASE`] names.
fn named_clone() -> Result<Option<PathBuf>> {
    let named = env::var_os(DATABASE);
    let found = named.map(|clone| {
        fs::canonicalize(&clone).with_context(|| format!("`{DATABASE}` names `{}`", clone.display()))
    });
    found.transpose()
}

/// Updates cargo-deny's copy of the advisory database: from the named clone, the network or, if that cannot be reached, the
/// kept advisories.
fn fetch_database(program: &Path) -> Result<()> {
    if let Some(clone) = named_clone()? {
        return run(&mut fetch(program, Some(&clone))?);
    }
    let fetched = fetch(program, None)?.output().context("cannot run `timeout`")?;
    if fetched.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&fetched.stderr);
    let why = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no answer in time");
    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let first_line = kept::database(directory.path())?;
    eprintln!(
        "`{DATABASE}` names no clone of {DATABASE_URL}, and {why}: `{}` is read. {first_line}",
        kept::FILE
    );
    run(&mut fetch(program, Some(directory.path()))?)
}

/// Fetches the database, or a clone in its place.
fn fetch(program: &Path, clone: Option<&Path>) -> Result<Command> {
    // Git would wait on a silent network without end, and would ask for a password.
    let mut fetch = Command::new("timeout");
    fetch.arg(FETCH_TIMEOUT_S.to_string()).arg(program).args(["fetch", "db"]);
    fetch.current_dir(root()?).env("GIT_TERMINAL_PROMPT", "0").stdin(Stdio::null());
    if let Some(clone) = clone {
        fetch.env("GIT_CONFIG_COUNT", "1").env("GIT_CONFIG_VALUE_0", DATABASE_URL);
        fetch.env("GIT_CONFIG_KEY_0", format!("url.file://{}.insteadOf", clone.display()));
    }
    Ok(fetch)
}
