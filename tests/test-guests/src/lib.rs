//! Extensions and hooks for tests, well and badly behaved. The tests build them, and [`path`] finds them.

pub mod churn;
pub mod paths;
pub mod words;

use std::{
    collections::HashMap,
    path::PathBuf,
    process::{Command, ExitCode, Stdio},
    sync::OnceLock,
};

use serde_json::Value;
use weir_sdk::raw::{lifecycle, types::Options};

/// The operator's default timeout, and no parent request.
pub const PATIENT: Options = Options { timeout_ms: None, parent: None };

/// What the guest `updated` does, which [`updated`] writes into its bytes.
pub static VERSION: [u8; 32] = *b"the-version-is:good............:";

/// The component of the guest `updated` that does this.
///
/// # Panics
///
/// If the name is longer than 16 letters, or the component has no place for it.
#[must_use]
pub fn updated(name: &str) -> Vec<u8> {
    let mut component = std::fs::read(path("updated")).unwrap_or_else(|error| panic!("{error}"));
    let mut version = VERSION;
    let text = format!("the-version-is:{name:.<16}:");
    version.copy_from_slice(text.as_bytes());
    let places: Vec<_> =
        component.windows(VERSION.len()).enumerate().filter(|(_, bytes)| *bytes == VERSION).collect();
    let [(place, _)] = *places else { panic!("the name stands at {} places", places.len()) };
    component.splice(place..place + VERSION.len(), version);
    component
}

/// How often a test does what more of would only say again: `usual`, or `full` if `WEIR_TEST_AMOUNT` is `full`, as in the
/// group `soak` of `cargo xtask test --full`.
#[must_use]
pub fn amount(usual: u64, full: u64) -> u64 {
    if std::env::var_os("WEIR_TEST_AMOUNT").is_some_and(|amount| amount == "full") { full } else { usual }
}

/// What the manifest of the guest `updated` says of its data.
const DATA: &str = r#""version":"1.0.0","data-since":"1.0.0""#;

/// The component of [`updated`] that is this version of it, and says that older ones cannot read what it writes.
///
/// # Panics
///
/// If the version has not five letters, or the component has no place for it.
#[must_use]
pub fn updated_to(name: &str, version: &str) -> Vec<u8> {
    let mut component = updated(name);
    let data = DATA.replace("1.0.0", version);
    assert_eq!(data.len(), DATA.len(), "{version}");
    let windows = component.windows(DATA.len()).enumerate();
    let places: Vec<_> =
        windows.filter(|(_, bytes)| *bytes == DATA.as_bytes()).map(|(place, _)| place).collect();
    let [place] = *places else { panic!("the manifest stands at {} places", places.len()) };
    component.splice(place..place + DATA.len(), data.into_bytes());
    component
}

/// The exit code of a guest that ended like this. Tells Main of an error.
pub fn ended(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            lifecycle::error(&reason);
            ExitCode::FAILURE
        }
    }
}

/// Packages that are built: this crate, and the plugins and hooks that tests run, too.
const PACKAGES: [&str; 6] =
    ["test-guests", "keyvalue-guest", "echo", "storage", "telemetry", "example-hooks"];

/// The component of that name. The first call in a process builds all of them.
///
/// # Panics
///
/// If the build fails, or no component has that name.
#[must_use]
pub fn path(name: &str) -> PathBuf {
    static BUILT: OnceLock<HashMap<String, PathBuf>> = OnceLock::new();
    match BUILT.get_or_init(build).get(name) {
        Some(path) => path.clone(),
        None => panic!("there is no guest `{name}`"),
    }
}

/// The file of what Cargo said, if programs that run after one another share it: most then run no Cargo.
const SHARED: &str = "WEIR_TEST_GUESTS";

/// Builds the guests with the tests' cargo, and reads their paths from its output.
fn build() -> HashMap<String, PathBuf> {
    let shared = std::env::var_os(SHARED);
    let output = shared.as_ref().and_then(|file| std::fs::read(file).ok()).unwrap_or_else(|| {
        let output = run_cargo();
        if let Some(file) = &shared {
            // Another program may read it meanwhile.
            let own = format!("{}.{}", file.display(), std::process::id());
            let written = std::fs::write(&own, &output).and_then(|()| std::fs::rename(&own, file));
            written.unwrap_or_else(|error| panic!("{own}: {error}"));
        }
        output
    });
    String::from_utf8_lossy(&output)
        .lines()
        .filter_map(|line| {
            let message: Value = serde_json::from_str(line).ok()?;
            let name = message.get("target")?.get("name")?.as_str()?.to_owned();
            Some((name, PathBuf::from(message.get("executable")?.as_str()?)))
        })
        .collect()
}

fn run_cargo() -> Vec<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--bins", "--target", "wasm32-wasip2", "--profile", "guest"])
        .args(["--message-format", "json-render-diagnostics"])
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        .stderr(Stdio::inherit())
        .output();
    match output {
        Ok(output) if output.status.success() => output.stdout,
        Ok(output) => panic!("the guests do not build: {}", output.status),
        Err(error) => panic!("cannot run cargo: {error}"),
    }
}
