//! Many threads use one bus while receivers come and go.

use std::{
    collections::HashSet,
    sync::atomic::{AtomicBool, AtomicUsize},
};

use super::*;

const RECEIVERS: u64 = 3;
const CALLERS: u64 = 8;
const CALLS: u64 = 2000;

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn every_call_ends_and_none_is_answered_twice_while_receivers_come_and_go() {
    let bus = Arc::new(TestBus::new());
    let over = Arc::new(AtomicBool::new(false));
    let answered = Arc::new(Mutex::new(HashSet::new()));
    let receivers: Vec<_> = (0..RECEIVERS)
        .map(|number| {
            let contract = format!("c{number}@1");
            let peer = bus.add(&format!("r{number}"), &[&contract], &[]);
            tokio::spawn(come_and_go(peer, contract, over.clone(), answered.clone()))
        })
        .collect();
    let heard = Arc::new(AtomicUsize::new(0));
    let callers: Vec<_> =
        (0..CALLERS).map(|number| tokio::spawn(call_all(bus.clone(), number, heard.clone()))).collect();
    for caller in callers {
        caller.await.unwrap();
    }
    over.store(true, Ordering::Release);
    for receiver in receivers {
        receiver.await.unwrap();
    }
    let answered = answered.lock().unwrap().len();
    let heard = heard.load(Ordering::Relaxed);
    assert!(heard > 0 && heard <= answered, "{heard} of {answered} answers heard");
}

/// Calls one receiver after the other; every third call is given up early.
async fn call_all(bus: Arc<TestBus>, caller: u64, heard: Arc<AtomicUsize>) {
    let main = bus.main();
    for number in 0..CALLS {
        let contract = format!("c{}@1", (number + caller) % RECEIVERS);
        let Ok(mut target) = bus.open(main, &contract, "do", None) else { continue };
        let deadline = bus.term(&target, Some(Duration::from_millis(1 + number % 20)), Parent::default());
        let id = caller * CALLS + number;
        let payload = Bytes::copy_from_slice(&id.to_be_bytes());
        let call = match bus.call_to(main, &mut target, payload.clone(), deadline.clone(), false) {
            Ok(call) => call,
            Err(Error::NoProvider(_) | Error::Overloaded(_) | Error::Invalid(_)) => {
                tokio::task::yield_now().await;
                continue;
            }
            Err(other) => panic!("{other:?}"),
        };
        if number % 3 == 0 {
            drop(call);
            continue;
        }
        match call.answer().await {
            Ok(answer) => {
                assert_eq!(answer, payload);
                heard.fetch_add(1, Ordering::Relaxed);
            }
            Err(Error::PeerGone | Error::Trapped | Error::Timeout | Error::NotReady(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
    }
}

/// One instance after the other answers some requests, drops some, and then stops or dies.
async fn come_and_go(
    peer: Arc<Peer>,
    contract: String,
    over: Arc<AtomicBool>,
    answered: Arc<Mutex<HashSet<Bytes>>>,
) {
    for round in 0_u64.. {
        start(&peer, &[&contract]);
        let mut held = Vec::new();
        for number in 0..50 {
            if tokio::time::timeout(Duration::from_millis(5), peer.readable()).await.is_err() {
                break;
            }
            let Taken::Message(Incoming::Request(request)) = peer.take() else { continue };
            match number % 5 {
                0 => drop(request),
                1 => held.push(request),
                _ => {
                    // The caller cannot have heard an answer before it is given.
                    let payload = request.payload.clone();
                    if request.responder.give(Ok(payload.clone())) {
                        assert!(answered.lock().unwrap().insert(payload), "answered twice");
                    }
                }
            }
        }
        for request in held {
            request.responder.give(Err(Error::Trapped));
        }
        peer.set_phase(Phase::Down);
        let over = over.load(Ordering::Acquire);
        if over || round % 2 == 0 {
            peer.inbox().clear(Seat::FIRST);
        }
        if over {
            return;
        }
    }
}
