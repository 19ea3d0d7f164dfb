//! Traps, their cost, and what an operator sees of them.

use std::fs;

use super::support::{Device, configure, maker, puppet, target};

/// Starts again at once, many times.
const RESTARTS: &str = "restart = { backoff = \"1ms\", max-backoff = \"1ms\", failures = 50 }";

/// An extension that does this as it starts, and should not get further.
fn crafted(body: &str) -> Vec<u8> {
    let text = format!(
        r#"
        (component
            (core module $m
                (memory 1)
                (func (export "run") (result i32) {body}))
            (core instance $i (instantiate $m))
            (func $run (result (result)) (canon lift (core func $i "run")))
            (instance $cli (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $cli)))
        "#
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn a_trap_costs_the_request_in_hand_and_the_extension_starts_again() {
    let device = Device::with(&(puppet("a", RESTARTS) + &puppet("b", "")));
    for command in ["trap", "panic on purpose", "recurse"] {
        let trapped = device.ask("a", command);
        assert_eq!(trapped.code, 8, "{command}: {trapped:?}");
        assert!(trapped.stderr.contains("trapped with the request in hand"), "{command}: {trapped:?}");
        assert_eq!(device.tell("b", "echo unharmed"), "unharmed", "{command}");
        device.until_state("a", "ready");
        assert_eq!(device.tell("a", "echo again"), "again", "{command}");
        let failure = device.failure("a");
        assert!(failure["cause"].as_str().unwrap().starts_with("trapped"), "{command}: {failure}");
    }
    let failure = device.failure("a").to_string();
    assert!(failure.contains("call stack exhausted") && failure.contains("recurse"), "{failure}");
}

#[test]
fn faults_of_the_machine_are_traps_of_the_guest() {
    // Reads beyond its memory, near and far; divides by zero; overflows; leaves the range of an integer.
    let faults = [
        ("near", "i32.const 65533 i32.load", "out of bounds memory access"),
        ("far", "i32.const 0x7fff0000 i32.load offset=0x7fff0000", "out of bounds memory access"),
        ("zero", "i32.const 1 i32.const 0 i32.div_u", "integer divide by zero"),
        ("overflow", "i32.const 0x80000000 i32.const -1 i32.div_s", "integer overflow"),
        ("range", "f32.const nan i32.trunc_f32_s", "invalid conversion to integer"),
        ("nowhere", "unreachable", "`unreachable` instruction executed"),
    ];
    let device = Device::with(&puppet("well", ""));
    let mut tables = puppet("well", "");
    for (id, body, _) in faults {
        let component = device.path().join(format!("{id}.wasm"));
        fs::write(&component, crafted(body)).unwrap();
        maker().compile(&component, &target(), &device.path().join(format!("{id}.cwasm")));
        tables += &format!(
            "[[extension]]\nid = \"{id}\"\npath = \"{id}.cwasm\"\nautostart = false\nrestart.policy = \"never\"\n"
        );
    }
    configure(device.path(), &tables);
    assert_eq!(device.weir(&["reload"]).code, 0);
    for (id, _, trap) in faults {
        let started = device.weir(&["start", id]);
        assert_ne!(started.code, 0, "{id}");
        let failure = device.failure(id).to_string();
        assert!(failure.contains(trap), "{id}: {failure}");
        assert_eq!(device.tell("well", "echo unharmed"), "unharmed", "{id}");
    }
}

#[test]
fn an_extension_that_fails_again_is_quarantined_until_an_operator_restarts_it() {
    let device =
        Device::with(&puppet("a", "restart = { backoff = \"1ms\", max-backoff = \"1ms\", failures = 2 }"));
    assert_eq!(device.ask("a", "trap").code, 8);
    device.until_state("a", "ready");
    assert_eq!(device.ask("a", "trap").code, 8);
    device.until_state("a", "quarantined");
    let start = device.weir(&["start", "a"]);
    assert!(start.code == 8 && start.stderr.contains("2 failures within"), "{start:?}");
    assert_eq!(device.ask("a", "echo").code, 8);
    assert_eq!(device.weir(&["restart", "a"]).good(), "`a` is ready\n");
    assert_eq!(device.tell("a", "echo again"), "again");
}
