//! One cheap call without end yields every slice, and costs fuel.

use futures_util::{FutureExt, future::join_all};
use weir_host::{Error, ExtensionConfig, config::CpuShare, control::ExtensionState};

use super::{
    stage::{Fault, Stage, hostile_with},
    support::{puppet_with, reached},
    turns::{ATTEMPTS, Turns},
};

/// A hundred slices.
const FUEL: u64 = 10_000_000;

/// Storms of the guest `hostile`: calls of `weir:iec`, of WASI, and none.
const STORMS: [&str; 45] = [
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
    "done-all",
    "done-all-too-many",
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

/// May do all storms, alone on the worker thread.
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

/// Cases 52 and 54: nobody waits long for a turn, and the storm ends with its fuel.
#[tokio::test]
async fn a_storm_of_any_call_yields_every_slice_and_ends_at_its_fuel() {
    let turns = Turns::default();
    let stage = Stage::with(stormy(), Some(turns.service())).await;
    let mut wrong = Vec::new();
    for storm in STORMS {
        for attempt in 1..=ATTEMPTS {
            stage.main.control().start("hostile").await.unwrap();
            let before = stage.status("hostile").cpu;
            let command = format!("storm {storm}");
            let (told, waits) = turns.during(&stage.main, "hostile", stage.tell(&command)).await;
            if told != Err("Trapped".to_owned()) {
                wrong.push(format!("{storm}: {told:?}"));
                break;
            }
            let cause = reached(&stage.main, "hostile", ExtensionState::Failed).await.unwrap();
            let cpu = stage.status("hostile").cpu - before;
            let ended = cause == "`fuel-per-message` of 10000000 used up";
            if ended && waits.are_short() {
                break;
            }
            if !ended || attempt == ATTEMPTS {
                wrong.push(format!("{storm}: {cause}, {cpu:?}, {waits:?}"));
                break;
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    stage.stands().await;
}

/// Case 54.
#[tokio::test]
async fn a_spin_over_a_full_inbox_yields_every_slice_and_ends_at_its_fuel() {
    // Of its fuel; a message may make it run twice between two turns.
    const SLICES: u32 = 5000;
    const FUEL: u64 = 500_000_000;
    let turns = Turns::default();
    let spinner = hostile_with(|h| {
        h.limits.in_flight = 1;
        h.limits.fuel_per_message = FUEL;
        h.limits.cpu_share = CpuShare::WHOLE;
    });
    let stage = Stage::with(vec![spinner], Some(turns.service())).await;
    let spin = stage.tell("storm receive");
    let fill = async {
        while stage.status("hostile").received == 0 {
            tokio::task::yield_now().await;
        }
        let mut calls = Vec::new();
        loop {
            let mut call = Box::pin(stage.main.client().call("hostile@1", "run", "echo"));
            match (&mut call).now_or_never() {
                None => calls.push(call),
                Some(refused) => {
                    assert_eq!(refused, Err(Error::Overloaded("hostile".to_owned())));
                    return calls;
                }
            }
        }
    };
    let both = stage.beside(async { tokio::join!(spin, fill) });
    let (((told, calls), _), waits) = turns.during(&stage.main, "hostile", both).await;
    assert_eq!(told, Err("Trapped".to_owned()));
    assert!(waits.turns >= SLICES * 9 / 10 && waits.are_short(), "{waits:?}");
    let fault = Fault::new("`fuel-per-message` of 500000000 used up");
    let fault = fault.limit("fuel-per-message", FUEL, FUEL);
    stage.failed("hostile", &fault.asked().within("storms")).await;
    assert_eq!((calls.len(), stage.status("hostile").inbox_messages), (256, 0));
    for outcome in join_all(calls).await {
        assert_eq!(outcome, Err(Error::PeerGone));
    }
}
