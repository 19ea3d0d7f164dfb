//! One cheap call without end: it yields every slice like any other loop, and is paid for.

use weir_host::{ExtensionConfig, State, config::CpuShare};

use super::{
    stage::{Stage, hostile_with},
    support::{puppet_with, reached},
    turns::Turns,
};

const FUEL: u64 = 50_000_000;

/// Every storm that the guest `hostile` knows: calls of `weir:iec`, of WASI, and no call at all.
const STORMS: [&str; 43] = [
    "nothing",
    "receive",
    "receive-batch",
    "respond",
    "respond-error",
    "serve",
    "inbox-pollable",
    "open",
    "open-unknown",
    "cancel",
    "call-itself",
    "send-itself",
    "subscribe",
    "publish-itself",
    "publish-patterns",
    "ready",
    "interrupted",
    "fault",
    "own-name",
    "name-of",
    "config",
    "log",
    "log-fields",
    "log-controls",
    "stdout",
    "check-write",
    "write-nothing",
    "stdout-handles",
    "terminal",
    "clock",
    "wall-clock",
    "timers",
    "ready-timer",
    "poll",
    "environment",
    "arguments",
    "directories",
    "random",
    "insecure-random",
    "tcp",
    "resolve",
    "random-numbers",
    "insecure-seed",
];

/// An extension that may do all that the storms do, and has the worker thread to itself.
fn stormy() -> Vec<ExtensionConfig> {
    let hostile = hostile_with(|h| {
        h.limits.fuel_per_message = FUEL;
        h.limits.cpu_share = CpuShare::WHOLE;
        h.wants = ["hostile@1", "down@1", "nobody@1"].map(|name| name.parse().unwrap()).to_vec();
        h.subscribes = vec!["own.>".parse().unwrap()];
        h.publishes = vec!["own.>".parse().unwrap()];
    });
    vec![hostile, puppet_with("down", |down| down.autostart = false)]
}

/// Cases 52 and 54: nobody waits long for a turn, whatever is called without end, and it ends with the
/// fuel.
#[tokio::test]
async fn a_storm_of_any_call_yields_every_slice_and_ends_at_its_fuel() {
    let turns = Turns::default();
    let stage = Stage::with(stormy(), Some(turns.service())).await;
    let mut wrong = Vec::new();
    for storm in STORMS {
        stage.main.control().start("hostile").await.unwrap();
        let before = stage.status("hostile").cpu;
        let (told, waits) = turns.during(&stage.main, stage.tell(&format!("storm {storm}"))).await;
        if told != Err("Trapped".to_owned()) {
            wrong.push(format!("{storm}: {told:?}"));
            continue;
        }
        let cause = reached(&stage.main, "hostile", State::Failed).await.unwrap();
        let cpu = stage.status("hostile").cpu - before;
        let said = format!("{storm}: {cause}, {cpu:?}, {waits:?}");
        let ended = cause == "`fuel-per-message` of 50000000 used up";
        if !ended || !waits.are_short() {
            wrong.push(said);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    stage.stands().await;
}
