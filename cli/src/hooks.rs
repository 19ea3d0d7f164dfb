//! `weir hooks`: runs a directory of hooks in this process.
//!
//! A signal ends the process: the hooks are sandboxed and leave nothing to clean up.

use std::{
    error::Error,
    path::{self, Path, PathBuf},
};

use anyhow::Context;
use weir_host::{
    Config, Main, MainConfig,
    blocking::{BlockingError, wait},
    hooks::{HookCall, HookDirConfig, HookError, HooksConfig},
    names::HookDirName,
};

use crate::{
    args::HooksRunArgs,
    compilation::compilation,
    configuration,
    exit::{HookFailed, Usage},
    output::{self, printable},
    payload::{self, payload},
    progress, tables,
};

pub(crate) fn run(args: &HooksRunArgs) -> anyhow::Result<()> {
    let (name, config) = match &args.config {
        Some(file) => configured(file, &args.which)?,
        None => asked_for(args)?,
    };
    let call = call(args)?;
    let suffixes = config
        .section::<HooksConfig>()
        .and_then(|hooks| hooks.0.get(&name))
        .map(|dir| dir.suffixes.clone())
        .unwrap_or_default();
    let what = format!("running the hooks of `{}`", printable(&args.which.display().to_string()));
    let report = progress::during(&what, || {
        let main = wait(Main::builder(config).compilation(compilation()).start()).map_err(of_call)?;
        main.hooks().get(name.as_str())?.run_blocking(call).map_err(of_call)
    })?;
    if args.json {
        output::json(&report)?;
    } else if report.runs.is_empty() {
        output::line(&tables::no_hooks(&args.which, &suffixes))?;
    } else {
        output::write(tables::hooks(&report)?.as_bytes())?;
    }
    if report.is_success() { Ok(()) } else { Err(HookFailed(report.outcome().clone()).into()) }
}

fn configured(file: &Path, name: &Path) -> anyhow::Result<(HookDirName, Config)> {
    let config = configuration::load(file)?;
    let hooks = config.section::<HooksConfig>().cloned().unwrap_or_default().0;
    let found = hooks.into_iter().find(|(known, _)| Path::new(known.as_str()) == name);
    let (name, dir) = found.ok_or_else(|| HookError::Unknown(name.display().to_string()))?;
    Ok((name.clone(), alone(config.main, name, dir)))
}

/// The hooks of a directory without a configuration. They have the class as a file would set it.
fn asked_for(args: &HooksRunArgs) -> anyhow::Result<(HookDirName, Config)> {
    let text = format!("hooks.run = {{ dir = \".\", class = \"{}\" }}", args.class);
    let config = weir_host::parse(&text, "weir hooks run", Path::new("."))?;
    let mut hooks = config.section::<HooksConfig>().cloned().unwrap_or_default().0;
    let (name, mut dir) = hooks.pop_first().context("nothing is configured")?;
    dir.dir = absolute(&args.which)?;
    dir.grants.dirs.clone_from(&args.dirs);
    for granted in &mut dir.grants.dirs {
        granted.host = absolute(&granted.host)?;
    }
    if let Some(timeout) = args.timeout {
        dir.timeout = timeout.into();
    }
    if let Some(timeout) = args.total_timeout {
        dir.total_timeout = timeout.into();
    }
    if !args.suffixes.is_empty() {
        dir.suffixes.clone_from(&args.suffixes);
    }
    let config = alone(config.main, name.clone(), dir);
    config.check().map_err(|errors| Usage(errors.to_string()))?;
    Ok((name, config))
}

/// Makes paths absolute, as those of files are. Overlaps are found by comparing text.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    path::absolute(path).with_context(|| format!("cannot find the directory `{}`", path.display()))
}

fn alone(mut main: MainConfig, name: HookDirName, dir: HookDirConfig) -> Config {
    main.serves.clear();
    let mut config = Config::new(main, Vec::new());
    config.set_section(HooksConfig::from_iter([(name, dir)]));
    config
}

fn call(args: &HooksRunArgs) -> anyhow::Result<HookCall> {
    let mut call = HookCall::new();
    call.params.extend(args.params.iter().cloned());
    call.env.extend(args.env.iter().cloned());
    call.args.clone_from(&args.args);
    call.stdin = match args.stdin.as_deref() {
        Some("-") => payload(Some("-"))?,
        Some(path) => payload::file(path)?,
        None => payload(None)?,
    };
    Ok(call)
}

/// Removes the layer that says the call was blocking.
fn of_call<E: Error + Send + Sync + 'static>(error: BlockingError<E>) -> anyhow::Error {
    match error {
        BlockingError::Call(error) => error.into(),
        BlockingError::InAsync => error.into(),
    }
}
