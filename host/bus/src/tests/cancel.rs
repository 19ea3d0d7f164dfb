//! A request given up at any moment leaves nothing behind.

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::{Context, Poll, Waker},
};

use super::*;

/// A payload that counts itself out when dropped.
struct Counted(Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        b"payload"
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn counted(held: &Arc<AtomicUsize>) -> Bytes {
    held.fetch_add(1, Ordering::Relaxed);
    Bytes::from_owner(Counted(held.clone()))
}

/// Polls the future of `life` `n` times and drops it, for every `n` until it ends by itself; calls `check` after each.
async fn for_every_poll<F: Future>(mut life: impl FnMut() -> F, mut check: impl FnMut(usize)) -> usize {
    for n in 0.. {
        let ends = {
            let mut life = pin!(life());
            let mut ends = false;
            for _ in 0..n {
                ends = life.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
                tokio::task::yield_now().await;
            }
            ends
        };
        check(n);
        if ends {
            return n;
        }
    }
    unreachable!("a life that never ends")
}

/// Lets the other side of a request go on.
async fn step() {
    let mut polled = false;
    std::future::poll_fn(
        |_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending },
    )
    .await;
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Call,
    Send,
}

/// A request from send to received answer. Both sides pause at each place where they could be cut off.
async fn life(bus: &TestBus, caller: &Arc<Peer>, provider: &Arc<Peer>, way: Way, held: &Arc<AtomicUsize>) {
    let mut target = bus.open(caller, "c@1", "do", None).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    step().await;
    let asking = async {
        let payload = counted(held);
        match way {
            Way::Call => {
                let call = bus.call_to(caller, &mut target, payload, deadline.clone(), true).unwrap();
                step().await;
                call.answer().await.unwrap();
            }
            Way::Send => {
                let (waiter, sending) = bus.bus.send(caller, &mut target, payload, deadline.clone()).unwrap();
                let _cancels = CancelOnDrop(waiter);
                sending.sent().await;
                step().await;
                caller.readable().await;
                step().await;
                take_reply(caller).outcome.unwrap();
            }
        }
        step().await;
    };
    let answering = async {
        provider.readable().await;
        step().await;
        let request = take_request(provider);
        step().await;
        request.responder.give(Ok(counted(held)));
        step().await;
    };
    tokio::join!(asking, answering);
}

/// As an extension's Store does with its requests under way.
struct CancelOnDrop(Arc<Waiter>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cut_off_after_any_poll_leaves_no_waiter_no_slot_and_no_memory() {
    for (way, polls) in [(Way::Call, 6), (Way::Send, 7)] {
        let bus = TestBus::new();
        let (caller, provider) = (bus.ready("a", &[], &["c@1"]), bus.ready("p", &["c@1"], &[]));
        let held = Arc::new(AtomicUsize::new(0));
        let check = |n| {
            assert_eq!(bus.waiters(), 0, "{way:?} after {n} polls");
            // A look finds the rest of an inbox given up.
            assert!(matches!(provider.take(), Taken::Empty), "{way:?} after {n} polls");
            // Each instance begins without the replies to its predecessor.
            caller.begin_instance();
            caller.set_phase_if_up(Phase::Ready);
            assert_eq!((caller.inbox().depth(), provider.inbox().depth()), ((0, 0), (0, 0)));
            assert_eq!(held.load(Ordering::Relaxed), 0, "{way:?} after {n} polls");
            assert!(caller.waits().is_empty());
        };
        let ended = for_every_poll(|| life(&bus, &caller, &provider, way, &held), check).await;
        // With fewer polls than pauses it was not cut off everywhere.
        assert_eq!(ended, polls, "{way:?}");
    }
}
