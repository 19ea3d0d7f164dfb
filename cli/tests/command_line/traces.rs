//! Components whose functions have names that are made to be dear to show.

use std::{fmt::Write, fs};

use super::support::{Running, with_own_component};

/// A mangled name of a hundred bytes that takes a megabyte to print in full: each tuple holds the one in it twice.
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

/// A program that traps below as many functions of this name as a trace shows, as it is instantiated or as it runs.
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

/// The processor time that Main has taken when this program has failed as often as it may, in ticks of 10 ms.
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
