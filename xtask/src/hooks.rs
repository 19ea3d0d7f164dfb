//! Runs hooks written in C, Go and Rust in one directory, and compares the exit codes that arrive.

use std::{path::PathBuf, process::Command};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{demo::weir, files, guests, run::target_dir};

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
    files::clear(&dir)?;

    let mut hooks = vec![Hook { file: "10-c.wasm", told_by: ("CODE_10", "") }];
    files::copy(&guests::build_foreign("c-hook", &target.join("c-guest"))?, &dir.join("10-c.wasm"))?;
    if guests::has_go() {
        hooks.push(Hook { file: "20-go.wasm", told_by: ("CODE_20", "") });
        files::copy(&guests::build_foreign("go-hook", &target.join("go-guest"))?, &dir.join("20-go.wasm"))?;
    } else {
        eprintln!("there is no `go` of 1.21 or later: going on with C and Rust");
    }
    hooks.push(Hook { file: "30-rust.wasm", told_by: ("DO_30", "exit ") });
    files::copy(&guests::test_guest("hook")?, &dir.join("30-rust.wasm"))?;
    Ok(hooks)
}
