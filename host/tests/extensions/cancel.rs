//! A request to a real extension that is given up after any number of polls leaves nothing behind.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Waker},
};

use bytes::Bytes;
use weir_host::{LimitValue, Main};

use super::support::{puppet, puppet_with, start, tell};

/// What a puppet is told, counted as long as anybody holds it.
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

/// Polls `life` again and again, `polls` times, while the worker goes on; whether it ended.
async fn poll(life: impl Future, polls: usize) -> bool {
    let mut life = pin!(life);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..polls {
        if life.as_mut().poll(&mut context).is_ready() {
            return true;
        }
        tokio::task::yield_now().await;
    }
    false
}

/// Waits until extensions have answered what they had in hand.
async fn settled(main: &Main, held: &AtomicUsize) {
    while main.client().waiters() > 0 || held.load(Ordering::Relaxed) > 0 {
        tokio::task::yield_now().await;
    }
}

/// The number of polls grows until the request has ended by itself a few times: every moment of its
/// life is one at which it was dropped.
async fn given_up_at_every_moment(main: &Main, told: &'static str) {
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
        let report = main.control().limits_of(id).await.unwrap();
        let limits = &report.extensions.first().unwrap().limits;
        let in_flight = limits.iter().find(|limit| limit.key == "in-flight").unwrap();
        assert_eq!(in_flight.used, Some(LimitValue::Count(0)), "{id}");
    }
}

async fn two_puppets() -> Main {
    start(vec![puppet_with("a", |a| a.wants = vec!["b@1".parse().unwrap()]), puppet("b")]).await
}

#[tokio::test]
async fn a_request_can_be_given_up_at_every_moment() {
    given_up_at_every_moment(&two_puppets().await, "echo hello").await;
}

#[tokio::test]
async fn a_request_whose_handler_calls_another_can_be_given_up_at_every_moment() {
    given_up_at_every_moment(&two_puppets().await, "call b@1 run echo hello").await;
}
