//! Help, wrong arguments, and completions.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixListener,
    path::Path,
    process::{Command, Stdio},
    thread,
};

use super::support::{Done, assert_golden, done, weir};

const COMMANDS: [&str; 54] = [
    "new",
    "build",
    "dev",
    "test",
    "run",
    "check",
    "schema",
    "ps",
    "top",
    "status",
    "history",
    "versions",
    "limits",
    "lock",
    "logs",
    "describe",
    "generate",
    "check-contract",
    "call",
    "publish",
    "tail",
    "topics",
    "queues",
    "queues show",
    "queues put",
    "queues requeue",
    "metrics",
    "trace",
    "otlp",
    "peers",
    "peers end",
    "peers token",
    "store",
    "store ls",
    "store get",
    "store put",
    "store rm",
    "store export",
    "store import",
    "store compact",
    "hooks run",
    "start",
    "stop",
    "restart",
    "reload",
    "accept",
    "rollback",
    "plan",
    "shutdown",
    "inspect",
    "compile",
    "keygen",
    "symbolise",
    "completions",
];

fn in_no_place(args: &[&str]) -> Done {
    done(weir(Path::new("/")).args(args))
}

#[test]
fn the_help_of_every_command_shows_examples() {
    let mut shown = in_no_place(&["--help"]).good();
    for command in COMMANDS {
        let args: Vec<_> = command.split(' ').chain(["--help"]).collect();
        let help = in_no_place(&args).good();
        assert!(help.contains("\nExamples:\n  weir ") || help.contains("\n  echo "), "{help}");
        // One verb stands for the layout of all: their words are in the code.
        if command == "queues put" {
            shown.push_str(&format!("\n# weir {command} --help\n{help}"));
        }
    }
    assert_golden("help", &shown);
}

#[test]
fn mistakes_in_the_arguments_are_named_with_an_exit_code() {
    let mut mistakes = String::new();
    for args in [
        &["cal"][..],
        &["call", "a@1"],
        &["call", "a@1", "b", "{"],
        &["call", "a@1", "b", "--timeout", "soon"],
        &["call", "", "b"],
        &["logs", "-n", "-1"],
        &["ps", "--socket", "a", "--config", "b"],
        &["ps", "--socket", "/nowhere/weir.sock"],
        &["ps", "--socket", "/etc/hostname"],
        &["ps", "--config", "/nowhere/weir.toml"],
        &["limits", "--file", "a", "--socket", "b"],
        &["limits", "--file", "/nowhere/weir.toml"],
        &["limits", "--file", "/nowhere/weir.toml", ""],
        &["limits", ""],
        &["restart"],
        &["reload", ""],
        &["top"],
        &["top", "--interval", "50ms"],
        &["top", "--sort", "mood"],
        &["run", "/nowhere/weir.toml"],
        &["inspect", "/nowhere/a.wasm"],
        &["inspect", "/dev/null"],
        &["publish", "a", "@/nowhere/payload"],
        &["topics", "a..b"],
        &["queues", "shw"],
        &["queues", "--json", "show", "a"],
        &["queues", "show"],
        &["queues", "show", "--max", "0", "a"],
        &["queues", "show", ""],
        &["queues", "put", "a", "@/nowhere/payload"],
        &["queues", "requeue", "a"],
        &["queues", "requeue", "--id", "1", "--all", "a"],
        &["otlp", "--endpoint", "https://collector.example:4318"],
        &["otlp", "--endpoint", "collector"],
        &["otlp", "--header", "authorization"],
        &["otlp", "--interval", "0s"],
        &["otlp", "--once", "--socket", "/nowhere/weir.sock"],
        &["peers", "lst"],
        &["peers", "--json", "end", "1"],
        &["peers", "end"],
        &["peers", "end", "app:player"],
        &["peers", "token"],
        &["peers", "token", "player"],
        &["peers", "token", "app:player", "--config", "/nowhere/weir.toml"],
        &["--socket", "a", "peers", "token", "app:player"],
        &["hooks"],
        &["hooks", "run"],
        &["hooks", "run", "/nowhere/hooks.d"],
        &["hooks", "run", "/etc/hostname"],
        &["hooks", "run", ""],
        &["hooks", "run", "/tmp", "--param", "NODE"],
        &["hooks", "run", "/tmp", "--env", "=n1"],
        &["hooks", "run", "/tmp", "--dir", "/tmp"],
        &["hooks", "run", "/tmp", "--dir", ":/data"],
        &["hooks", "run", "/tmp", "--dir", "/tmp:data"],
        &["hooks", "run", "/tmp", "--dir", "/tmp:/data:wr"],
        &["hooks", "run", "/tmp", "--dir", "/a:/data", "--dir", "/b:/data"],
        &["hooks", "run", "/tmp", "--class", "small"],
        &["hooks", "run", "/tmp", "--timeout", "0s"],
        &["hooks", "run", "/tmp", "--total-timeout", "2days"],
        &["hooks", "run", "/tmp", "--suffix", ""],
        &["hooks", "run", "/tmp", "--stdin", "/nowhere/stdin"],
        &["hooks", "run", "nodes", "--config", "/nowhere/weir.toml"],
        &["hooks", "run", "nodes", "--config", "/nowhere/weir.toml", "--dir", "/a:/b", "--timeout", "1s"],
    ] {
        let Done { code, stdout, stderr } = in_no_place(args);
        assert_eq!(stdout, "");
        let stderr = stderr.replace("\nFor more information, try '--help'.\n", "");
        mistakes.push_str(&format!("$ weir {}\n{stderr}-> {code}\n\n", args.join(" ")));
    }
    assert_golden("mistakes", &mistakes);
}

#[test]
fn a_main_that_does_not_know_a_route_may_be_of_another_version() {
    let dir = tempfile::tempdir().unwrap();
    let socket = UnixListener::bind(dir.path().join("old.sock")).unwrap();
    let old = thread::spawn(move || {
        let (mut client, _) = socket.accept().unwrap();
        // Read the whole request, which has no body.
        let lines = BufReader::new(&client).lines().map_while(Result::ok);
        lines.take_while(|line| !line.is_empty()).for_each(drop);
        let body = r#"{"error":{"code":"no-such-route","message":"there is no route `/v1/limits`"}}"#;
        let length = body.len();
        write!(client, "HTTP/1.1 404 Not Found\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    });
    let asked = done(weir(dir.path()).args(["limits", "--socket", "old.sock"]));
    old.join().unwrap();
    let expected = "error: there is no route `/v1/limits`; is Main of another version?\n";
    assert_eq!((asked.code, asked.stderr.as_str()), (1, expected));
}

#[test]
fn a_call_is_one_request_and_asks_for_a_check_unless_told_otherwise() {
    let dir = tempfile::tempdir().unwrap();
    let socket = UnixListener::bind(dir.path().join("main.sock")).unwrap();
    for (flag, is_strict) in [(None, true), (Some("--no-check"), false), (Some("--raw"), false)] {
        let args = ["call", "a@1", "b", "{}", "--socket", "main.sock"];
        let asked = weir(dir.path()).args(args).args(flag).stdout(Stdio::piped()).spawn().unwrap();
        let (mut client, _) = socket.accept().unwrap();
        let lines = BufReader::new(&client).lines().map_while(Result::ok);
        let head: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
        assert_eq!(head[0], "POST /v1/call/a%401/b HTTP/1.1");
        assert_eq!(head.contains(&"prefer: handling=strict".to_owned()), is_strict, "{head:?}");
        write!(client, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{{}}").unwrap();
        let done = asked.wait_with_output().unwrap();
        assert_eq!((done.status.code(), &*done.stdout), (Some(0), &b"{}"[..]));
    }
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = in_no_place(&["completions", shell]).good();
        assert!(script.contains("COMPLETE") && script.contains("weir"), "{script}");
    }
}

#[test]
fn a_shell_that_asks_gets_the_commands_that_fit() {
    let mut command = weir(Path::new("/"));
    command.env("COMPLETE", "zsh").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", "2");
    let answer = done(command.args(["--", "weir", "queues", "re"])).good();
    assert!(answer.contains("requeue") && !answer.contains("show"), "{answer}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut command: Command = weir(Path::new("/"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output =
        command.args(["completions", "bash"]).stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}
