//! Test scripts that others wrote for the component model, run through the configuration of Weir's engines.
//!
//! They are read where `WEIR_SPEC_TESTS` says, else in `shared/spec-tests` beside the repository; where that
//! is absent, nothing is tested and a line says so. Each script passes, or is listed (`off.rs`) with what
//! it needs and Weir's engines do not have: then it fails for want of each of that, and passes with all.

#[path = "../../../../host/guest/src/engine/config.rs"]
mod config;
mod off;

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, Result, bail, ensure};
use libtest_mimic::{Arguments, Trial};
use wasmtime::{Engine, Store};
use wasmtime_wast::{Async, SpectestConfig, WastContext};

use self::off::{NEEDS, Need};

/// Names the directory of the scripts.
const VARIABLE: &str = "WEIR_SPEC_TESTS";

/// Bytes of a guest's stack, and of the host's on top of it: those of the class `medium`.
const STACK: usize = 1024 * 1024;

/// Units of fuel between two yields, as Weir has it.
const FUEL_SLICE: u64 = 100_000;

fn main() -> Result<ExitCode> {
    let arguments = Arguments::from_args();
    let Some(directory) = directory()? else { return Ok(ExitCode::SUCCESS) };
    let scripts = scripts(&directory)?;
    let needs: BTreeMap<_, _> = NEEDS.into_iter().collect();
    let mut trials: Vec<_> = needs
        .keys()
        .filter(|listed| !scripts.contains_key(**listed))
        .map(|listed| Trial::test(*listed, || Err("listed in `off.rs`, and there is no such script".into())))
        .collect();
    for (name, path) in scripts {
        let needs = needs.get(&*name).copied().unwrap_or_default();
        let check = move || check(&path, needs).map_err(|error| format!("{error:#}").into());
        trials.push(Trial::test(name, check));
    }
    Ok(libtest_mimic::run(&arguments, trials).exit_code())
}

/// Where the scripts are, if they are there.
fn directory() -> Result<Option<PathBuf>> {
    if let Some(named) = env::var_os(VARIABLE) {
        let named = PathBuf::from(named);
        ensure!(named.is_dir(), "`{VARIABLE}` names `{}`, which is no directory", named.display());
        return Ok(Some(named));
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/spec-tests");
    if beside.is_dir() {
        return Ok(Some(beside));
    }
    eprintln!("skipped: no scripts in `{}`; set `{VARIABLE}` to where they are", beside.display());
    Ok(None)
}

/// The scripts below the directory, by their paths in it.
fn scripts(directory: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut scripts = BTreeMap::new();
    let mut unread = vec![directory.to_owned()];
    while let Some(next) = unread.pop() {
        let cannot_read = || format!("cannot read `{}`", next.display());
        for entry in fs::read_dir(&next).with_context(cannot_read)? {
            let path = entry.with_context(cannot_read)?.path();
            if path.is_dir() {
                unread.push(path);
            } else if path.extension().is_some_and(|extension| extension == "wast") {
                scripts.insert(path.strip_prefix(directory)?.display().to_string(), path);
            }
        }
    }
    ensure!(!scripts.is_empty(), "no `*.wast` below `{}`", directory.display());
    Ok(scripts)
}

/// The script passes with all that it needs and Weir's engines do not have, and with nothing less.
fn check(script: &Path, needs: &[Need]) -> Result<()> {
    for missing in needs {
        let others: Vec<_> = needs.iter().filter(|need| *need != missing).copied().collect();
        let Err(error) = run(script, &others) else {
            bail!("passes without {missing:?}: take that out of its line in `off.rs`");
        };
        let error = format!("{error:#}");
        ensure!(
            missing.says().iter().any(|said| error.contains(said)),
            "fails without {missing:?}, but not for want of it: {error}"
        );
    }
    if needs.contains(&Need::NewerRule) {
        return Ok(());
    }
    run(script, needs).with_context(|| format!("fails with {needs:?} on top"))
}

/// Runs the script in an engine of Weir's with this on top.
fn run(script: &Path, additions: &[Need]) -> Result<()> {
    let mut config = config::config(STACK, STACK);
    for addition in additions {
        addition.turn_on(&mut config);
    }
    let mut context = WastContext::new(&Engine::new(&config)?, Async::Yes, |store| {
        has_all_fuel(store).unwrap_or_else(|error| panic!("no fuel: {error:#}"));
    });
    let hosts = SpectestConfig { use_shared_memory: false, suppress_prints: true };
    let registered = context.register_spectest(&hosts);
    if additions.contains(&Need::TestHost) {
        // Else it ends at the first function for components, when those for core modules are in place.
        registered?;
    }
    context.register_wasmtime()?;
    context.ignore_error_messages(additions.contains(&Need::OtherWords));
    Ok(context.run_file(script)?)
}

fn has_all_fuel(store: &mut Store<()>) -> wasmtime::Result<()> {
    store.set_fuel(u64::MAX)?;
    store.fuel_async_yield_interval(Some(FUEL_SLICE))
}
