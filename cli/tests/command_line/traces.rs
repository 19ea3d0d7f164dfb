//! Contents of traces, and function names that are expensive to print.

use std::{fmt::Write, fs, path::Path, process::Command};

use tempfile::TempDir;

use super::support::{Done, Running, assert_golden, done, weir, with_own_component};

/// A mangled name of a hundred bytes that prints as a megabyte: each tuple contains the inner one twice.
fn growing() -> String {
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const START: &str = "INvC1a1f";
    let depth = 24;
    let mut name = format!("_R{START}{}b", "T".repeat(depth));
    for tuple in (0..depth).rev() {
        let inner = START.len() + tuple + 1;
        write!(name, "B{}_E", char::from(DIGITS[inner - 1])).unwrap();
    }
    name + "E"
}

/// A program that traps below a full trace of functions with this name, at instantiation or at run time.
fn trapping(name: &str, instantiated: bool) -> Vec<u8> {
    let mut functions = format!("(func $f0 (@name \"{name}\") (result i32) unreachable)");
    for caller in 1..20 {
        let called = caller - 1;
        write!(functions, "(func $f{caller} (@name \"{name}\") (result i32) call $f{called})").unwrap();
    }
    let start = if instantiated { "(func $start call $f19 drop) (start $start)" } else { "" };
    let text = format!(
        r#"(component
            (core module $main {functions} {start} (export "run" (func $f19)))
            (core instance $main (instantiate $main))
            (func $run (result (result)) (canon lift (core func $main "run")))
            (instance $run (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $run)))"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Main's processor time until the program is quarantined, in ticks of 10 ms.
fn ticks_of_failures(program: &[u8]) -> u64 {
    let dir = with_own_component(
        r#"
        [[extension]]
        id = "names"
        path = "names.wasm"
        restart = { backoff = "1ms", max-backoff = "1ms", failures = 20, window = "1h" }
        "#,
    );
    fs::write(dir.path().join("names.wasm"), program).unwrap();
    let mut main = Running::begin(dir);
    main.until("then=\"quarantined\"");
    let status = main.json(&["status", "--json", "names"]);
    assert_eq!(status["failures"][0]["trace"].as_array().map(Vec::len), Some(20), "{status}");
    let stat = fs::read_to_string(format!("/proc/{}/stat", main.pid())).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn a_trap_costs_no_more_for_the_names_of_its_functions() {
    for instantiated in [false, true] {
        let plain = ticks_of_failures(&trapping("plain", instantiated));
        let growing = ticks_of_failures(&trapping(&growing(), instantiated));
        assert!(growing <= 3 * plain + 50, "{growing} ticks, with plain names {plain}");
    }
}

/// A program that panics in an inlined function.
const PANICKING: &str = r#"
#[inline(never)]
fn outer(text: &str) -> usize {
    inner(text) + 1
}

#[inline(always)]
fn inner(text: &str) -> usize {
    if text.is_empty() {
        std::process::abort();
    }
    text.len()
}

fn main() {
    println!("{}", outer(&std::env::args().nth(1).unwrap_or_default()));
}
"#;

fn compile_panicking(dir: &Path, name: &str, options: &[&str]) {
    fs::write(dir.join("panicking.rs"), PANICKING).unwrap();
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    rustc.current_dir(dir).args([
        "--target",
        "wasm32-wasip2",
        "--edition",
        "2024",
        "-Cpanic=abort",
        "-Copt-level=1",
    ]);
    rustc.args(["-Cdebuginfo=line-tables-only", "panicking.rs", "-o", name]).args(options);
    let output = rustc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn failure(dir: TempDir, path: &str, keys: &str) -> (Running, String) {
    let text = format!("[[extension]]\nid = 'it'\npath = '{path}'\nrestart.policy = 'never'\n{keys}");
    fs::write(dir.path().join("weir.toml"), text).unwrap();
    let mut main = Running::begin(dir);
    main.until("[it] failed: trapped: ");
    let status = main.weir(&["status", "--json", "it"]).good();
    (main, status)
}

fn symbolise(main: &Running, status: &str, options: &[&str]) -> Done {
    let args = [["symbolise", "--component", "unstripped.wasm"].as_slice(), options].concat();
    main.weir_with_stdin(&args, status.as_bytes())
}

#[test]
fn a_trace_with_lines_says_where_in_the_source_its_functions_were() {
    let dir = tempfile::tempdir().unwrap();
    compile_panicking(dir.path(), "unstripped.wasm", &[]);
    compile_panicking(dir.path(), "stripped.wasm", &["-Cstrip=debuginfo"]);
    let (main, status) = failure(dir, "stripped.wasm", "traces = 'lines'");
    let json: serde_json::Value = serde_json::from_str(&status).unwrap();
    let trace = json["failures"][0]["trace"].to_string();
    assert!(trace.contains("panicking::outer, function "), "{trace}");

    let text = symbolise(&main, &status, &[]).good();
    // The inlined call, and its callee.
    for line in ["panicking.rs:10:9 in inner", "panicking.rs:4:5 in outer", "panicking.rs:16:"] {
        assert!(text.contains(line), "`{line}` in:\n{text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&symbolise(&main, &status, &["--json"]).good()).unwrap();
    let functions = json.as_array().unwrap();
    let outer = functions.iter().find(|it| it["function"].to_string().contains("outer")).unwrap();
    assert_eq!((&outer["lines"][0]["line"], &outer["lines"][1]["line"]), (&10.into(), &4.into()), "{json}");

    // Without debug information, the error says what is missing.
    let stripped = main.weir_with_stdin(&["symbolise", "--component", "stripped.wasm"], status.as_bytes());
    let nothing = main.weir_with_stdin(&["symbolise", "--component", "unstripped.wasm"], b"{}");
    let errors = format!("{}{}", stripped.stderr, nothing.stderr);
    assert_golden("symbolise-errors", &errors);
}

#[test]
fn a_trace_without_lines_has_the_names_alone() {
    let dir = tempfile::tempdir().unwrap();
    compile_panicking(dir.path(), "unstripped.wasm", &[]);
    let (main, status) = failure(dir, "unstripped.wasm", "");
    let json: serde_json::Value = serde_json::from_str(&status).unwrap();
    let trace = json["failures"][0]["trace"].as_array().unwrap();
    assert!(trace.iter().any(|function| function == "panicking::outer"), "{trace:?}");
    let done = symbolise(&main, &status, &[]);
    assert!(done.code == 1 && done.stderr.contains("its extension needs `traces = \"lines\"`"), "{done:?}");
}

#[test]
fn an_artifact_has_lines_if_it_was_compiled_with_them() {
    let dir = tempfile::tempdir().unwrap();
    compile_panicking(dir.path(), "unstripped.wasm", &[]);
    let weir = |args: &[&str]| done(weir(dir.path()).args(args)).good();
    let keys = weir(&["keygen", "release.key"]);
    let compile = |what: &str| {
        weir(&["compile", "unstripped.wasm", "--key", "release.key", "--traces", what, "-o", "it.cwasm"]);
        fs::metadata(dir.path().join("it.cwasm")).unwrap().len()
    };
    assert!(compile("functions") < compile("lines"));
    let keys = format!("[main]\n{keys}");
    let (main, status) = failure(dir, "it.cwasm", &keys);
    assert!(symbolise(&main, &status, &[]).good().contains("panicking.rs:10:9 in inner"));
}

#[test]
fn an_error_that_a_guest_reads_tells_nothing_of_main() {
    let dir = with_own_component(
        r#"
        [[extension]]
        id = "hostile"
        path = "hostile.wasm"
        fulfills = ["hostile@1"]
        config.contract = "hostile@1"
        grants.dirs = [{ host = "disk", guest = "/data", mode = "rw", max-bytes = "64 KiB" }]
        "#,
    );
    fs::copy(test_guests::path("hostile"), dir.path().join("hostile.wasm")).unwrap();
    fs::create_dir(dir.path().join("disk")).unwrap();
    let mut command = weir(dir.path());
    command.args(["run", "weir.toml"]).env("RUST_BACKTRACE", "1");
    let mut main = Running::spawn(dir, command);
    main.until("extensions are ready");
    let said = main.weir(&["call", "hostile@1", "run", "--raw", "stream-error 0:file"]).good();
    assert_eq!(said, "No space left on device (os error 28)");
}
