//! `weir hooks`, which needs no Main.

use std::{
    ffi::OsStr,
    fs::{self, File},
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, symlink},
        process::ExitStatusExt,
    },
    path::Path,
    process::Stdio,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use super::support::{Done, Running, assert_golden, configured, done, own_cache, until, weir};

fn hooks(names: &[&str]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let hooks = dir.path().join("hooks.d");
    fs::create_dir(&hooks).unwrap();
    for name in names {
        fs::copy(test_guests::path("hook"), hooks.join(name)).unwrap();
    }
    dir
}

fn run(dir: &Path, args: &[&str]) -> Done {
    done(weir(dir).args(["hooks", "run"]).args(args))
}

fn told(task: &str, args: &[&str]) -> Done {
    let dir = hooks(&["10-hook.wasm"]);
    let task = format!("DO={task}");
    run(dir.path(), &[&["hooks.d", "--param", &task], args].concat())
}

fn timeless(text: &str) -> String {
    let is_number = |word: &str| word.parse::<f64>().is_ok();
    let unit = |word: &str| word.trim_end().trim_end_matches([',', ';']).to_owned();
    let mut timeless = String::new();
    let mut words = text.split_inclusive([' ', '\n']).peekable();
    while let Some(word) = words.next() {
        match words.next_if(|next| is_number(word.trim()) && matches!(&*unit(next), "ms" | "s")) {
            Some(next) => timeless.push_str(&next.replacen(&unit(next), "TIME", 1)),
            None => timeless.push_str(word),
        }
    }
    // Shown only on a slow machine with an empty cache.
    timeless.replace(", of which TIME to load it", "")
}

#[test]
fn hooks_run_in_order_until_one_fails_and_the_report_says_how() {
    let names = ["20-warns.wasm", "10-is-well.wasm", "30-reads.wasm", "50-fails.wasm", "60-is-left-out.wasm"];
    let dir = hooks(&names);
    // A file with another suffix, and a hook that is disabled.
    fs::write(dir.path().join("hooks.d/00-script.sh"), "exit 1").unwrap();
    fs::write(dir.path().join("hooks.d/.05-aside.wasm"), "").unwrap();
    fs::write(dir.path().join("stdin"), "one\n\x1b[2J  \u{202e}two\nthree").unwrap();
    let params = ["--param", "DO_20=exit 33", "--param", "DO_30=cat", "--param", "DO_50=fail"];
    let ran = run(dir.path(), &[&["hooks.d", "--stdin", "stdin"], &params[..]].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (7, ""));
    assert_golden("hooks", &timeless(&ran.stdout));
}

#[test]
fn all_well_or_with_a_warning_is_a_success() {
    let dir = hooks(&["10-is-well.wasm", "20-warns.wasm"]);
    let report = run(dir.path(), &["hooks.d"]).good();
    assert!(timeless(&report).ends_with("\n2 hooks, in TIME\n"), "{report}");
    let report = run(dir.path(), &["hooks.d", "--param", "DO_20=exit 63"]).good();
    assert!(timeless(&report).ends_with("\n2 hooks, 1 warning, in TIME\n"), "{report}");
}

#[test]
fn every_other_end_has_words_and_an_exit_code() {
    let mut ends = String::new();
    for (task, args) in [
        ("exit 100", &[][..]),
        ("trap", &[]),
        ("loop", &["--class", "min"]),
        ("allocate", &["--class", "min"]),
        ("sleep 3600", &["--timeout", "200ms"]),
        ("sleep 3600", &["--total-timeout", "2s"]),
    ] {
        let Done { code, stdout, stderr } = told(task, args);
        assert_eq!(stderr, "");
        ends.push_str(&format!("{task} {}\n{}-> {code}\n\n", args.join(" "), timeless(&stdout)));
    }
    let dir = hooks(&[]);
    fs::write(dir.path().join("hooks.d/10-broken.wasm"), "#!/bin/sh\nexit 0\n").unwrap();
    let Done { code, stdout, .. } = run(dir.path(), &["hooks.d"]);
    let stdout = timeless(&stdout).replace(&dir.path().display().to_string(), "HERE");
    ends.push_str(&format!("broken\n{stdout}-> {code}\n"));
    assert_golden("hooks-ends", &ends);
}

#[test]
fn programs_get_the_report_as_json() {
    let dir = hooks(&["10-warns.wasm", "20-traps.wasm"]);
    let args = ["hooks.d", "--json", "--param", "DO_10=exit 40", "--param", "DO_20=trap"];
    let Done { code, stdout, stderr } = run(dir.path(), &args);
    assert_eq!((code, stderr.as_str()), (1, ""));
    let mut report: Value = serde_json::from_str(&stdout).unwrap();
    // Values that differ between runs: only their presence counts.
    let anything = |value: &mut Value| {
        assert!(value.as_u64().is_some_and(|value| value > 0), "{value}");
        *value = Value::Null;
    };
    anything(&mut report["duration-us"]);
    for hook in report["hooks"].as_array_mut().unwrap() {
        assert!(hook["loading-us"].as_u64() <= hook["duration-us"].as_u64(), "{hook}");
        for key in ["duration-us", "loading-us", "fuel", "memory"] {
            anything(&mut hook[key]);
        }
    }
    assert_golden("hooks-json", &serde_json::to_string_pretty(&report).unwrap());
}

#[test]
fn hooks_find_what_is_named_and_nothing_of_the_environment() {
    let dir = hooks(&["10-hook.wasm"]);
    let mut command = weir(dir.path());
    command.env("SECRET", "1").args(["hooks", "run", "hooks.d"]);
    command.args(["--param", "DO=env", "--param", "NODE=n=1", "--env", "NODE=no", "--env", "PLACE=here"]);
    let report = done(&mut command).good();
    let found: Vec<_> = report.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert_eq!(found, ["DO=env", "NODE=n=1", "PLACE=here"]);

    let report = told("args", &["--arg", "-v", "--arg", "a b"]).good();
    let found: Vec<_> = report.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert_eq!(found, ["10-hook.wasm", "-v", "a b"]);

    let stdin = dir.path().join("stdin");
    fs::write(&stdin, "from a file").unwrap();
    let mut command = weir(dir.path());
    command.args(["hooks", "run", "hooks.d", "--param", "DO=cat", "--stdin", "-"]);
    let report = done(command.stdin(File::open(stdin).unwrap())).good();
    assert!(report.contains("\n    from a file\n"), "{report}");
}

#[test]
fn a_directory_is_granted_for_reading_or_for_writing() {
    let dir = hooks(&["10-hook.wasm"]);
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let write = ["hooks.d", "--param", "DO=write /data/file text"];
    assert_eq!(run(dir.path(), &write).code, 7);
    assert_eq!(run(dir.path(), &[&write[..], &["--dir", "data:/data"]].concat()).code, 7);
    run(dir.path(), &[&write[..], &["--dir", "data:/data:rw"]].concat()).good();
    assert_eq!(fs::read_to_string(data.join("file")).unwrap(), "text");
    run(dir.path(), &["hooks.d", "--param", "DO=open /data/file", "--dir", "data:/data:ro"]).good();
}

#[test]
fn a_configuration_says_how_its_hooks_run() {
    let dir = hooks(&["10-hook.test", "20-hook.wasm"]);
    let config = r#"
        [main]
        serves = ["platform.info@1"]

        [[extension]]
        id = "absent"
        path = "absent.wasm"

        [hooks.nodes]
        dir = "hooks.d"
        suffixes = [".test"]
        grants.env = { PLACE = "here" }
        exit-codes = { ok = "0-9", error = "10-31" }

        [hooks.others]
        dir = "others.d"
        "#;
    fs::write(dir.path().join("weir.toml"), config).unwrap();
    let config = ["--config", "weir.toml", "nodes"];
    let report = run(dir.path(), &[&config[..], &["--param", "DO=env"]].concat()).good();
    assert_eq!(timeless(&report), "10-hook.test  ok, TIME\n    DO=env\n    PLACE=here\n1 hook, in TIME\n");
    let report = run(dir.path(), &[&config[..], &["--param", "DO=exit 9"]].concat()).good();
    assert!(report.starts_with("10-hook.test  ok, "), "{report}");
    assert!(!dir.path().join("weir").exists(), "it served a control interface");

    let others = run(dir.path(), &["--config", "weir.toml", "others"]);
    assert_eq!((others.code, others.stdout.as_str()), (1, ""));
    assert!(others.stderr.starts_with("error: cannot read the directory `"), "{}", others.stderr);
    let unknown = run(dir.path(), &["--config", "weir.toml", "node"]);
    let expected = "error: no hooks `node` are configured: add `[hooks.node]`\n";
    assert_eq!((unknown.code, unknown.stderr.as_str()), (4, expected));
}

#[test]
fn a_configuration_gives_its_hooks_their_stores() {
    let dir = hooks(&[]);
    fs::copy(test_guests::path("keyvalue"), dir.path().join("hooks.d/10-keeps.wasm")).unwrap();
    let config = r#"
        [main]
        data-dir = "data"

        [store.kept]

        [hooks.nodes]
        dir = "hooks.d"
        grants.stores = ["kept"]
        "#;
    fs::write(dir.path().join("weir.toml"), config).unwrap();
    fs::create_dir(dir.path().join("data")).unwrap();
    let args = ["--config", "weir.toml", "nodes", "--param"];
    run(dir.path(), &[&args[..], &["DO=set kept name Ada"]].concat()).good();
    let report = run(dir.path(), &[&args[..], &["DO=get kept name"]].concat()).good();
    assert!(report.contains("Ada"), "{report}");
}

#[test]
fn what_a_hook_is_refused_is_told_with_the_key_that_would_allow_it() {
    let none = told("connect 127.0.0.1:9", &[]);
    let said = "TCP was refused: `grants.net` has no entry for TCP (1 so far)";
    assert!(none.stderr.contains(" WARN ") && none.stderr.contains(said), "{}", none.stderr);
    assert!(none.stdout.contains("127.0.0.1:9"), "{}", none.stdout);

    let dir = hooks(&["10-hook.wasm"]);
    let config = "[hooks.nodes]\ndir = \"hooks.d\"\ngrants.net = [\"127.0.0.1:9\"]\n";
    fs::write(dir.path().join("weir.toml"), config).unwrap();
    let of_file = ["--config", "weir.toml", "nodes", "--param"];
    let other = run(dir.path(), &[&of_file[..], &["DO=connect 127.0.0.2:9"]].concat());
    let said = "TCP to `127.0.0.2:9` was refused: no entry of `grants.net` is for it (1 so far)";
    assert!(other.stderr.contains(said), "{}", other.stderr);
    let granted = run(dir.path(), &[&of_file[..], &["DO=connect 127.0.0.1:9"]].concat());
    assert!(!granted.stderr.contains("refused:"), "{}", granted.stderr);
}

#[test]
fn the_output_of_hooks_has_a_bound_of_the_caller() {
    let ran = told("flood", &["--output", "1KiB"]);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stdout.contains("used of 1.0 KiB"), "{}", ran.stdout);
    assert_eq!(told("flood", &["--output", "17MiB"]).code, 2);
}

#[test]
fn a_main_that_runs_has_its_hooks_run_by_a_call() {
    let dir = hooks(&["10-hook.wasm"]);
    fs::write(dir.path().join("weir.toml"), "[hooks.nodes]\ndir = \"hooks.d\"\n").unwrap();
    let main = Running::start(dir);
    let called = |payload: &str| main.weir(&["call", "--timeout", "1m", "hooks@1", "run", payload]);
    let report = called(r#"{"hooks":"nodes","params":{"DO":"exit 33"}}"#).good();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["outcome"], &report["hooks"][0]["code"]), (&"warning".into(), &33.into()));
    let unknown = called(r#"{"hooks":"node"}"#);
    assert_eq!(unknown.code, 7, "{}", unknown.stderr);
    assert!(unknown.stderr.contains("no hooks `node` are configured"), "{}", unknown.stderr);
}

#[test]
fn a_directory_that_hooks_could_break_out_of_is_refused() {
    let dir = hooks(&["10-hook.wasm"]);
    own_cache(dir.path());
    let mut refusals = String::new();
    for granted in [".:/data:rw", "cache:/data:rw", "./hooks.d/below/../:/data:rw"] {
        let Done { code, stdout, stderr } = run(dir.path(), &["hooks.d", "--dir", granted]);
        assert_eq!((code, stdout.as_str()), (2, ""), "{stderr}");
        refusals.push_str(&stderr.replace(&dir.path().display().to_string(), "HERE"));
    }
    assert_golden("hooks-refused", &refusals);
    run(dir.path(), &["hooks.d", "--dir", "hooks.d:/data"]).good();
}

#[test]
fn limits_of_the_environment_are_heeded() {
    let dir = hooks(&["10-hook.wasm"]);
    let mut command = weir(dir.path());
    command.args(["hooks", "run", "hooks.d", "--param", "DO=loop"]);
    let ran = done(command.env("WEIR_LIMITS_MEDIUM_FUEL_TO_START", "1_000_000"));
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stdout.contains("fuel-to-start: 1000000 used of 1000000"), "{}", ran.stdout);
}

#[test]
fn a_directory_without_hooks_says_so() {
    let dir = hooks(&[]);
    let none = "`hooks.d` has no hooks: no file name ends with `.wasm` or `.cwasm`\n";
    assert_eq!(run(dir.path(), &["hooks.d"]).good(), none);
    let none = "`hooks.d` has no hooks: no file name ends with `.hook`\n";
    assert_eq!(run(dir.path(), &["hooks.d", "--suffix", ".hook"]).good(), none);
}

#[test]
fn what_was_compiled_serves_the_next_run() {
    let dir = hooks(&["10-hook.wasm", "20-hook.wasm"]);
    own_cache(dir.path());
    let cached = || -> Vec<_> {
        let files = fs::read_dir(dir.path().join("cache")).unwrap().map(|file| file.unwrap());
        files.map(|file| (file.file_name(), file.metadata().unwrap().ino())).collect()
    };
    run(dir.path(), &["hooks.d"]).good();
    let before = cached();
    assert_eq!(before.len(), 2, "the key and one entry: {before:?}");
    run(dir.path(), &["hooks.d"]).good();
    assert_eq!(cached(), before);
}

#[test]
fn a_signal_ends_the_run_at_once() {
    let dir = hooks(&["10-hook.wasm", "20-hook.wasm"]);
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut command = weir(dir.path());
    command.args(["hooks", "run", "hooks.d", "--dir", "data:/data:rw"]);
    command.args(["--param", "DO_10=write /data/first text", "--param", "DO_20=sleep 3600"]);
    let mut child = command.args(["--timeout", "1h", "--total-timeout", "1h"]).spawn().unwrap();
    let begun = Instant::now();
    while !data.join("first").exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the first hook does not come to its end");
        thread::yield_now();
    }
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}

#[test]
fn a_hook_that_fails_in_main_leaves_a_line_in_the_log_a_count_and_a_span_that_is_not_ok() {
    let dir = configured(
        "request-timeout = \"60s\"\ntrace-one-in = 1\n[hooks.init]\ndir = \"hooks.d\"\n[hooks.gone]\ndir = \"gone\"\n",
    );
    fs::create_dir(dir.path().join("hooks.d")).unwrap();
    for name in ["10-is-well.wasm", "50-fails\n.wasm"] {
        fs::copy(test_guests::path("hook"), dir.path().join("hooks.d").join(name)).unwrap();
    }
    fs::write(dir.path().join("hooks.d/60-is-none.wasm"), "text").unwrap();
    let mut main = Running::start(dir);
    let run = |main: &Running, params: &str| {
        let asked = format!("{{\"hooks\": \"init\", \"params\": {{{params}}}}}");
        main.weir(&["call", "hooks@1", "run", &asked]).good()
    };
    assert!(run(&main, "\"DO_50\": \"fail\"").contains("script-error"));
    let line = main.until("the hook ");
    let said = "WARN the hook `50-fails\\n.wasm` of `hooks.init` ended with script-error: exit code 1; its last line: ";
    assert!(line.contains(said) && line.contains("it fails, as told"), "{line}");
    run(&main, "");
    let line = main.until("the hook ");
    assert!(line.contains("`60-is-none.wasm` of `hooks.init` ended with system-error: "), "{line}");
    assert_ne!(main.weir(&["call", "hooks@1", "run", "{\"hooks\": \"gone\"}"]).code, 0);
    main.until("the hooks of `hooks.gone` did not run: cannot read the directory");

    let metrics = main.weir(&["metrics"]).good();
    for (hook, outcome, runs) in [
        ("10-is-well.wasm", "ok", 2),
        ("50-fails\\\\n.wasm", "script-error", 1),
        ("50-fails\\\\n.wasm", "ok", 1),
        ("60-is-none.wasm", "system-error", 1),
    ] {
        let sample =
            format!("weir_hook_runs_total{{hooks=\"init\",hook=\"{hook}\",outcome=\"{outcome}\"}} {runs}\n");
        assert!(metrics.contains(&sample), "{sample}: {metrics}");
    }
    let spans = main.json(&["trace", "--json"]);
    let outcomes: Vec<_> = spans.as_array().unwrap().iter().map(|span| span["outcome"].clone()).collect();
    assert_eq!(outcomes, ["script-error", "system-error", "handler"]);
}

#[test]
fn a_run_goes_on_with_the_hooks_that_it_began_with() {
    let dir = hooks(&["10-hook.wasm", "20-hook.wasm", "30-hook.wasm"]);
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    let mut command = weir(dir.path());
    command.args(["hooks", "run", "hooks.d", "--dir", "data:/data:rw", "--param", "DO_10=await /data/go"]);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    until("the first hook runs", || data.join("go.waits").exists().then_some(()));
    let here = |name: &str| dir.path().join("hooks.d").join(name);
    fs::rename(here("20-hook.wasm"), here(".20-hook.wasm")).unwrap();
    fs::write(here("30-hook.wasm"), "broken").unwrap();
    fs::write(data.join("go"), "").unwrap();
    let ran = child.wait_with_output().unwrap();
    let report = String::from_utf8(ran.stdout).unwrap();
    assert_eq!(ran.status.code(), Some(0), "{report}");
    for hook in ["10-hook.wasm", "20-hook.wasm", "30-hook.wasm"] {
        assert!(report.contains(&format!("{hook}  ok, ")), "{report}");
    }
}

#[test]
fn a_name_that_is_not_utf8_hides_no_file_from_the_hooks_that_ship_with_weir() {
    let dir = hooks(&[]);
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    for number in 1..15 {
        fs::write(data.join(format!("file-{number}")), "").unwrap();
    }
    fs::write(data.join(OsStr::from_bytes(b"file-\xff\xfe")), "").unwrap();
    fs::copy(test_guests::path("40-count-files"), dir.path().join("hooks.d/40-count-files.wasm")).unwrap();
    let most = |most: &str| {
        let args = ["hooks.d", "--dir", "data:/data", "--param", "ROOT_DIR=/data", "--param", most];
        run(dir.path(), &args).good()
    };
    assert!(most("MAX_FILES=15").starts_with("40-count-files.wasm  ok, "));
    assert!(most("MAX_FILES=14").contains("there are more than 14 files"));
}

#[test]
fn a_slash_at_the_end_of_a_path_follows_a_symlink_and_asks_for_a_directory() {
    let dir = hooks(&["10-hook.wasm"]);
    let data = dir.path().join("data");
    fs::create_dir_all(data.join("d")).unwrap();
    fs::write(data.join("f"), "").unwrap();
    symlink("d", data.join("l")).unwrap();
    symlink("nowhere", data.join("dangling")).unwrap();
    let looked = run(dir.path(), &["hooks.d", "--dir", "data:/data:rw", "--param", "DO=paths /data"]).good();
    for expected in [
        "lstat l: symlink",
        "lstat l/: directory",
        "lstat l/.: directory",
        "lstat f/: NotADirectory",
        "lstat dangling/: NotFound",
        "rmdir l/: NotADirectory",
        "rmdir m/: ok",
    ] {
        assert!(looked.contains(&format!("    {expected}\n")), "{expected}: {looked}");
    }
}
