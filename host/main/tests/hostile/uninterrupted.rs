//! Uninterrupted work of the host for a guest: others wait for one piece at most.

use std::time::Duration;

use weir_host::{ExtensionConfig, config::CpuShare, control::ExtensionState};

use super::{
    crafted::{Crafted, component, program, text},
    stage::Stage,
    turns::{ATTEMPTS, Turns, Waits},
};

/// Runs the module's start to its end with this fuel; returns others' waits. Retries long waits, which the machine may
/// have caused.
pub(crate) async fn run(
    mut extension: ExtensionConfig,
    fuel: u64,
    are_fine: fn(&Waits) -> bool,
) -> (Option<String>, Duration, Waits) {
    extension.limits.fuel_to_start = fuel;
    extension.limits.cpu_share = CpuShare::WHOLE;
    extension.autostart = false;
    for _ in 1..ATTEMPTS {
        let outcome = run_once(extension.clone()).await;
        if are_fine(&outcome.2) {
            return outcome;
        }
    }
    run_once(extension).await
}

pub(crate) fn used_up(fuel: u64) -> String {
    format!("`fuel-to-start` of {fuel} used up")
}

async fn run_once(extension: ExtensionConfig) -> (Option<String>, Duration, Waits) {
    let id = extension.id.to_string();
    let turns = Turns::default();
    let stage = Stage::with(vec![extension], Some(turns.service())).await;
    let ended = async {
        drop(stage.main.control().start(&id).await);
        loop {
            let status = stage.status(&id);
            if matches!(status.state, ExtensionState::Failed | ExtensionState::Stopped) {
                return status.reason;
            }
            tokio::task::yield_now().await;
        }
    };
    let (reason, waits) = turns.during(&stage.main, &id, ended).await;
    let cpu = stage.status(&id).cpu;
    stage.stands().await;
    (reason, cpu, waits)
}

/// Fuel for three fills of almost a whole memory.
const FUEL: u64 = 50_000_000;

/// Case 9: instructions that the host executes, but compiled code does not call.
#[tokio::test]
async fn no_instruction_brings_fuel_back() {
    /// A hundred slices.
    const SOME: u64 = 10_000_000;
    let crafted = Crafted::new();
    let mut wrong = Vec::new();
    for operation in [
        "(drop (memory.grow (i32.const 0)))",
        "(drop (memory.grow (i32.const 100000)))",
        "(drop (table.grow $t (ref.null func) (i32.const 0)))",
        "(drop (table.grow $t (ref.null func) (i32.const 10000000)))",
        "(data.drop $d) (elem.drop $e)",
        "(drop (ref.func $f))",
        "(table.set $t (i32.const 0) (ref.func $f))",
        "(table.fill $t (i32.const 0) (ref.null func) (i32.const 1))",
        "(table.copy $t $t (i32.const 0) (i32.const 0) (i32.const 1))",
        "(memory.init $d (i32.const 0) (i32.const 0) (i32.const 0))",
        "(memory.copy (i32.const 0) (i32.const 0) (i32.const 0))",
    ] {
        // With a call between, where guest and host exchange the fuel count.
        for between in ["", "(call $f)"] {
            let module = format!(
                r#"(memory 1) (table $t 1 funcref) (data $d "x") (elem $e func $f) (func $f)
                (func (export "run") (result i32) (loop {operation} {between} (br 0)) (i32.const 0))"#
            );
            let (reason, cpu, waits) =
                run(crafted.extension("crafted", &program(&module)), SOME, Waits::are_short).await;
            let said = format!("{operation} {between}: {reason:?} {cpu:?} {waits:?}");
            if reason.as_deref() != Some(&*used_up(SOME)) || !waits.are_short() {
                wrong.push(said);
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Case 54: the host converts strings between inner components.
#[tokio::test]
async fn what_components_inside_pass_to_each_other_holds_up_nobody() {
    let crafted = Crafted::new();
    for (kind, encoding, length) in [
        ("string", "", 7_000_000),
        ("string", "string-encoding=utf16", 3_000_000),
        ("(list u8)", "", 7_000_000),
        ("(list u16)", "", 3_500_000),
    ] {
        let length = length.to_string();
        let words = [("@TYPE@", kind), ("@ENCODING@", encoding), ("@LENGTH@", &length), ("@PAGES@", "112")];
        let mut adapters = crafted.extension("adapters", &text("adapters.wat", &words));
        adapters.limits.ready_timeout = Duration::from_secs(2);
        let (reason, cpu, waits) = run(adapters, FUEL, Waits::are_of_single_pieces).await;
        let said = format!("{kind} {encoding}: {reason:?} {cpu:?} {waits:?}");
        let reason = reason.unwrap();
        assert!(reason == used_up(FUEL) || reason == "not ready within `ready-timeout` of 2s", "{said}");
        assert!(waits.are_of_single_pieces(), "{said}");
    }
}

/// Case 9: without a loop, where wasmtime would check the fuel.
#[tokio::test]
async fn bulk_operations_one_after_the_other_let_others_run_after_each() {
    let fills = "(memory.fill (i32.const 0) (i32.const 1) (i32.const 12582912))".repeat(200);
    let module = format!(r#"(memory 192) (func (export "run") (result i32) {fills} i32.const 0)"#);
    let (_, cpu, waits) =
        run(Crafted::new().extension("filler", &program(&module)), FUEL, Waits::are_of_single_pieces).await;
    // Fuel for three, and one more without.
    assert!(waits.turns >= 3 && waits.are_of_single_pieces(), "{cpu:?} {waits:?}");
}

/// Cases 1 and 54: code without a loop or function, where wasmtime would yield.
#[tokio::test]
async fn host_calls_without_a_loop_between_let_others_run_or_are_a_trap() {
    let imports = r#"(import "weir:iec/lifecycle@0.1.0" (instance $lifecycle (export "ready" (func))))"#;
    let calls = "(call $ready)".repeat(200_000);
    let cores = format!(
        r#"(core func $ready (canon lower (func $lifecycle "ready")))
        (core module $m
          (import "host" "ready" (func $ready))
          (func (export "run") (result i32) {calls} i32.const 0))
        (core instance $main (instantiate $m (with "host" (instance (export "ready" (func $ready))))))"#
    );
    let (reason, cpu, waits) = run(
        Crafted::new().extension("caller", &component(imports, &cores)),
        FUEL,
        Waits::are_of_single_pieces,
    )
    .await;
    assert!(reason.is_some(), "it is ended");
    assert!(waits.are_of_single_pieces(), "{reason:?} {cpu:?} {waits:?}");
}

/// Cases 1 and 54: with the largest transfer in each call.
#[tokio::test]
async fn large_calls_without_a_loop_between_hold_up_nobody() {
    let crafted = Crafted::new();
    let imports = r#"(import "weir:iec/lifecycle@0.1.0"
        (instance $lifecycle (export "error" (func (param "reason" string)))))"#;
    let calls = "(call $error (i32.const 0) (i32.const 1000000))".repeat(5_000);
    let cores = format!(
        r#"(core module $memory (memory (export "memory") 160))
        (core instance $memory (instantiate $memory))
        (core func $error (canon lower (func $lifecycle "error") (memory (core memory $memory "memory"))))
        (core module $m
          (import "host" "error" (func $error (param i32 i32)))
          (func (export "run") (result i32) {calls} i32.const 0))
        (core instance $main (instantiate $m (with "host" (instance (export "error" (func $error))))))"#
    );
    let (reason, cpu, waits) =
        run(crafted.extension("straight", &component(imports, &cores)), FUEL, Waits::are_of_single_pieces)
            .await;
    assert!(reason.is_some(), "it is ended");
    assert!(waits.are_of_single_pieces(), "{cpu:?} {waits:?}");
}

/// Case 7: each core instance fills the largest table.
#[tokio::test]
async fn instances_that_fill_one_table_again_and_again_hold_up_nobody() {
    let crafted = Crafted::new();
    let elements = "$f ".repeat(250_000);
    let module = format!(
        r#"(core module $shared (table (export "t") 250000 funcref))
        (core instance $shared (instantiate $shared))
        (core module $m (import "s" "t" (table $t 250000 funcref)) (func $f)
          (elem (table $t) (i32.const 0) func {elements})
          (func (export "run") (result i32) i32.const 0))"#
    );
    let with = r#"(with "s" (instance $shared))"#;
    let others = format!("(core instance (instantiate $m {with}))").repeat(40);
    let text = component("", &format!("{module} {others} (core instance $main (instantiate $m {with}))"));
    let (_, cpu, waits) = run(crafted.extension("elements", &text), FUEL, Waits::are_of_single_pieces).await;
    assert!(waits.are_of_single_pieces(), "{cpu:?} {waits:?}");
}
