//! Limits stop what goes too far, and name themselves.

use super::support::{Device, configured, done, puppet, weir};

const RESTARTS: &str = "restart = { backoff = \"1ms\", max-backoff = \"1ms\", failures = 50 }";

#[test]
fn fuel_and_stack_end_a_guest_that_goes_on_for_ever() {
    let little = format!("limits.fuel-per-message = 3_000_000\n{RESTARTS}");
    let device = Device::with(&(puppet("a", &little) + &puppet("b", RESTARTS) + &puppet("c", "")));
    for (id, command, limit) in [("a", "spin", "fuel-per-message"), ("b", "recurse", "stack")] {
        let ended = device.ask(id, command);
        assert_eq!(ended.code, 8, "{command}: {ended:?}");
        let failure = device.failure(id);
        assert_eq!(failure["limit"]["name"], limit, "{command}: {failure}");
        assert_eq!(device.tell("c", "echo unharmed"), "unharmed");
        device.until_state(id, "ready");
    }
    let limits = device.json(&["limits", "--json", "a"]);
    assert!(
        limits["fuel-per-ms"].as_u64().is_some_and(|rate| rate > 0),
        "the time of fuel is not measured: {limits}"
    );
}

#[test]
fn memory_grows_to_its_limit_and_no_further() {
    let device =
        Device::with(&puppet("a", "limits.memory = \"96 MiB\"\nlimits.fuel-per-message = 200_000_000"));
    // Beyond what a small address space reserves, where the memory moves.
    assert_eq!(device.tell("a", "reserve 80000000"), "reserved");
    assert_eq!(device.tell("a", "echo it works on"), "it works on");
    assert_eq!(device.tell("a", "reserve 120000000"), "refused");
    let limits = device.json(&["limits", "--json", "a"]);
    let limits = limits["extensions"][0]["limits"].as_array().unwrap();
    let memory = limits.iter().find(|limit| limit["key"] == "memory").unwrap();
    assert!(memory["peak"].as_u64().unwrap() > 80_000_000, "{memory}");
}

#[test]
fn a_deadline_that_passes_is_an_error_of_the_caller_alone() {
    let device = Device::with(&puppet("a", ""));
    let late = device.weir(&["call", "--timeout", "300ms", "--raw", "a@1", "run", "forget"]);
    assert_eq!(late.code, 6, "{late:?}");
    assert_eq!(device.tell("a", "echo well"), "well");
}

#[test]
fn a_memory_budget_counts_every_stack_whoever_runs_on_it() {
    let dir = configured(
        &("memory-budget = \"10 MiB\"\n".to_owned()
            + &puppet("a", "limits.memory = \"9 MiB\"\nlimits.stack = \"1 MiB\"")),
    );
    let refused = done(weir(dir.path()).args(["check", "weir.toml"]));
    assert!(refused.code == 1 && refused.stderr.contains("`memory` 9 MiB + `stack` 1 MiB"), "{refused:?}");
}
