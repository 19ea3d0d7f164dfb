//! `weir new`, `build`, `dev` and `test`. Projects whose tools need a network are tested by `cargo xtask test`.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{ChildStderr, Command, Stdio},
};

use rustix::process::{Pid, Signal};
use serde_json::Value;
use tempfile::TempDir;

use super::support::{Done, Killed, PUPPET, assert_golden, done, until, weir, with_own_component};

const CONTRACT: &str = r#"{"openrpc":"1.3.2","info":{"title":"puppet@1","description":"Does as it is told."},
    "methods":[{"name":"puppet@1/run","x-bytes":true,"params":[],"result":{"name":"bytes","schema":{}}}]}"#;

const MANIFEST: &str = r#"{"schema":1,"id":"puppet","version":"1.2.3","fulfills":["puppet@1"],
    "publishes":["puppet.told"],"grants":{"env":["HOME"]}}"#;

/// Tests of an author: two that ask the extension, one that fails, one that is skipped.
const TESTS: &str = r#"
answer=$("$WEIR" call puppet@1 run --raw 'echo here')
[ "$answer" = here ] && echo "ok 1 - it answers" || echo "not ok 1 - it answers"
"$WEIR" call nobody@1 run >&2 2>&1
[ $? = 4 ] && echo "ok 2 - nobody does not" || echo "not ok 2 - nobody does not"
echo "not ok 3 - it <flies>"
echo "  ---"
echo "  found: legs"
echo "ok 4 - it swims # SKIP no water"
echo "1..4"
exit 1
"#;

/// A project without tools: its component was built before. What the commands leave elsewhere is in it, too.
fn project() -> TempDir {
    let dir = with_own_component(PUPPET);
    fs::create_dir(dir.path().join("tmp")).unwrap();
    dir
}

fn author(dir: &Path, args: &[&str]) -> Command {
    let mut command = weir(dir);
    command.args(args).env("TMPDIR", dir.join("tmp"));
    command
}

fn left_in_tmp(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir.join("tmp")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn new_projects_have_a_configuration_that_is_right_and_a_token_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    for (lang, kind) in
        [("rust", "hook"), ("rust", "sidecar"), ("rust", "app"), ("python", "sidecar"), ("typescript", "app")]
    {
        let name = format!("{lang}-{kind}");
        done(weir(dir.path()).args(["new", &name, "--lang", lang, "--kind", kind])).good();
        let check = done(weir(dir.path()).args(["check", &format!("{name}/weir.toml")]));
        assert_eq!(
            (check.code, check.stdout.as_str()),
            (0, "ok, and without extensions\n"),
            "{name}: {check:?}"
        );
    }
    done(weir(dir.path()).args(["new", "my-greeter"])).good();
    let check = done(weir(dir.path()).args(["check", "my-greeter/weir.toml"]));
    // Nothing else is wrong.
    assert!(check.stderr.contains("release/my-greeter.wasm` cannot be read"), "{check:?}");
    done(weir(dir.path()).args(["new", "my-python", "--lang", "python"])).good();
    let check = done(weir(dir.path()).args(["check", "my-python/weir.toml"]));
    assert!(check.stderr.contains("dist/my-python.wasm` cannot be read"), "{check:?}");
    done(weir(dir.path()).args(["new", "my-typescript", "--lang", "typescript"])).good();
    let check = done(weir(dir.path()).args(["check", "my-typescript/weir.toml"]));
    assert!(check.stderr.contains("dist/my-typescript.wasm` cannot be read"), "{check:?}");
    for lang in ["rust", "python", "typescript"] {
        let name = format!("{lang}-server");
        done(weir(dir.path()).args(["new", &name, "--lang", lang, "--kind", "http"])).good();
        let check = done(weir(dir.path()).args(["check", &format!("{name}/weir.toml")]));
        assert!(check.stderr.contains(&format!("{name}.wasm` cannot be read")), "{check:?}");
    }
    let main = fs::read_to_string(dir.path().join("my-greeter/src/main.rs")).unwrap();
    assert!(main.contains("use my_greeter::{") && main.contains("id: \"my-greeter\""), "{main}");

    done(weir(dir.path()).args(["new", "go-greeter", "--lang", "go"])).good();
    let check = done(weir(dir.path()).args(["check", "go-greeter/weir.toml"]));
    assert!(check.stderr.contains("dist/go-greeter.wasm` cannot be read"), "{check:?}");

    let token = dir.path().join("typescript-app/.weir/token");
    assert_eq!(fs::metadata(&token).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(token).unwrap().starts_with("weir_"));
}

#[test]
fn the_description_of_a_sidecar_fits_its_contract() {
    let dir = tempfile::tempdir().unwrap();
    done(weir(dir.path()).args(["new", "load", "--kind", "sidecar"])).good();
    let described = done(weir(dir.path()).args(["describe", "load/contracts.json"])).good();
    assert!(described.starts_with("load@1\n") && described.contains("unreadable"), "{described}");
}

#[test]
fn mistakes_of_an_author_are_named_and_nothing_is_overwritten() {
    let dir = project();
    fs::create_dir(dir.path().join("taken")).unwrap();
    fs::create_dir(dir.path().join("empty")).unwrap();
    fs::write(dir.path().join("bad.json"), r#"{"openrpc":"1.3.2"}"#).unwrap();
    fs::write(dir.path().join("contracts.json"), CONTRACT).unwrap();
    fs::write(dir.path().join("old.json"), MANIFEST.replace("\"schema\":1,", "")).unwrap();
    fs::write(dir.path().join("topic.json"), MANIFEST.replace("puppet.told", "puppet..told")).unwrap();
    let mut mistakes = String::new();
    for args in [
        &["new"][..],
        &["new", "taken"],
        &["new", "Greeter"],
        &["new", "../greeter"],
        &["new", "async"],
        &["new", "greeter", "--lang", "cobol"],
        &["new", "greeter", "--lang", "go", "--kind", "hook"],
        &["new", "greeter", "--lang", "python", "--kind", "hook"],
        &["new", "greeter", "--sdk", "empty"],
        &["new", "greeter", "--sdk", "nowhere"],
        &["build", "empty"],
        &["build", "nowhere"],
        &["build", "--component", "puppet.wasm"],
        &["build", "--component", "puppet.wasm", "--contracts", "bad.json"],
        &["build", "--component", "weir.toml", "--contracts", "contracts.json"],
        &["build", "--component", "puppet.wasm", "--contracts", "weir.toml"],
        &["build", "--component", "puppet.wasm", "--manifest", "old.json"],
        &["build", "--component", "puppet.wasm", "--manifest", "topic.json"],
        &["build", "--component", "puppet.wasm", "--manifest", "weir.toml"],
        &["dev", "empty"],
        &["test", "empty"],
        &["test"],
        &["test", "--", "./no-such-program"],
    ] {
        let Done { code, stdout, stderr } = done(&mut author(dir.path(), args));
        assert_eq!(stdout, "");
        mistakes.push_str(&format!("$ weir {}\n{stderr}-> {code}\n\n", args.join(" ")));
    }
    assert_golden("author-mistakes", &mistakes);
    assert_eq!(fs::read_dir(dir.path().join("taken")).unwrap().count(), 0);
    assert!(!dir.path().join("greeter").exists());
    assert_eq!(left_in_tmp(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_description_is_put_into_the_component_that_the_configuration_names() {
    let dir = project();
    let component = dir.path().join("puppet.wasm");
    let size = fs::metadata(&component).unwrap().len();
    fs::write(dir.path().join("contracts.json"), CONTRACT).unwrap();
    let built = done(&mut author(dir.path(), &["build"])).good();
    assert!(built.starts_with("puppet.wasm  "), "{built}");
    let described = done(weir(dir.path()).args(["describe", "puppet.wasm"])).good();
    assert!(described.contains("Does as it is told."), "{described}");

    // A list of documents, in place of the first.
    fs::write(dir.path().join("other.json"), format!("[{}]", CONTRACT.replace("told", "asked"))).unwrap();
    let embed = ["build", "--component", "puppet.wasm", "--contracts", "other.json"];
    done(&mut author(dir.path(), &embed)).good();
    let described = done(weir(dir.path()).args(["describe", "puppet.wasm"])).good();
    assert!(described.contains("Does as it is asked.") && !described.contains("told"), "{described}");
    assert!(fs::metadata(&component).unwrap().len() < size + 1024);
}

#[test]
fn a_manifest_is_put_into_a_component_beside_its_description() {
    let dir = project();
    fs::write(dir.path().join("manifest.json"), MANIFEST).unwrap();
    fs::write(dir.path().join("contracts.json"), CONTRACT).unwrap();
    done(&mut author(dir.path(), &["build"])).good();
    let inspected = done(weir(dir.path()).args(["inspect", "puppet.wasm"])).good();
    for line in ["# version  1.2.3", "publishes = [\"puppet.told\"]", "grants.env = { \"HOME\" ="] {
        assert!(inspected.contains(line), "{inspected}");
    }

    // The manifest alone, in place of the first. The description stays.
    fs::write(dir.path().join("other.json"), MANIFEST.replace("told", "asked")).unwrap();
    let embed = ["build", "--component", "puppet.wasm", "--manifest", "other.json"];
    done(&mut author(dir.path(), &embed)).good();
    let inspected = done(weir(dir.path()).args(["inspect", "puppet.wasm"])).good();
    assert!(inspected.contains("puppet.asked") && !inspected.contains("puppet.told"), "{inspected}");
    let described = done(weir(dir.path()).args(["describe", "puppet.wasm"])).good();
    assert!(described.contains("Does as it is told."), "{described}");
}

#[test]
fn tests_run_against_the_extension_in_a_main_of_its_own() {
    let dir = project();
    fs::write(dir.path().join("tests.sh"), TESTS).unwrap();
    let args = ["test", "--junit", "report.xml", "--tap", "--", "/bin/sh", "tests.sh"];
    let Done { code, stdout, stderr } = done(&mut author(dir.path(), &args));
    let tap = "\
TAP version 13
1..4
ok 1 - it answers
ok 2 - nobody does not
not ok 3 - it <flies>
#   ---
#   found: legs
ok 4 - it swims # SKIP
";
    assert_eq!((code, stdout.as_str()), (1, tap), "{stderr}");
    assert!(
        stderr.ends_with(
            "failed: it <flies>\n4 cases: 2 passed, 1 failed, 1 skipped\nMain's log is `.weir/main.log`\n"
        ),
        "{stderr}"
    );

    let report = fs::read_to_string(dir.path().join("report.xml")).unwrap();
    assert!(report.contains("<testsuites tests=\"4\" failures=\"1\" skipped=\"1\" "), "{report}");
    assert!(report.contains("name=\"it &lt;flies&gt;\"><failure "), "{report}");
    let measured = fs::read(dir.path().join(".weir/measured.json")).unwrap();
    let measured: Value = serde_json::from_slice(&measured).unwrap();
    assert_eq!(measured["extensions"][0]["id"], "puppet");
    let inspected =
        done(weir(dir.path()).args(["inspect", "puppet.wasm", "--measured", ".weir/measured.json"])).good();
    assert!(inspected.contains("limits.memory = "), "{inspected}");
    assert!(fs::read_to_string(dir.path().join(".weir/main.log")).unwrap().contains("`puppet` is ready"));
    assert_eq!(left_in_tmp(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn an_extension_that_does_not_start_fails_the_test_at_once() {
    let dir = project();
    fs::write(dir.path().join("puppet.wasm"), "no component").unwrap();
    let Done { code, stdout, stderr } =
        done(&mut author(dir.path(), &["test", "--", "/bin/sh", "-c", "echo ran"]));
    assert_eq!((code, stdout.as_str()), (8, ""));
    let expected = "error: the project does not start; `.weir/main.log` has the log: ";
    assert!(stderr.starts_with(expected), "{stderr}");
    assert_eq!(left_in_tmp(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn a_test_program_that_does_not_end_is_ended_with_what_it_started() {
    let dir = project();
    // A child of the program ignores the request to end.
    let program = "(trap '' TERM; echo $$ > child; while :; do :; done) & echo 'ok 1 - begins'; wait";
    let args = ["test", "--timeout", "1s", "--", "/bin/sh", "-c", program];
    let Done { code, stdout, stderr } = done(&mut author(dir.path(), &args));
    assert_eq!((code, stdout.as_str()), (1, "ok 1 - begins\n"));
    assert!(stderr.contains("2 cases: 1 passed, 1 failed, 0 skipped"), "{stderr}");
    assert_eq!(left_in_tmp(dir.path()), Vec::<PathBuf>::new());
}

/// Stands for the SDK's tool: builds `app` in place of the output, and notes it.
const WEIR_PY: &str = r#"#!/bin/sh
echo built >> .weir/builds
[ -e .weir/stamps ] && /bin/date +%N > stamp.txt
[ -e .weir/save ] && /bin/rm .weir/save && echo '# saved' >> app.py
/bin/cp .weir/made.wasm "$4"
"#;

/// A project in Python, whose tools are [`WEIR_PY`].
fn in_python(dir: &Path, extensions: &str) {
    for directory in [".venv/bin", ".weir", "dist", "tmp"] {
        fs::create_dir_all(dir.join(directory)).unwrap();
    }
    fs::write(dir.join(".venv/bin/weir-py"), WEIR_PY).unwrap();
    fs::set_permissions(dir.join(".venv/bin/weir-py"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::copy(test_guests::path("puppet"), dir.join(".weir/made.wasm")).unwrap();
    fs::write(dir.join("app.py"), "").unwrap();
    fs::write(dir.join("weir.toml"), extensions).unwrap();
}

fn builds(dir: &Path) -> usize {
    fs::read_to_string(dir.join(".weir/builds")).unwrap_or_default().lines().count()
}

#[test]
fn a_build_writes_its_own_component_and_no_other_that_the_configuration_names() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("own");
    let main = format!("[main]\nplugin-dir = '{}'\n", outer.path().display());
    let extension =
        |id: &str, path: &Path| format!("[[extension]]\nid = \"{id}\"\npath = '{}'\n", path.display());
    let (elsewhere, within) = (outer.path().join("a-store/store.wasm"), dir.join("a-store/store.wasm"));
    for path in [&elsewhere, &within] {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(test_guests::path("puppet"), path).unwrap();
    }
    let (before, own) = (fs::read(&elsewhere).unwrap(), dir.join("dist/own.wasm"));
    for other in [&elsewhere, &within] {
        in_python(&dir, &(main.clone() + &extension("a", other) + &extension("own", &own)));
        fs::write(dir.join(".weir/made.wasm"), "made").unwrap();
        done(&mut author(&dir, &["build"])).good();
        assert_eq!(fs::read(&own).unwrap(), b"made");
        assert_eq!(fs::read(other).unwrap(), before, "{other:?}");
        fs::remove_file(&own).unwrap();
    }

    // Which is its own is not clear: it could be either, or none.
    let linked = dir.join("dist/linked.wasm");
    symlink(&elsewhere, &linked).unwrap();
    let (one, other) = (dir.join("dist/one.wasm"), dir.join("dist/two.wasm"));
    for paths in [[&one, &other].as_slice(), &[&elsewhere], &[&linked]] {
        let named = paths.iter().enumerate().map(|(id, path)| extension(&format!("x{id}"), path));
        fs::write(dir.join("weir.toml"), main.clone() + &named.collect::<String>()).unwrap();
        let so_far = builds(&dir);
        let Done { code, stderr, .. } = done(&mut author(&dir, &["build"]));
        assert_eq!((code, builds(&dir)), (1, so_far), "{paths:?}: {stderr}");
        assert!(stderr.contains("it is not clear which component is this project's"), "{stderr}");
        assert_eq!(fs::read(&elsewhere).unwrap(), before);
    }
}

/// `weir dev`, with its output.
struct Dev {
    // Before the directory: `weir dev` ends first.
    child: Killed,
    dir: TempDir,
    log: BufReader<ChildStderr>,
    socket: String,
}

impl Dev {
    fn start(dir: TempDir) -> Self {
        let mut command = author(dir.path(), &["dev"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let socket = line.trim_end().strip_prefix("export WEIR_SOCKET=").unwrap().to_owned();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut dev = Self { child: Killed(child), dir, log, socket };
        dev.until("`puppet` is ready");
        dev
    }

    fn until(&mut self, text: &str) {
        let mut seen = String::new();
        while !seen.contains(text) {
            assert!(self.log.read_line(&mut seen).unwrap() > 0, "no line says `{text}`:\n{seen}");
        }
    }

    fn ask(&self, args: &[&str]) -> Done {
        done(weir(self.dir.path()).args(args).env("WEIR_SOCKET", &self.socket))
    }

    fn main(&self) -> Pid {
        let answer = self.ask(&["ps", "--json"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        let children = format!("/proc/{pid}/task/{pid}/children", pid = self.child.0.id());
        let children = fs::read_to_string(children).unwrap();
        Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap()).unwrap()
    }

    fn end(mut self, signal: Signal) -> (Option<i32>, String, TempDir) {
        let main = self.main();
        self.child.signal(signal);
        let mut rest = String::new();
        self.log.read_to_string(&mut rest).unwrap();
        let code = self.child.0.wait().unwrap().code();
        // Also if nobody waits for it: then it has no command line any more.
        let command = format!("/proc/{}/cmdline", main.as_raw_nonzero());
        until("Main has ended", || fs::read(&command).unwrap_or_default().is_empty().then_some(()));
        (code, rest, self.dir)
    }
}

#[test]
fn a_change_is_built_and_loaded_and_a_mistake_leaves_the_version_before() {
    let mut dev = Dev::start(project());
    let echo = |dev: &Dev| dev.ask(&["call", "puppet@1", "run", "--raw", "echo here"]).good();
    assert_eq!(echo(&dev), "here");
    dev.until("`puppet` received 1 message, 1 so far");

    fs::write(dev.dir.path().join("contracts.json"), CONTRACT).unwrap();
    dev.until("weir dev: \"puppet\" runs as it was built now");
    assert!(dev.ask(&["describe", "puppet@1"]).good().contains("Does as it is told."));

    let file = dev.dir.path().join("weir.toml");
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, right.replace("fulfills", "fulfils")).unwrap();
    dev.until("did you mean `fulfills`?");
    dev.until("the version before goes on");
    assert_eq!(echo(&dev), "here");

    fs::write(&file, right + "publishes = [\"told.>\"]\n").unwrap();
    dev.until("weir dev: \"puppet\" runs as it was built now");
    dev.ask(&["call", "puppet@1", "run", "--raw", "publish told.x hello"]).good();
    dev.until("event `told.x` from `puppet`: \"hello\"");

    let (code, log, dir) = dev.end(Signal::INT);
    assert_eq!(code, Some(0), "{log}");
    assert!(log.ends_with("INFO stopped\n"), "{log}");
    assert_eq!(left_in_tmp(dir.path()), Vec::<PathBuf>::new());
}

#[test]
fn what_a_build_writes_starts_no_build_for_ever_and_what_the_author_saves_meanwhile_starts_one() {
    let (dir, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    in_python(dir.path(), &PUPPET.replace("puppet.wasm", "dist/puppet.wasm"));
    fs::write(dir.path().join(".weir/stamps"), "").unwrap();
    symlink(shared.path(), dir.path().join("shared")).unwrap();
    let mut dev = Dev::start(dir);
    let path = dev.dir.path().to_owned();
    dev.until("weir dev: the build itself changes `stamp.txt`: that starts no other build");
    dev.until("weir dev: waiting for changes");
    assert_eq!(builds(&path), 3);
    // One build for one save, also behind a link.
    for (number, saved) in [(4, path.join("app.py")), (5, shared.path().join("module.py"))] {
        fs::write(saved, "pass").unwrap();
        dev.until("weir dev: waiting for changes");
        assert_eq!(builds(&path), number);
    }
    fs::write(path.join(".weir/save"), "").unwrap();
    fs::write(path.join("app.py"), "# other").unwrap();
    dev.until("weir dev: `app.py` changed during the build");
    dev.until("weir dev: waiting for changes");
    assert_eq!(builds(&path), 7);
    let (code, log, _) = dev.end(Signal::INT);
    assert_eq!(code, Some(0), "{log}");
}

#[test]
fn main_ends_with_a_weir_dev_that_is_killed() {
    let dev = Dev::start(project());
    let (code, log, _) = dev.end(Signal::KILL);
    assert_eq!(code, None);
    assert!(log.ends_with("INFO stopped\n"), "{log}");
}
