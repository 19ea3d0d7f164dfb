//! Runs hooks written in C, Go and Rust in one directory, and compares the exit codes that arrive.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    demo::weir,
    foreign_guests, guests,
    run::{cargo, run, target_dir},
};

/// Exit codes, their outcomes, and whether the next hook runs.
const CODES: [(u8, &str, bool); 4] =
    [(0, "ok", true), (7, "script-error", false), (33, "warning", true), (100, "script-error", false)];

/// Builds the hooks, and lets each exit with each code.
pub(crate) fn check() -> Result<()> {
    let directory = Directory { weir: weir::build()?, dir: target_dir()?.join("hooks"), hooks: gather()? };
    for (place, hook) in directory.hooks.iter().enumerate() {
        for (code, outcome, goes_on) in CODES {
            let report = directory.run(&hook.exits_with(code))?;
            let runs = report.get("hooks").and_then(Value::as_array).context("the report has no `hooks`")?;
            let run = runs.get(place).with_context(|| format!("`{}` was not run: {report}", hook.file))?;
            let is = (&run["hook"], &run["outcome"], run["code"].as_u64().unwrap_or(0));
            ensure!(
                is == (&json!(hook.file), &json!(outcome), u64::from(code)),
                "`{}` is to exit with {code}, and this arrives: {run}",
                hook.file
            );
            let printed = run["stdout"].as_str().unwrap_or_default();
            ensure!(!printed.is_empty(), "`{}` has not printed what it had when it exited: {run}", hook.file);
            let expected = if goes_on { directory.hooks.len() } else { place + 1 };
            ensure!(runs.len() == expected, "after {code} of `{}`: {report}", hook.file);
        }
    }
    Ok(())
}

/// A hook that exits with the code in a variable.
struct Hook {
    file: &'static str,
    /// The variable, and the text before the code in its value.
    told_by: (&'static str, &'static str),
}

impl Hook {
    fn exits_with(&self, code: u8) -> String {
        let (variable, before) = self.told_by;
        format!("{variable}={before}{code}")
    }
}

struct Directory {
    weir: PathBuf,
    dir: PathBuf,
    hooks: Vec<Hook>,
}

impl Directory {
    fn run(&self, parameter: &str) -> Result<Value> {
        let output = Command::new(&self.weir)
            .args(["hooks", "run", "--json", "--param", "NODE=n1", "--param", parameter])
            .arg(&self.dir)
            .env("CACHE_DIRECTORY", target_dir()?.join("demo/cache"))
            .output()
            .with_context(|| format!("cannot start `{}`", self.weir.display()))?;
        serde_json::from_slice(&output.stdout).with_context(|| {
            format!("`weir hooks run` reported nothing: {}", String::from_utf8_lossy(&output.stderr))
        })
    }
}

/// Builds the hooks into `target/hooks`.
fn gather() -> Result<Vec<Hook>> {
    let target = target_dir()?;
    let dir = target.join("hooks");
    if dir.exists() {
        fs::remove_dir_all(&dir).with_context(|| format!("cannot clear `{}`", dir.display()))?;
    }
    fs::create_dir_all(&dir).with_context(|| format!("cannot make `{}`", dir.display()))?;

    let mut hooks = vec![Hook { file: "10-c.wasm", told_by: ("CODE_10", "") }];
    copy(&foreign_guests::build("c-hook", &target.join("c-guest"))?, &dir.join("10-c.wasm"))?;
    if foreign_guests::has_go() {
        hooks.push(Hook { file: "20-go.wasm", told_by: ("CODE_20", "") });
        copy(&foreign_guests::build("go-hook", &target.join("go-guest"))?, &dir.join("20-go.wasm"))?;
    } else {
        eprintln!("there is no `go` of 1.21 or later: going on with C and Rust");
    }
    guests::add_target()?;
    run(cargo(["build", "--target", guests::TARGET, "--profile", "guest"])?.args([
        "--package",
        "test-guests",
        "--bin",
        "hook",
    ]))?;
    hooks.push(Hook { file: "30-rust.wasm", told_by: ("DO_30", "exit ") });
    copy(&target.join(guests::TARGET).join("guest/hook.wasm"), &dir.join("30-rust.wasm"))?;
    Ok(hooks)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).with_context(|| format!("cannot copy `{}`", from.display()))?;
    Ok(())
}
