//! What a shell gets with Main's names: through the real `weir`, and through the script in a real bash.

use std::{
    fs,
    os::unix::net::UnixListener,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use super::support::{PUPPETS, Running, done, weir, with_own_component};

const STORAGE: &str = r#"
[queue.uploads]

[topic."device.name"]
retain = true

[main]
data-dir = "kept"

[store.storage]

[[extension]]
id = "storage"
path = "storage.wasm"
fulfills = ["local.storage@1"]
grants.stores = ["storage"]
"#;

fn storage() -> Running {
    let dir = with_own_component(&format!("{PUPPETS}{STORAGE}"));
    fs::copy(test_guests::path("storage"), dir.path().join("storage.wasm")).unwrap();
    Running::start(dir)
}

/// The candidates for the last word, without options.
fn completed(dir: &Path, words: &[&str]) -> Vec<String> {
    let mut command = weir(dir);
    let index = words.len().to_string();
    command.env("COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", index);
    let answer = done(command.args(["--", "weir"]).args(words)).good();
    answer.lines().filter(|line| !line.starts_with('-')).map(ToOwned::to_owned).collect()
}

#[test]
fn names_of_a_running_main_complete_where_they_belong() {
    let main = storage();
    let names = |words: &[&str]| completed(main.path(), words);
    assert_eq!(names(&["status", ""]), ["absent", "puppet", "spare", "storage"]);
    assert_eq!(names(&["restart", "puppet", "s"]), ["spare", "storage"]);
    assert_eq!(names(&["call", "--provider", "p"]), ["puppet"]);
    assert_eq!(names(&["call", ""]), ["local.storage@1", "puppet@1", "spare@1", "store@1"]);
    assert_eq!(names(&["describe", "loc"]), ["local.storage@1"]);
    assert_eq!(names(&["generate", "rust", "local"]), ["local.storage@1"]);
    assert_eq!(names(&["queues", "show", ""]), ["uploads"]);
    assert_eq!(names(&["publish", "device"]), ["device.name"]);
    assert_eq!(names(&["tail", ""]), ["device.name", "store.changed.*"]);
    // By the argument, as the command finds Main.
    let other = tempfile::tempdir().unwrap();
    assert!(completed(other.path(), &["status", ""]).is_empty());
    let socket = main.socket();
    assert_eq!(completed(other.path(), &["status", "--socket", socket.to_str().unwrap(), "st"]), ["storage"]);
}

#[test]
fn a_described_contract_completes_its_operations_and_their_arguments() {
    let main = storage();
    let call = |words: &[&str]| completed(main.path(), &[&["call", "local.storage@1"], words].concat());
    assert_eq!(call(&[""]), ["delete", "get", "list", "set"]);
    assert_eq!(call(&["--timeout", "2s", "s"]), ["set"]);
    assert_eq!(call(&["set", ""]), [r#"{"key":"","value":null}"#]);
    assert_eq!(call(&["set", r#"{"key":"volume","#]), [r#"{"key":"volume","value":"#]);
    assert_eq!(call(&["set", "@stor"]), ["@storage.wasm"]);
    assert!(call(&["nothing", ""]).is_empty());
    assert!(completed(main.path(), &["call", "puppet@1", ""]).is_empty(), "it is not described");
}

#[test]
fn a_main_that_does_not_answer_costs_a_person_a_second_and_no_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("weir")).unwrap();
    let _silent = UnixListener::bind(dir.path().join("weir/weir.sock")).unwrap();
    let began = Instant::now();
    assert!(completed(dir.path(), &["status", ""]).is_empty());
    let took = began.elapsed();
    assert!((Duration::from_secs(1)..Duration::from_secs(5)).contains(&took), "{took:?}");
}

/// What the script in bash makes of a line. Bash passes the pieces of its words and the end that it replaces.
fn in_bash(main: &Running, line: &str, pieces: &[&str], end: &str) -> Vec<String> {
    let script = "source <(weir completions bash)\nCOMP_LINE=$1 end=$2\nshift 2\nCOMP_WORDS=(\"$@\")\n\
                  COMP_CWORD=$(($# - 1))\n_weir weir \"$end\"\nprintf '%s\\n' \"${COMPREPLY[@]}\"";
    let own = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", own.display());
    let mut bash = Command::new("bash");
    bash.current_dir(main.path()).env_clear().env("XDG_RUNTIME_DIR", main.path()).env("PATH", path);
    bash.args(["--norc", "-c", script, "bash", line, end]).args(pieces).stdin(Stdio::null());
    let replies = done(&mut bash).good();
    replies.lines().filter(|line| !line.starts_with('-')).map(ToOwned::to_owned).collect()
}

#[test]
fn in_bash_names_complete_beyond_their_at_sign_and_arguments_are_quoted() {
    let main = storage();
    assert_eq!(in_bash(&main, "weir call loc", &["weir", "call", "loc"], "loc"), ["local.storage@1"]);
    let pieces = ["weir", "call", "local.storage", "@"];
    assert_eq!(in_bash(&main, "weir call local.storage@", &pieces, "@"), ["@1"]);
    let call = ["weir", "call", "local.storage", "@", "1"];
    let line = "weir call local.storage@1";
    let operation = [&call[..], &["ge"]].concat();
    assert_eq!(in_bash(&main, &format!("{line} ge"), &operation, "ge"), ["get"]);
    let arguments = [&call[..], &["get", ""]].concat();
    assert_eq!(in_bash(&main, &format!("{line} get "), &arguments, ""), [r#"'{"key":""}'"#]);
}
