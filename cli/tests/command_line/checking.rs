//! `weir check` of what the file itself cannot say: needs of components, files of hooks, Main's own directories.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use tempfile::TempDir;

use super::support::{Done, done, weir};

const MANIFEST: &str = r#"{"schema":1,"id":"needy","version":"1","fulfills":["served@1"],"requires":["must@1"],
    "wants":["may@1"],"publishes":["told.>"],"subscribes":["heard"],"puts":["in"],"takes":["out"],
    "grants":{"dirs":[{"guest":"/data","mode":"rw"},{"guest":"/read","mode":"ro"}],"env":["KEY"],"net":["example.com:443"]}}"#;

/// What grants all of it.
const GRANTED: &str = r#"
fulfills = ["served@1"]
requires = ["must@1"]
wants = ["may@1"]
publishes = [">"]
subscribes = ["*"]
puts = ["in"]
takes = ["out"]
grants.dirs = [{ host = "granted", guest = "/data", mode = "rw" }, { host = "granted", guest = "/read" }]
grants.env.KEY = "value"
grants.net = ["example.com:443"]
grants.stores = ["kept"]
grants.http = [{ to = "https://example.com", methods = ["GET"] }]
"#;

/// A program with these imports.
/// An interface that only a program for Weir imports.
const IEC: &str = "weir:iec/channel@0.1.0";

fn program(imports: &[&str]) -> Vec<u8> {
    let imports: String = imports.iter().map(|name| format!("(import \"{name}\" (instance))")).collect();
    let text = format!(
        r#"(component {imports}
            (core module $main (func (export "run") (result i32) i32.const 0))
            (core instance $main (instantiate $main))
            (func $run (result (result)) (canon lift (core func $main "run")))
            (instance $run (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $run)))"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn with_section(mut component: Vec<u8>, name: &str, content: &str) -> Vec<u8> {
    let [name_length, length] = [name.len(), 1 + name.len() + content.len()];
    // LEB128 in two bytes: enough for 16,383.
    let head = [0, length % 128 + 128, length / 128, name_length];
    component.extend(head.map(|byte| u8::try_from(byte).unwrap()));
    component.extend(name.bytes().chain(content.bytes()));
    component
}

fn check(dir: &TempDir, file: &str) -> Done {
    fs::write(dir.path().join("weir.toml"), file).unwrap();
    done(weir(dir.path()).args(["check", "weir.toml"]))
}

fn write(dir: &TempDir, name: &str, content: impl AsRef<[u8]>) {
    fs::write(dir.path().join(name), content).unwrap();
}

#[test]
fn what_a_component_needs_and_is_not_granted_is_said_by_check() {
    let dir = tempfile::tempdir().unwrap();
    let imports = [IEC, "wasi:keyvalue/store@0.2.0-draft2", "wasi:http/outgoing-handler@0.2.0"];
    write(&dir, "needy.wasm", with_section(program(&imports), "weir:manifest", MANIFEST));
    write(&dir, "must.wasm", program(&[IEC]));
    fs::create_dir(dir.path().join("granted")).unwrap();
    let rest = "\n[[extension]]\nid = \"must\"\npath = \"must.wasm\"\nfulfills = [\"must@1\", \"may@1\"]\n\
                [queue.in]\n[queue.out]\n[store.kept]\n";
    let head = "[main]\ndata-dir = \"data\"\n[[extension]]\nid = \"needy\"\npath = \"needy.wasm\"\n";

    let bare = check(&dir, &format!("{head}{rest}"));
    assert_eq!((bare.code, bare.stdout.as_str()), (1, "`must` is ok\n"), "{}", bare.stderr);
    let said =
        "error: weir.toml:5:8: `needy`: by its manifest it cannot do without `must@1`, and may not call that";
    assert!(bare.stderr.contains(said), "{}", bare.stderr);
    for missing in [
        "serves `served@1`, which its `fulfills` does",
        "calls `may@1`, which its `wants` does",
        "publishes `told.>`, which its `publishes` does",
        "subscribes to `heard`, which its `subscribes` does",
        "puts jobs into `in`, which its `puts` does",
        "takes jobs of `out`, which its `takes` does",
        "opens `/data`, `/read`, which its `grants.dirs` does",
        "reads the variables `KEY`, which its `grants.env` does",
        "connects to `example.com:443`, which its `grants.net` does",
    ] {
        let line = format!("warning: `needy`: by its manifest it {missing} not have\n");
        assert!(bare.stderr.contains(&line), "{line}: {}", bare.stderr);
    }
    for import in ["`wasi:http` and has no `grants.http`", "`wasi:keyvalue` and has no `grants.stores`"] {
        assert!(bare.stderr.contains(&format!("warning: `needy`: it imports {import}")), "{}", bare.stderr);
    }
    let json = done(weir(dir.path()).args(["check", "--json", "weir.toml"]));
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((&json["ok"], &json["extensions"][0]["ok"]), (&false.into(), &false.into()));

    let read_only =
        check(&dir, &format!("{head}{}{rest}", GRANTED.replace("/data\", mode = \"rw\"", "/data\"")));
    assert_eq!(read_only.code, 0, "{}", read_only.stderr);
    let said = "it writes to `/data`, which its `grants.dirs` with the mode `rw` does not have";
    assert!(read_only.stderr.contains(said), "{}", read_only.stderr);
    check(&dir, &format!("{head}{GRANTED}{rest}")).good();
}

#[test]
fn certificates_that_main_could_not_start_with_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let file = "[http]\nca-file = \"ca.pem\"\n";
    let said = |fault: &str| {
        let checked = check(&dir, file);
        assert_eq!((checked.code, checked.stdout.as_str()), (1, ""));
        assert!(checked.stderr.starts_with("error: `weir run` would not start: "), "{}", checked.stderr);
        assert!(checked.stderr.contains("ca.pem") && checked.stderr.contains(fault), "{}", checked.stderr);
    };
    said("No such file");
    write(&dir, "ca.pem", "no certificate");
    said("it has no certificate");
}

#[test]
fn a_file_among_hooks_that_cannot_run_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("hooks")).unwrap();
    write(&dir, "hooks/10-runs.wasm", program(&[]));
    write(&dir, "hooks/.hidden.wasm", "aside");
    write(&dir, "hooks/README", "no hook");
    let file = "[hooks.init]\ndir = \"hooks\"\n";
    check(&dir, file).good();
    write(&dir, "hooks/20-asks.wasm", program(&["wasi:http/outgoing-handler@0.2.0"]));
    write(&dir, "hooks/30-text.wasm", "no component");
    write(&dir, "hooks/40-half.wasm", program(&[]).split_last_chunk::<40>().unwrap().0);
    write(&dir, "hooks/50-talks.wasm", program(&["weir:iec/channel@0.1.0"]));
    write(&dir, "hooks/60-new.wasm", program(&["wasi:clocks/system-clock@0.3.0"]));
    write(&dir, "hooks/70-library.wasm", wat::parse_str("(component)").unwrap());
    write(&dir, "hooks/80-forged.cwasm", "no artifact");
    let checked = check(&dir, file);
    assert_eq!((checked.code, checked.stdout.as_str()), (1, ""));
    for (hook, fault) in [
        ("30-text.wasm", "is not a WebAssembly component"),
        ("40-half.wasm", "is damaged"),
        ("50-talks.wasm", "which only extensions have"),
        ("60-new.wasm", "it is made for WASI 0.3 (async components), and this Weir offers WASI 0.2"),
        ("70-library.wasm", "it exports no `wasi:cli/run`"),
        ("80-forged.cwasm", "is not a WebAssembly component"),
    ] {
        let is_it = |line: &&str| {
            line.starts_with("error: in `hooks.init`: the hook `")
                && line.contains(&format!("{hook}` cannot run: "))
        };
        let line = checked.stderr.lines().find(is_it).unwrap_or_else(|| panic!("{hook}: {}", checked.stderr));
        assert!(line.contains(fault), "{line}");
    }
    assert_eq!(checked.stderr.lines().count(), 7, "{}", checked.stderr);
    assert!(checked.stderr.contains("20-asks.wasm`: it imports `wasi:http` and has no `grants.http`"));
}

#[test]
fn a_directory_of_mains_own_that_cannot_be_written_to_is_said_by_check() {
    let dir = tempfile::tempdir().unwrap();
    let own = dir.path().join("own");
    fs::create_dir(&own).unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o500)).unwrap();
    // Permissions do not bind the superuser, except of this directory.
    let closed =
        if fs::write(own.join("probe"), "").is_ok() { Path::new("/proc/sys/weir") } else { own.as_path() };
    let closed = closed.display();
    let checked = check(&dir, &format!("[main]\ndata-dir = \"{closed}\"\ncache-dir = \"{closed}/cache\"\n"));
    let said = "error: in `main.data-dir`: this user cannot write to `";
    assert!(checked.stderr.contains(said), "{}", checked.stderr);
    let said = "warning: in `main.cache-dir`: this user cannot write to `";
    assert!(checked.stderr.contains(said), "{}", checked.stderr);
    assert_eq!(checked.code, 1);
    let checked = check(&dir, &format!("[main]\nstate-dir = \"{closed}\"\n"));
    let said = "error: in `main.state-dir`: this user cannot write to `";
    assert!(checked.stderr.contains(said), "{}", checked.stderr);
    assert_eq!(checked.code, 1);

    let checked = check(&dir, "[main]\ndata-dir = \"data\"\ncache-dir = \"new/cache\"\n");
    assert_eq!(checked.good(), "ok, and without extensions\n");
    assert!(!dir.path().join("data").exists() && !dir.path().join("new").exists());

    fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
    let last_change = || fs::metadata(&own).unwrap().modified().unwrap();
    let before = last_change();
    check(&dir, "[main]\ndata-dir = \"own\"\n").good();
    assert_eq!(last_change(), before);

    write(&dir, "file", "no directory");
    let checked = check(&dir, "[main]\ndata-dir = \"file/data\"\n");
    assert!(checked.stderr.contains("file`: Not a directory"), "{}", checked.stderr);
}

#[test]
fn an_alias_of_an_operation_that_does_not_exist_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let described = r#"{"openrpc":"1.3.2","info":{"title":"lamp@1","version":"1"},"methods":[{"name":"lamp@1/on","params":[],"result":{"name":"null","schema":{"type":"null"}}}]}"#;
    write(&dir, "lamp.wasm", with_section(program(&[IEC]), "weir:contracts", described));
    write(&dir, "mute.wasm", program(&[IEC]));
    let file = "[[extension]]\nid = \"lamp\"\npath = \"lamp.wasm\"\nfulfills = [\"lamp@1\"]\n\
                [[extension]]\nid = \"mute\"\npath = \"mute.wasm\"\nfulfills = [\"mute@1\"]\n\
                [gateway]\nlisten = [\"unix:gateway.sock\"]\n[gateway.alias]\n";
    check(&dir, &format!("{file}a = \"lamp@1/on\"\nb = \"mute@1/any\"\nc = \"hooks@1/run\"\n")).good();
    let checked = check(&dir, &format!("{file}a = \"lamp@1/onn\"\nb = \"gone@1/any\"\n"));
    assert_eq!(checked.code, 0);
    let said = "warning: `gateway.alias.\"a\"` stands for `lamp@1/onn`, and `lamp` describes no such operation: did \
                you mean `on`?\nwarning: `gateway.alias.\"b\"` stands for `gone@1/any`, and no extension or peer \
                fulfills the contract\n";
    assert_eq!(checked.stderr, said);
}

#[test]
fn a_core_module_for_wasi_0_1_is_a_component_after_build_adapt() {
    const MODULE: &str = r#"(module
        (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (data (i32.const 0) "\08\00\00\00\06\00\00\00adapt\0a")
        (func (export "_start") (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))))"#;
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("hooks.d")).unwrap();
    let module = wat::parse_str(MODULE).unwrap();
    write(&dir, "hooks.d/10-old.wasm", &module);
    let weir = |args: &[&str]| done(weir(dir.path()).args(args));
    let refused = weir(&["hooks", "run", "hooks.d"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stdout.contains("is a core module, not a component"), "{}", refused.stdout);
    assert!(refused.stdout.contains("`weir build --adapt FILE`"), "{}", refused.stdout);

    weir(&["build", "--adapt", "hooks.d/10-old.wasm"]).good();
    let report = weir(&["hooks", "run", "hooks.d"]).good();
    assert!(report.contains("\n    adapt\n"), "{report}");

    // It is a component now, and others are as they were.
    for (content, fault) in [
        (fs::read(dir.path().join("hooks.d/10-old.wasm")).unwrap(), "is no core module"),
        (b"no module".to_vec(), "is no core module"),
        (wat::parse_str("(module (import \"env\" \"f\" (func)))").unwrap(), "cannot be made a component"),
    ] {
        write(&dir, "other.wasm", &content);
        let refused = weir(&["build", "--adapt", "other.wasm"]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(refused.stderr.contains(fault), "{}", refused.stderr);
        assert_eq!(fs::read(dir.path().join("other.wasm")).unwrap(), content);
    }
}

#[test]
fn compile_signs_nothing_that_no_main_can_run() {
    let dir = tempfile::tempdir().unwrap();
    done(weir(dir.path()).args(["keygen", "release.key"])).good();
    let compile = |more: &[&str]| {
        done(weir(dir.path()).args([&["compile", "new.wasm", "--key", "release.key"], more].concat()))
    };
    write(&dir, "new.wasm", program(&["wasi:clocks/system-clock@0.3.0"]));
    let refused = compile(&[]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert!(
        refused.stderr.contains("it is made for WASI 0.3 (async components), and this Weir offers WASI 0.2"),
        "{refused:?}"
    );
    let function = "(component (import \"wasi:cli/stdout@0.2.0\" (instance (export \"shout\" (func))))
        (instance $run) (export \"wasi:cli/run@0.2.0\" (instance $run)))";
    for (component, fault) in
        [(wat::parse_str(function).unwrap(), "shout"), (wat::parse_str("(component)").unwrap(), "run")]
    {
        write(&dir, "new.wasm", component);
        for more in [&[][..], &["--address-space", "small"]] {
            let refused = compile(more);
            assert_eq!(refused.code, 1, "{fault}: {refused:?}");
            assert!(refused.stderr.contains(fault), "{fault}: {refused:?}");
        }
    }
    assert!(!dir.path().join("new.cwasm").exists());
    write(&dir, "new.wasm", program(&[]));
    compile(&[]).good();
    assert!(dir.path().join("new.cwasm").exists());
}
