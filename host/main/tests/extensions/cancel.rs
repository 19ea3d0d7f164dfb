//! A request given up at any moment leaves nothing behind.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
};

use bytes::Bytes;
use futures_util::FutureExt;
use tokio::{task::yield_now, time::timeout};
use weir_host::{Error, Main, limits::LimitValue};

use super::support::{Gate, PATIENCE, puppet, puppet_with, set, start, tell};

/// A payload, counted while it is held.
struct Counted(&'static str, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::Relaxed);
    }
}

type Life = Pin<Box<dyn Future<Output = Result<Bytes, Error>>>>;

struct Stepped {
    main: Main,
    gate: Gate,
    held: Arc<AtomicUsize>,
}

impl Stepped {
    async fn start() -> Self {
        let gate = Gate::new();
        let a = puppet_with("a", |a| {
            a.wants = vec!["b@1".parse().unwrap(), "gate@1".parse().unwrap()];
            // Takes all waiting requests at once.
            set(a, "receive", "any-order");
        });
        let b = puppet_with("b", |b| b.wants = vec!["gate@1".parse().unwrap()]);
        let main = gate.start(vec![a, b]).await;
        Self { main, gate, held: Arc::default() }
    }

    fn send(&self, told: &'static str) -> Life {
        self.held.fetch_add(1, Ordering::Relaxed);
        let (client, payload) = (self.main.client().clone(), Counted(told, self.held.clone()));
        let mut life: Life =
            Box::pin(async move { client.call("a@1", "run", Bytes::from_owner(payload)).await });
        assert_eq!((&mut life).now_or_never(), None, "it is sent, and waits");
        life
    }

    /// Waits for this many waiters, and these requests of `a` and `b` in inboxes and in hand.
    async fn comes_to(&self, waiters: usize, inboxes: [u64; 2], in_hand: [u64; 2]) {
        let reached = async {
            loop {
                let now = (self.main.client().waiters(), self.inboxes(), self.in_hand().await);
                if now == (waiters, inboxes, in_hand) {
                    return;
                }
                yield_now().await;
            }
        };
        if timeout(PATIENCE, reached).await.is_err() {
            let now = (self.main.client().waiters(), self.inboxes(), self.in_hand().await);
            panic!("{now:?} instead of {:?}", (waiters, inboxes, in_hand));
        }
    }

    fn inboxes(&self) -> [u64; 2] {
        ["a", "b"].map(|id| self.main.control().status(id).unwrap().inbox_messages)
    }

    async fn in_hand(&self) -> [u64; 2] {
        [in_flight(&self.main, "a").await, in_flight(&self.main, "b").await]
    }

    async fn is_as_new(&self) {
        self.comes_to(0, [0, 0], [0, 0]).await;
        settled(&self.main, &self.held).await;
        assert_eq!(tell(&self.main, "a", "call b@1 run echo on").await.unwrap(), "on");
        self.comes_to(0, [0, 0], [0, 0]).await;
    }
}

async fn in_flight(main: &Main, id: &str) -> u64 {
    let report = main.control().limits_of(id).await.unwrap();
    let limits = &report.extensions.first().unwrap().limits;
    match limits.iter().find(|limit| limit.key == "in-flight").unwrap().used {
        Some(LimitValue::Count(used)) => used,
        ref other => panic!("{other:?}"),
    }
}

async fn settled(main: &Main, held: &AtomicUsize) {
    let left = || (main.client().waiters(), held.load(Ordering::Relaxed));
    let settles = async {
        while left() != (0, 0) {
            yield_now().await;
        }
    };
    assert!(timeout(PATIENCE, settles).await.is_ok(), "(waiters, payloads) are {:?}", left());
}

#[tokio::test]
async fn a_request_given_up_in_the_inbox_of_a_busy_extension_leaves_nothing() {
    let stepped = Stepped::start().await;
    let busy = stepped.send("call gate@1 pass");
    stepped.comes_to(2, [0, 0], [1, 0]).await;
    let waiting = stepped.send("echo never");
    stepped.comes_to(3, [1, 0], [1, 0]).await;
    drop(waiting);
    // At once, although the extension is busy.
    assert_eq!(stepped.main.client().waiters(), 2);
    stepped.gate.open(1);
    assert_eq!(busy.await.unwrap(), "");
    stepped.is_as_new().await;
    let status = stepped.main.control().status("a").unwrap();
    assert_eq!((status.late, status.received), (0, 2), "it was never delivered");
}

#[tokio::test]
async fn a_request_given_up_in_hand_and_not_begun_leaves_nothing() {
    let stepped = Stepped::start().await;
    let busy = stepped.send("call gate@1 pass");
    stepped.comes_to(2, [0, 0], [1, 0]).await;
    let (begun, next) = (stepped.send("call gate@1 pass"), stepped.send("echo late"));
    stepped.comes_to(4, [2, 0], [1, 0]).await;
    // It takes both in one batch, and waits for the gate with the first.
    stepped.gate.open(1);
    assert_eq!(busy.await.unwrap(), "");
    stepped.comes_to(3, [0, 0], [2, 0]).await;
    drop(next);
    assert_eq!(stepped.main.client().waiters(), 2);
    stepped.gate.open(1);
    assert_eq!(begun.await.unwrap(), "");
    stepped.is_as_new().await;
    assert_eq!(stepped.main.control().status("a").unwrap().late, 1);
}

#[tokio::test]
async fn a_request_given_up_while_its_handler_calls_another_leaves_nothing() {
    let stepped = Stepped::start().await;
    let asked = stepped.send("call b@1 run call gate@1 pass");
    stepped.comes_to(3, [0, 0], [1, 1]).await;
    drop(asked);
    // What `a` and `b` wait for goes on.
    assert_eq!(stepped.main.client().waiters(), 2);
    stepped.comes_to(2, [0, 0], [1, 1]).await;
    stepped.gate.open(1);
    stepped.is_as_new().await;
    let late = ["a", "b"].map(|id| stepped.main.control().status(id).unwrap().late);
    assert_eq!(late, [1, 0]);
}

#[tokio::test]
async fn a_request_given_up_when_it_is_answered_and_not_looked_at_leaves_nothing() {
    let stepped = Stepped::start().await;
    let answered = stepped.send("call gate@1 pass");
    stepped.comes_to(2, [0, 0], [1, 0]).await;
    stepped.gate.open(1);
    stepped.comes_to(0, [0, 0], [0, 0]).await;
    drop(answered);
    stepped.is_as_new().await;
    assert_eq!(stepped.main.control().status("a").unwrap().late, 0);
}

#[tokio::test]
async fn a_request_never_sent_leaves_nothing() {
    let stepped = Stepped::start().await;
    drop(stepped.main.client().call("a@1", "run", "echo"));
    stepped.is_as_new().await;
    assert_eq!(stepped.main.control().status("a").unwrap().received, 1);
}

/// Polls `life` `polls` times while the worker goes on; returns whether it ended.
async fn poll(life: impl Future, polls: usize) -> bool {
    let mut life = pin!(life);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if life.as_mut().poll(&mut context).is_ready() {
            return true;
        }
        yield_now().await;
    }
    false
}

/// Polls ever more often until the request ends by itself a few times. In between it is dropped anywhere.
async fn given_up_after_any_number_of_polls(main: &Main, told: &'static str) {
    let held = Arc::new(AtomicUsize::new(0));
    let (mut polls, mut ended) = (0, 0);
    while ended < 20 {
        held.fetch_add(1, Ordering::Relaxed);
        let payload = Bytes::from_owner(Counted(told, held.clone()));
        ended += usize::from(poll(main.client().call("a@1", "run", payload), polls).await);
        polls += 1;
    }
    assert!(polls > 20, "it was never given up");
    assert_eq!(tell(main, "a", "echo still here").await.unwrap(), "still here");
    settled(main, &held).await;
    for id in ["a", "b"] {
        let status = main.control().status(id).unwrap();
        assert_eq!((status.inbox_messages, status.inbox_bytes), (0, 0), "{id}");
        assert_eq!(in_flight(main, id).await, 0, "{id}");
    }
}

async fn two_puppets() -> Main {
    start(vec![puppet_with("a", |a| a.wants = vec!["b@1".parse().unwrap()]), puppet("b")]).await
}

#[tokio::test]
async fn a_request_can_be_given_up_after_any_number_of_polls() {
    given_up_after_any_number_of_polls(&two_puppets().await, "echo hello").await;
}

#[tokio::test]
async fn a_request_whose_handler_calls_another_can_be_given_up_after_any_number_of_polls() {
    given_up_after_any_number_of_polls(&two_puppets().await, "call b@1 run echo hello").await;
}
