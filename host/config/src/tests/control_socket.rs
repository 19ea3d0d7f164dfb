//! The control socket of files with other faults.

use std::fs;

use super::*;
use crate::MainConfig;

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
