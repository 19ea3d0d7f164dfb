//! Endless work costs the extension its instance, and the neighbour nothing.

use std::time::Duration;

use weir_host::control::ExtensionState;

use super::{
    crafted::{Crafted, component, program, text},
    stage::{Fault, Stage, hostile_with},
    turns::Turns,
};

const FUEL: u64 = 50_000_000;
/// Slices of that fuel, less a tenth: a message may make an extension run twice between two turns.
const SLICES: u32 = 450;
/// Stack of the class `medium`.
const STACK: u64 = 1 << 20;
const USED_UP: &str = "`fuel-per-message` of 50000000 used up";

/// Case 1.
#[tokio::test]
async fn an_endless_loop_is_ended_at_its_fuel_and_the_record_says_all() {
    let turns = Turns::default();
    let spinner = hostile_with(|h| h.limits.fuel_per_message = FUEL);
    let stage = Stage::with(vec![spinner], Some(turns.service())).await;
    let (spun, waits) = turns.during(&stage.main, "hostile", stage.tell("spin")).await;
    assert_eq!(spun, Err("Trapped".to_owned()));
    assert!(waits.turns >= SLICES, "one after each slice: {waits:?}");
    assert!(waits.are_short(), "{waits:?}");
    stage
        .failed(
            "hostile",
            &Fault::new(USED_UP).limit("fuel-per-message", FUEL, FUEL).asked().within("work::spin"),
        )
        .await;
}

/// Case 1: the caller hears at the deadline; the loop goes on to its own end.
#[tokio::test]
async fn whoever_asked_for_an_endless_loop_hears_at_the_deadline() {
    let stage = Stage::start(vec![hostile_with(|h| {
        h.limits.fuel_per_message = 1_000_000_000_000_000;
        h.limits.request_timeout = Some(Duration::from_millis(200));
        h.limits.stop_timeout = Duration::from_millis(200);
    })])
    .await;
    assert_eq!(stage.tell("spin").await, Err("Timeout".to_owned()));
    assert_eq!(stage.status("hostile").state, ExtensionState::Ready);
    assert_eq!(stage.main.client().waiters(), 0);
    stage.main.control().stop("hostile").await.unwrap();
    assert_eq!(
        stage.status("hostile").reason.as_deref(),
        Some("did not stop within `stop-timeout` of 200ms")
    );
}

/// Case 2.
#[tokio::test]
async fn a_start_function_that_loops_is_ended_at_the_fuel_or_the_deadline_of_the_start() {
    let looping =
        program(r#"(func $loop (loop (br 0))) (start $loop) (func (export "run") (result i32) i32.const 0)"#);
    let crafted = Crafted::new();
    let mut hungry = crafted.extension("hungry", &looping);
    hungry.limits.fuel_to_start = FUEL;
    let mut slow = crafted.extension("slow", &looping);
    slow.limits.fuel_to_start = 1_000_000_000_000;
    slow.limits.ready_timeout = Duration::from_millis(300);
    let stage = Stage::start(vec![hungry, slow]).await;
    stage
        .failed(
            "hungry",
            &Fault::new("`fuel-to-start` of 50000000 used up")
                .limit("fuel-to-start", FUEL, FUEL)
                .within("loop"),
        )
        .await;
    stage.failed("slow", &overdue()).await;
}

/// A start of over 300 ms.
fn overdue() -> Fault<'static> {
    Fault::new("not ready within `ready-timeout` of 300ms").limit("ready-timeout", 300_000_000, 300_000_000)
}

/// Case 4: the host waits for room for an answer.
#[tokio::test]
async fn a_loop_in_cabi_realloc_is_a_trap() {
    let crafted = Crafted::new();
    for call in ["own-name", "subscribe"] {
        let mut hungry = crafted.extension("hungry", &realloc("(loop (br 0)) unreachable", call));
        hungry.limits.fuel_to_start = FUEL;
        let mut slow = crafted.extension("slow", &realloc("(loop (br 0)) unreachable", call));
        slow.limits.fuel_to_start = 1_000_000_000_000;
        slow.limits.ready_timeout = Duration::from_millis(300);
        let stage = Stage::start(vec![hungry, slow]).await;
        let cause = "`fuel-to-start` of 50000000 used up";
        stage.failed("hungry", &Fault::new(cause).limit("fuel-to-start", FUEL, FUEL).within("realloc")).await;
        stage.failed("slow", &overdue()).await;
    }
}

/// Cases 4 and 8.
#[tokio::test]
async fn a_cabi_realloc_that_recurses_calls_the_host_or_returns_nonsense_is_a_trap() {
    let crafted = Crafted::new();
    for (body, cause) in [
        (
            "(call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 1))",
            "trapped: call stack exhausted",
        ),
        ("(call $ready) (i32.const 8)", "trapped: cannot leave component instance"),
        ("(i32.const 65535)", "trapped: realloc return: beyond end of memory"),
        ("(i32.const -1)", "trapped: realloc return: beyond end of memory"),
    ] {
        for call in ["own-name", "subscribe"] {
            let stage = Stage::start(vec![crafted.extension("crafted", &realloc(body, call))]).await;
            let fault = Fault::new(cause);
            let is_stack = cause.contains("stack exhausted");
            stage.failed("crafted", &if is_stack { fault.limit("stack", STACK, STACK) } else { fault }).await;
        }
    }
}

/// Calls for a result that needs room, with its own `realloc`.
fn realloc(body: &str, call: &str) -> String {
    text("realloc.wat", &[("@BODY@", body), ("@CALL@", call)])
}

/// Case 8: in a start function, and with frames of thousands of variables.
#[tokio::test]
async fn recursion_of_every_kind_is_a_trap() {
    let crafted = Crafted::new();
    let run = r#"(func (export "run") (result i32) i32.const 0)"#;
    let locals = "(local i64)".repeat(10_000);
    let uses: String =
        (0..10_000).map(|n| format!("(local.set {n} (i64.add (local.get {n}) (call $deep)))")).collect();
    let sum: String = (0..10_000).map(|n| format!("(local.get {n}) i64.add ")).collect();
    let large = format!("(func $deep (result i64) {locals} {uses} (i64.const 0) {sum})");
    let mutual = "(table 2 funcref) (elem (i32.const 0) $even $odd) (type $f (func)) \
         (func $even (call_indirect (type $f) (i32.const 1))) (func $odd (call_indirect (type $f) (i32.const 0)))";
    let stage = Stage::start(vec![
        crafted.extension("start", &program(&format!("(func $deep (call $deep)) (start $deep) {run}"))),
        crafted.extension(
            "large-frames",
            &program(&format!("{large} (func $main (drop (call $deep))) (start $main) {run}")),
        ),
        crafted.extension("mutual", &program(&format!("{mutual} (start $even) {run}"))),
    ])
    .await;
    for id in ["start", "large-frames", "mutual"] {
        let fault = Fault::new("trapped: call stack exhausted").limit("stack", STACK, STACK);
        stage.failed(id, &fault).await;
    }
}

/// Case 9.
#[tokio::test]
async fn filling_the_whole_memory_again_and_again_is_ended_at_the_fuel() {
    let turns = Turns::default();
    let filler = hostile_with(|h| {
        h.limits.memory = 16 << 20;
        h.limits.fuel_per_message = 500_000_000;
    });
    let stage = Stage::with(vec![filler], Some(turns.service())).await;
    let (filled, waits) = turns.during(&stage.main, "hostile", stage.tell("fill 12000000")).await;
    assert_eq!(filled, Err("Trapped".to_owned()));
    // After each of 41 fills.
    assert!(waits.turns >= 41, "{waits:?}");
    let fault = Fault::new("`fuel-per-message` of 500000000 used up");
    let fault = fault.limit("fuel-per-message", 500_000_000, 500_000_000).asked().within("work::fill");
    stage.failed("hostile", &fault).await;
}

/// Case 9: table and data segment operations cost fuel, too.
#[tokio::test]
async fn every_bulk_operation_in_a_loop_is_ended_at_the_fuel() {
    let crafted = Crafted::new();
    let loops = [
        ("memory-fill", "(memory.fill (i32.const 0) (i32.const 1) (i32.const 1048576))"),
        ("memory-copy", "(memory.copy (i32.const 0) (i32.const 65536) (i32.const 983040))"),
        ("memory-init", "(memory.init $data (i32.const 0) (i32.const 0) (i32.const 60000))"),
        ("table-fill", "(table.fill $t (i32.const 0) (ref.func $f) (i32.const 250000))"),
        ("table-copy", "(table.copy $t $t (i32.const 0) (i32.const 10) (i32.const 200000))"),
        ("table-init", "(table.init $t $elem (i32.const 0) (i32.const 0) (i32.const 1000))"),
    ];
    let data = "x".repeat(60_000);
    let elem = "$f ".repeat(1000);
    let extensions = loops
        .iter()
        .map(|(id, operation)| {
            let module = format!(
                r#"(memory 16) (table $t 250000 funcref) (data $data "{data}") (elem $elem func {elem})
                (func $f) (func $main (loop {operation} (br 0))) (start $main)
                (func (export "run") (result i32) i32.const 0)"#
            );
            let mut extension = crafted.extension(id, &program(&module));
            extension.limits.fuel_to_start = 10 * FUEL;
            extension
        })
        .collect();
    let stage = Stage::start(extensions).await;
    for (id, _) in loops {
        let fault = Fault::new("`fuel-to-start` of 500000000 used up");
        stage.failed(id, &fault.limit("fuel-to-start", 10 * FUEL, 10 * FUEL)).await;
        // 500 million units of a plain loop take well under a second.
        let cpu = stage.status(id).cpu;
        assert!(cpu < Duration::from_secs(10), "{id}: {cpu:?}");
    }
}

/// Case 3, with host calls; for a plain loop see `a_loop_after_stop_is_killed_at_the_stop_deadline`.
#[tokio::test]
async fn a_storm_of_host_calls_is_killed_at_the_stop_deadline() {
    for storm in ["receive", "clock", "log"] {
        let stage = Stage::start(vec![hostile_with(|h| {
            h.limits.fuel_per_message = 1_000_000_000_000_000;
            h.limits.stop_timeout = Duration::from_millis(200);
        })])
        .await;
        let command = format!("storm {storm}");
        let storming = stage.tell(&command);
        let stop = async {
            while stage.status("hostile").received == 0 {
                tokio::task::yield_now().await;
            }
            stage.main.control().stop("hostile").await.unwrap();
        };
        let (told, ()) = tokio::join!(storming, stop);
        assert_eq!(told, Err("Trapped".to_owned()), "{storm}");
        let status = stage.status("hostile");
        assert_eq!(status.reason.as_deref(), Some("did not stop within `stop-timeout` of 200ms"), "{storm}");
        stage.stands().await;
    }
}

#[tokio::test]
async fn a_component_of_nothing_but_run_finishes() {
    let crafted = Crafted::new();
    let text = component(
        "",
        r#"(core module $m (func (export "run") (result i32) i32.const 0)) (core instance $main (instantiate $m))"#,
    );
    let stage = Stage::start(vec![crafted.extension("crafted", &text)]).await;
    stage.finished("crafted").await;
}
