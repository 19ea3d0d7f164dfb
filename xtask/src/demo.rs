//! The demo: Main with every extension of `plugins/`, and calls across several of them.

pub(crate) mod app;
pub(crate) mod fleet;
pub(crate) mod weir;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use self::{
    app::{App, Ports},
    weir::RunningWeir,
};
use crate::{
    files,
    {guests, run::target_dir},
};

/// Runs the demo until Ctrl-C. With `check`, ends after comparing the answers with this machine.
pub(crate) fn demo(check: bool) -> Result<()> {
    println!("Building the extensions and the `weir` command …");
    guests::plugins()?;
    let weir = weir::build()?;
    clear_storage()?;
    // Another program may have the ports that the documentation shows.
    let app = App::start(&weir, if check { Ports::Free } else { Ports::Shown })?;
    let mut main = RunningWeir::start(&weir, app.config())?;
    println!("\nMain is up. What runs:\n\n{}", main.run(&["ps"])?);
    let answers = Answers::gather(&main)?;
    if check {
        answers.compare()?;
        app.check(&main)?;
        println!("\nAll answers agree with what this machine says itself.");
        main.check_idle()?;
        main.shut_down()?;
        return Ok(());
    }
    println!("\nOpen the app in a browser: {}", app.origin());
    println!("\nTry from a second terminal, in this directory:\n");
    let socket = main.socket().display();
    for command in [
        "ps",
        "call device.info@1 memory",
        "call settings@1 set '{\"key\": \"volume\", \"value\": 11}'",
        "tail 'settings.>'",
        "status storage",
        "logs --follow",
        "shutdown",
    ] {
        println!("    {} {command} --socket {socket}", weir.display());
    }
    println!("\nCtrl-C stops Main.");
    main.wait()
}

/// Makes the directory of the demo, and removes that of the stores in it, so that each demo starts without values.
pub(crate) fn clear_storage() -> Result<()> {
    let demo = target_dir()?.join("demo");
    files::make_directory(&demo)?;
    let data = demo.join("data");
    files::clear(&data)?;
    Ok(())
}

/// Starts Main with the extension written in C, and checks its answers.
pub(crate) fn check_c_guest(component: &Path) -> Result<()> {
    let weir = weir::build()?;
    let directory = component.parent().context("the component lies in no directory")?;
    let config = directory.join("weir.toml");
    let text = "[main]\ncontrol-socket = \"weir.sock\"\n\n[[extension]]\nid = \"hello\"\npath = \"hello.wasm\"\n\
                fulfills = [\"hello.c@1\"]\n";
    files::write(&config, text)?;
    let mut main = RunningWeir::start(&weir, &config)?;
    let greeting = main.run(&["call", "--raw", "hello.c@1", "greet", "weir"])?;
    ensure!(greeting.trim() == "hello, weir", "`greet` answered `{greeting}`");
    let refusal = main.run(&["call", "hello.c@1", "fail"]).err().context("`fail` did not fail")?;
    ensure!(refusal.to_string().contains("asked"), "`fail` failed otherwise: {refusal}");
    main.shut_down()
}

#[derive(Debug)]
struct Answers {
    memory: Value,
    os: Value,
    cpu: Value,
    previous: Value,
    stored: Value,
    setting: Value,
    snapshot: Value,
}

impl Answers {
    fn gather(main: &RunningWeir) -> Result<Self> {
        let call = |contract: &str, operation: &str, arguments: Value| -> Result<Value> {
            let answer = main.call(contract, operation, &arguments)?;
            println!("  {contract} {operation} {arguments}\n    → {answer}");
            Ok(answer)
        };
        println!("Main asks `device-info`, which reads this machine's files through its grants:\n");
        let memory = call("device.info@1", "memory", json!({}))?;
        let os = call("device.info@1", "os", json!({}))?;
        let cpu = call("device.info@1", "cpu", json!({}))?;
        println!(
            "\nMain sets a setting: `settings` keeps it through `storage`, which writes it to disk, and\n\
             publishes the change, which `telemetry` counts:\n"
        );
        let previous = call("settings@1", "set", json!({"key": "volume", "value": 7}))?;
        call("settings@1", "set", json!({"key": "volume", "value": 8}))?;
        let setting = call("settings@1", "get", json!({"key": "volume"}))?;
        let stored = call("local.storage@1", "list", json!({"prefix": ""}))?;
        let snapshot = call("telemetry@1", "snapshot", json!({}))?;
        Ok(Self { memory, os, cpu, previous, stored, setting, snapshot })
    }

    /// Compares the answers with the machine's own files, and with what was set before.
    #[expect(clippy::indexing_slicing, reason = "indexing a JSON value yields null for what it lacks")]
    fn compare(&self) -> Result<()> {
        let total = proc_value("/proc/meminfo", "MemTotal:")?;
        let total: u64 = total.trim_end_matches("kB").trim().parse()?;
        ensure!(
            self.memory["total_kib"] == total,
            "memory: {} and not {total} KiB",
            self.memory["total_kib"]
        );
        let available = self.memory["available_kib"].as_u64().unwrap_or(u64::MAX);
        ensure!(available > 0 && available <= total, "memory: {available} KiB available of {total}");
        let model = proc_value("/proc/cpuinfo", "model name")?;
        let model = model.trim_start_matches(['\t', ' ', ':']);
        ensure!(self.cpu["model"] == model, "cpu: {} and not `{model}`", self.cpu["model"]);
        let name = proc_value("/etc/os-release", "PRETTY_NAME=")?;
        ensure!(
            self.os["pretty_name"] == name.trim_matches('"'),
            "os: {} and not {name}",
            self.os["pretty_name"]
        );

        ensure!(self.previous["previous"].is_null(), "a setting in an empty storage: {}", self.previous);
        ensure!(self.setting["value"] == 8, "setting: {}", self.setting);
        let keys = self.stored["keys"].as_array().context("`list` has no keys")?;
        ensure!(
            keys.iter().any(|key| key.as_str().is_some_and(|key| key.contains("volume"))),
            "storage has not got the setting: {}",
            self.stored
        );
        let counted = self.snapshot["topics"].as_array().into_iter().flatten();
        let changes = counted.filter(|topic| topic["topic"] == "settings.changed.volume");
        let changes: u64 = changes.filter_map(|topic| topic["count"].as_u64()).sum();
        ensure!(changes == 2, "telemetry counted {changes} changes and not 2: {}", self.snapshot);
        Ok(())
    }
}

/// The text after `key` at the start of a line of `file`.
fn proc_value(file: &str, key: &str) -> Result<String> {
    let text = files::read(file)?;
    let value = text.lines().find_map(|line| line.strip_prefix(key));
    Ok(value.with_context(|| format!("`{file}` has no `{key}`"))?.trim().to_owned())
}
