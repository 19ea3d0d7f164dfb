//! `weir check` and `weir inspect`, which need no Main.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
};

use super::support::{PUPPET, PUPPETS, Running, configured, done, own_cache, weir};

#[test]
fn check_compiles_every_component_and_says_which_are_wrong() {
    let dir = configured(PUPPETS);
    let checked = done(weir(dir.path()).args(["check", "weir.toml"]));
    assert_eq!((checked.code, checked.stdout.as_str()), (1, "`puppet` is ok\n`spare` is ok\n"));
    assert!(checked.stderr.starts_with("error: weir.toml:20:8: `absent`: `"), "{}", checked.stderr);
    assert!(
        checked.stderr.ends_with("\n 20 | path = \"absent.wasm\"\n    |        ^^^^^^^^^^^^^\n"),
        "{}",
        checked.stderr
    );

    let without = PUPPETS.split("[[extension]]\nid = \"absent\"").next().unwrap();
    let dir = configured(&format!("{without}\nwants = [\"nobody@1\"]\n"));
    let checked = done(weir(dir.path()).args(["check", "weir.toml"]));
    assert_eq!((checked.code, checked.stdout.as_str()), (0, "`puppet` is ok\n`spare` is ok\n"));
    assert!(checked.stderr.starts_with("warning: "), "{}", checked.stderr);
    assert!(checked.stderr.contains("`nobody@1`"), "{}", checked.stderr);
}

#[test]
fn what_check_compiles_is_there_for_run_if_the_cache_is_this_users() {
    let dir = configured(PUPPET);
    let cache = dir.path().join("cache");
    let check = || done(weir(dir.path()).args(["check", "weir.toml"]).env("CACHE_DIRECTORY", &cache));
    check().good();
    assert!(!cache.exists(), "it may be for another user to make");
    fs::DirBuilder::new().mode(0o777).create(&cache).unwrap();
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o777)).unwrap();
    let strange = check();
    assert_eq!(strange.code, 0);
    assert!(
        strange.stderr.contains("what is compiled here is not kept for `weir run`: the cache `"),
        "{strange:?}"
    );
    assert_eq!(fs::read_dir(&cache).unwrap().count(), 0);

    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
    check().good();
    let main = Running::start(dir);
    let logs = main.weir(&["logs"]).good();
    assert!(!logs.contains("is being compiled"), "{logs}");
}

#[test]
fn what_check_compiles_for_lines_in_traces_is_there_for_run_too() {
    let puppet = |id| {
        format!(
            "[[extension]]\nid = '{id}'\npath = 'puppet.wasm'\nfulfills = ['{id}@1']\nconfig.contract = '{id}@1'\n"
        )
    };
    let dir = configured(&format!("{}{}traces = 'lines'\n", puppet("names"), puppet("lines")));
    own_cache(dir.path());
    done(weir(dir.path()).args(["check", "weir.toml"])).good();
    let logs = Running::start(dir).weir(&["logs"]).good();
    assert!(!logs.contains("is being compiled"), "{logs}");
}

#[test]
fn check_points_at_the_line_for_people_and_for_programs() {
    let dir = configured("[limits.small]\nmemroy = \"4 MiB\"\n");
    let checked = done(weir(dir.path()).args(["check", "weir.toml"]));
    assert_eq!(checked.code, 1);
    assert!(checked.stderr.starts_with("error: weir.toml:4:1: unknown key `memroy`"), "{}", checked.stderr);
    assert!(checked.stderr.ends_with(" | ^^^^^^\n"), "{}", checked.stderr);

    let checked = done(weir(dir.path()).args(["check", "--json", "weir.toml"]));
    assert_eq!((checked.code, checked.stderr.as_str()), (1, ""));
    let report: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
    assert_eq!(report["ok"], false);
    let error = &report["errors"][0];
    assert_eq!(error["key"], "limits.small.memroy");
    assert_eq!((&error["line"], &error["column"]), (&4.into(), &1.into()));
}

#[test]
fn check_warns_of_directories_that_are_not_there_with_their_place() {
    let config = r#"
[[extension]]
id = "a"
path = "absent.wasm"
grants.dirs = [{ host = ".", guest = "/here" }, { host = "late", guest = "/late" }]

[hooks.boot]
dir = "boot.d"
"#;
    let dir = configured(config);
    let checked = done(weir(dir.path()).args(["check", "weir.toml"]));
    let lines: Vec<_> = checked.stderr.lines().collect();
    let grant = "warning: weir.toml:7:58: in `extension[a].grants.dirs.host`: `";
    assert!(lines[0].starts_with(grant), "{}", checked.stderr);
    assert!(lines[0].ends_with("/late` cannot be opened: No such file or directory (os error 2)"));
    assert!(lines[3].starts_with("warning: weir.toml:10:7: in `hooks.boot.dir`: `"), "{}", checked.stderr);
    assert!(lines[6].starts_with("error: weir.toml:6:8: `a`: `"), "{}", checked.stderr);
    assert_eq!((lines.len(), checked.code), (9, 1), "{}", checked.stderr);

    let checked = done(weir(dir.path()).args(["check", "--json", "weir.toml"]));
    let report: serde_json::Value = serde_json::from_str(&checked.stdout).unwrap();
    let places = [&report["warnings"][0], &report["warnings"][1], &report["extensions"][0]["error"]]
        .map(|said| (said["key"].as_str().unwrap(), said["line"].as_u64().unwrap()));
    assert_eq!(
        places,
        [("extension[a].grants.dirs.host", 7), ("hooks.boot.dir", 10), ("extension[a].path", 6)]
    );
}

#[test]
fn limits_of_the_environment_are_heeded_and_those_that_are_none_refused() {
    let dir = configured("memory-budget = \"64 MiB\"\n[[extension]]\nid = \"a\"\npath = \"a.wasm\"\n");
    let checked =
        |name: &str, value: &str| done(weir(dir.path()).args(["check", "weir.toml"]).env(name, value));
    let without = checked("OTHER", "");
    assert!(without.stderr.starts_with("error: weir.toml:6:8: `a`: `"), "{}", without.stderr);

    let over = checked("WEIR_LIMITS_MEDIUM_MEMORY", "128 MiB");
    assert_eq!(over.code, 1);
    let expected = "`main.memory-budget` is 64.0 MiB, but the limits of all extensions come to 131.0 MiB";
    assert!(over.stderr.contains(expected), "{}", over.stderr);
    assert!(over.stderr.contains(": `a` comes to 131.0 MiB: `memory` 128 MiB + "), "{}", over.stderr);

    for command in ["check", "run"] {
        let unknown =
            done(weir(dir.path()).args([command, "weir.toml"]).env("WEIR_LIMITS_MEDIUM_STAK", "2 MiB"));
        assert_eq!(unknown.code, 1);
        assert!(unknown.stderr.ends_with("did you mean `WEIR_LIMITS_MEDIUM_STACK`?\n"), "{}", unknown.stderr);
    }
}

#[test]
fn run_refuses_what_check_refuses() {
    let dir = configured("[limits.small]\nmemroy = \"4 MiB\"\n");
    let run = done(weir(dir.path()).args(["run", "weir.toml"]));
    assert_eq!(run.code, 1);
    assert!(run.stderr.starts_with("error: weir.toml:4:1: unknown key `memroy`"), "{}", run.stderr);
    assert!(!dir.path().join("weir").exists());
}

#[test]
fn what_inspect_prints_is_toml_that_runs_once_it_is_filled_in() {
    let dir = configured("");
    let echo = test_guests::path("echo");
    let printed = done(weir(dir.path()).arg("inspect").arg(&echo)).good();
    assert!(printed.contains("# imports  "), "{printed}");
    assert!(printed.contains("#          weir:iec/channel@0.1.0\n"), "{printed}");
    assert!(printed.contains("# exports  wasi:cli/run@0.2."), "{printed}");
    assert!(printed.contains("\n# serves   echo@1: echo\n"), "{printed}");
    let json = done(weir(dir.path()).args(["inspect", "--json"]).arg(&echo)).good();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["contracts"][0]["methods"][0]["name"], "echo@1/echo");
    let hash = json["sha256"].as_str().unwrap();
    assert!(printed.contains(&format!("# sha-256  {hash}\n")), "{printed}");
    assert!(
        printed.ends_with(&format!(
            "\n[[extension]]\nid = \"echo\"\npath = \"echo.wasm\"\n\
             # sha256 = \"{hash}\"  # pins exactly this file\nfulfills = [\"echo@1\"]\n"
        )),
        "{printed}"
    );
    assert!(!printed.contains("# note"), "{printed}");

    let file = dir.path().join("weir.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + &printed).unwrap();
    assert_eq!(done(weir(dir.path()).args(["check", "weir.toml"])).good(), "`echo` is ok\n");

    assert_eq!(json["bytes"], fs::metadata(&echo).unwrap().len());
    assert_eq!(json["manifest"]["fulfills"][0], "echo@1");
}

#[test]
fn what_inspect_proposes_from_measurements_is_a_configuration() {
    let dir = configured("");
    let echo = test_guests::path("echo");
    let measured = include_str!("../golden/limits.json");
    fs::write(dir.path().join("two.json"), measured).unwrap();
    let mut measured: serde_json::Value = serde_json::from_str(measured).unwrap();
    measured["extensions"].as_array_mut().unwrap().truncate(1);
    fs::write(dir.path().join("one.json"), measured.to_string()).unwrap();

    let inspect = |file: &str| done(weir(dir.path()).arg("inspect").arg(&echo).args(["--measured", file]));
    let printed = inspect("one.json").good();
    assert!(printed.contains("limits.memory = \"1856 KiB\"  # peak: 1.2 MiB\n"), "{printed}");
    let file = dir.path().join("weir.toml");
    fs::write(&file, fs::read_to_string(&file).unwrap() + &printed).unwrap();
    assert_eq!(done(weir(dir.path()).args(["check", "weir.toml"])).good(), "`echo` is ok\n");

    let refused = inspect("two.json");
    let expected = "error: `two.json` has no extension `echo`; its extensions: `storage`, `telemetry`\n";
    assert_eq!((refused.code, &*refused.stderr), (1, expected));
    let refused = inspect("weir.toml");
    assert!(refused.stderr.starts_with("error: `weir.toml` is not the output of `weir limits --json`: "));
}

#[test]
fn the_sizes_that_inspect_shows_add_up_to_the_file() {
    let dir = configured("");
    let echo = test_guests::path("echo");
    let printed = done(weir(dir.path()).arg("inspect").arg("--sizes").arg(&echo)).good();
    assert!(printed.contains("\n# sizes ") && printed.contains("% echo::main\n"), "{printed}");
    assert!(printed.contains("% custom section `weir:manifest`\n"), "{printed}");
    let json = done(weir(dir.path()).args(["inspect", "--sizes", "--json"]).arg(&echo)).good();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let sizes = &json["sizes"];
    let lists = ["functions", "sections"].iter().flat_map(|list| sizes[list].as_array().unwrap());
    let sum: u64 = lists.chain([&sizes["others"]]).map(|part| part["bytes"].as_u64().unwrap()).sum();
    assert_eq!((Some(sum), &json["bytes"]), (sizes["bytes"].as_u64(), &sizes["bytes"]));
}
