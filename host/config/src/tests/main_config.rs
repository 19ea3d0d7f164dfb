//! Keys of `[main]`: the control socket of files with other faults, the cache directory from the file and the environment,
//! and the sum of limits against the memory budget.

use std::fs;

use super::*;
use crate::{ExtensionConfig, Limits, MainConfig};

fn socket(text: impl AsRef<[u8]>) -> Result<String, ConfigErrors> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("weir.toml");
    fs::write(&file, text).unwrap();
    let socket = MainConfig::control_socket_of(&file)?;
    Ok(socket.strip_prefix(dir.path()).unwrap_or(&socket).to_str().unwrap().to_owned())
}

#[test]
fn nothing_else_that_is_wrong_with_a_file_hides_the_socket() {
    for text in [
        "[main]\ncontrol-socket = 'a.sock'",
        "main.control-socket = 'a.sock'\n[limits.small]\nmemroy = 1\nstack = '1 B'",
        "main = { control-socket = 'a.sock', memory-budget = '1 MiB' }\n[[extension]]\nid = 'a'\npath = 'a.wasm'",
        "include = ['nowhere.toml']\n[main]\nserves = 5\ncontrol-socket = 'a.sock'\nrequest-timeout = '5'",
        "[main]\ncontrol-socket = 'a.sock'\n[[extension]]\nid = \n= 5\n[",
        "[main\n[main]\ncontrol-socket = 'a.sock'",
    ] {
        assert_eq!(socket(text).unwrap(), "a.sock", "{text}");
    }
    let default = MainConfig::default().control_socket;
    assert_eq!(socket("[limits.small]\nmemroy = 1").unwrap(), default.to_str().unwrap());
}

#[test]
fn a_socket_that_may_be_another_is_not_guessed() {
    let mut report = String::new();
    for text in [
        "main = 5",
        "[main]\ncontrol-socket = 5",
        "[main]\ncontrol-socket = ''",
        "[main]\ncontrol-sokcet = 'a.sock'",
        "[main]\ncontrol-socket = 'a.sock",
        "[main]\ncontrol-socket = 'a.sock' 'b.sock'",
        "[main]\ncontrol-socket 'a.sock'",
        "[main]\ncontrol-socket = 'a.sock'\ncontrol-socket = 'b.sock'",
        "control-socket = 'a.sock'\n[main",
    ] {
        let errors = socket(text).unwrap_err().to_string();
        let (dir, _) = errors.split_once("weir.toml:").unwrap();
        report.push_str(&format!("# {}\n{}\n\n", text.escape_debug(), errors.replace(dir, "")));
    }
    let errors = socket([0xff]).unwrap_err().to_string();
    assert!(errors.ends_with("it is not UTF-8"), "{errors}");
    assert_golden("control-socket", &report);
}

fn cache_dir(text: &str, variables: &[(&str, &str)]) -> PathBuf {
    let variables = variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
    let dir = Path::new("/etc/weir");
    let config = Loader::new().parse_with(text.to_owned(), "weir.toml", dir, &variables.collect());
    config.unwrap().main.cache_dir.unwrap()
}

#[test]
fn the_cache_is_where_the_file_says_from_where_the_file_is() {
    let variables = [("CACHE_DIRECTORY", "/a")];
    assert_eq!(cache_dir("main.cache-dir = 'cache'", &variables), Path::new("/etc/weir/cache"));
    assert_eq!(cache_dir("main.cache-dir = '/cache'", &variables), Path::new("/cache"));
}

#[test]
fn without_a_word_in_the_file_the_cache_is_among_those_of_the_unit_the_user_or_the_machine() {
    let cases: [(&[(&str, &str)], &str); 8] = [
        (&[("CACHE_DIRECTORY", "/unit:/other"), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/u")], "/unit"),
        (&[("CACHE_DIRECTORY", "/unit")], "/unit"),
        (&[("CACHE_DIRECTORY", "relative:/other"), ("XDG_CACHE_HOME", "/xdg")], "/xdg/weir"),
        (&[("CACHE_DIRECTORY", ""), ("XDG_CACHE_HOME", "/xdg"), ("HOME", "/home/u")], "/xdg/weir"),
        (&[("XDG_CACHE_HOME", "relative"), ("HOME", "/home/u")], "/home/u/.cache/weir"),
        (&[("XDG_CACHE_HOME", ""), ("HOME", "/home/u")], "/home/u/.cache/weir"),
        (&[("HOME", "relative")], "/var/cache/weir"),
        (&[], "/var/cache/weir"),
    ];
    for (variables, expected) in cases {
        assert_eq!(cache_dir("", variables), Path::new(expected), "{variables:?}");
    }
}

#[test]
fn the_cache_may_be_within_the_directory_of_the_file_and_not_be_it() {
    for dir in ["cache", "a/../cache", "..a"] {
        parse(&format!("main.cache-dir = '{dir}'")).unwrap();
    }
    for dir in [".", "./", "cache/..", "..", "/"] {
        let error = parse_error(&format!("main.cache-dir = '{dir}'"));
        assert!(error.contains("where only Main writes"), "{error}");
    }
}

#[test]
fn the_state_is_where_only_main_writes() {
    let paths =
        "main = { plugin-dir = 'plugins', cache-dir = 'cache', data-dir = 'data', state-dir = 'DIR' }\n";
    parse(&paths.replace("DIR", "plugins/state")).unwrap();
    let mut report = String::new();
    let grant = "[[extension]]\nid = 'a'\npath = 'in/a.wasm'\ngrants.dirs = [{ host = 'in/d', guest = '/d', mode = 'rw' }]";
    let cases =
        [".", "plugins", "cache", "cache/state", "data/..", "data/state", "plugins/in", "in", "in/d/e"];
    for dir in cases {
        let error = parse(&format!("{}{grant}", paths.replace("DIR", dir)));
        let error = error.unwrap_err().to_string().replace(golden().to_str().unwrap(), "");
        report.push_str(&format!("# {dir}\n{error}\n\n"));
    }
    assert_golden("state-dir", &report);
}

#[test]
fn the_default_may_be_within_the_directory_of_the_file() {
    assert_eq!(cache_dir("", &[("HOME", "/etc/weir")]), Path::new("/etc/weir/.cache/weir"));
}

#[test]
fn a_program_that_names_no_cache_has_none() {
    assert_eq!(Config::default().main.cache_dir, None);
}

#[test]
fn the_example_of_a_device_fits_into_its_budget() {
    let text = "
        main.memory-budget = '48 MiB'
        [limits.small]
        inherits = 'min'
        memory = '4 MiB'
        [[extension]]
        id = 'storage'
        path = 'storage.wasm'
        [[extension]]
        id = 'telemetry'
        path = 'telemetry.wasm'
        class = 'small'
        limits.memory = '8 MiB'
        [[extension]]
        id = 'uploader'
        path = 'uploader.wasm'
    ";
    let config = parse(text).unwrap();
    let sum: u64 = config.extensions.iter().map(ExtensionConfig::memory_sum).sum();
    assert_eq!(sum, 48 << 20);
    let refused = parse(&text.replace("48 MiB", "50331647")).unwrap_err();
    let message = refused.iter().next().unwrap().message();
    assert!(message.contains("is 50331647 B, but") && message.contains("come to 50331648 B:"), "{message}");
}

#[test]
fn of_many_extensions_the_twenty_largest_are_shown() {
    let main = MainConfig { memory_budget: Some(64 << 20), ..MainConfig::default() };
    let extensions = (0..23).map(|number: u64| {
        let mut extension = ExtensionConfig::new(format!("e{number}").parse().unwrap(), "a.wasm");
        extension.limits = Limits::min();
        extension.limits.memory += number << 20;
        // Extensions without autostart count, too.
        extension.autostart = number.is_multiple_of(2);
        extension
    });
    let mut config = Config::new(main, extensions.collect());
    assert_golden("rust-memory-budget", &config.check().unwrap_err().to_string());

    config.main.memory_budget = None;
    config.check().unwrap();
}
