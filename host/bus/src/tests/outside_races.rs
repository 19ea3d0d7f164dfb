//! Two threads meet: a program that comes, asks or leaves on one, and what others do to it on the other.

use std::{
    sync::{
        Barrier,
        atomic::AtomicBool,
        mpsc::{self, RecvTimeoutError},
    },
    task::{Context, Wake, Waker},
};

use super::*;

const ROUNDS: usize = 2000;

/// Does both at the same time, as far as threads can.
fn meet<A: Send, B: Send>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B + Send) -> (A, B) {
    let start = Barrier::new(2);
    thread::scope(|scope| {
        let one = scope.spawn(|| {
            start.wait();
            one()
        });
        start.wait();
        let other = other();
        (one.join().unwrap(), other)
    })
}

fn take_grants_back(bus: &TestBus) {
    bus.add_name(&"app:x".parse().unwrap(), Access::default()).unwrap();
}

#[tokio::test]
async fn what_was_opened_while_a_grant_was_taken_back_calls_nobody() {
    let bus = TestBus::new();
    bus.ready("a", &["a@1"], &[]);
    for _ in 0..ROUNDS {
        let session = bus.arrive(&bus.name("app:x", &[], &["a@1"]), LIMITS);
        let open = || bus.open(&session, "a@1", "do", None);
        let last_opened = || std::iter::from_fn(|| open().ok()).last();
        let (opened, ()) = meet(last_opened, || take_grants_back(&bus));
        if let Some(mut target) = opened {
            let term = bus.term(&target, None, Parent::default());
            let called = bus.call_to(&session, &mut target, Bytes::new(), term.clone(), false).map(drop);
            assert!(matches!(called, Err(Error::PermissionDenied(_))), "{called:?}");
        }
        bus.leave(&session);
    }
}

#[tokio::test]
async fn what_was_subscribed_to_while_a_grant_was_taken_back_ends() {
    let bus = TestBus::new();
    let topic = "t".parse().unwrap();
    for _ in 0..ROUNDS {
        let session = bus.arrive(&bus.name("app:x", &[], &[]), LIMITS);
        let subscribe = || bus.subscribe(&session, session.inbox(), "t");
        meet(|| while subscribe().is_ok() {}, || take_grants_back(&bus));
        assert_eq!(bus.subscribers(&topic), 0);
        bus.leave(&session);
    }
}

#[tokio::test]
async fn nothing_that_a_program_begins_while_it_leaves_stays_behind() {
    let bus = TestBus::new();
    let name = bus.name("app:x", &["x@1"], &[]);
    let topic = "t".parse().unwrap();
    for _ in 0..ROUNDS {
        let session = bus.arrive(&name, LIMITS);
        let begin = || {
            let _served = bus.bus.serve(&session, "x@1", &["do".to_owned()]);
            let _subscribed = bus.subscribe(&session, session.inbox(), "t");
        };
        meet(begin, || bus.leave(&session));
        assert_eq!(bus.subscribers(&topic), 0);
        assert_eq!(bus.owner_of(&"x@1".parse().unwrap()).unwrap().id(), name.id());
    }
}

#[tokio::test]
async fn a_request_that_meets_the_end_of_its_receiver_is_answered_at_once() {
    let bus = TestBus::new();
    let name = bus.name("app:x", &["x@1"], &[]);
    for when_full in [RequestPolicy::Reject, RequestPolicy::Block] {
        let inbox = InboxLimits { messages: 1, bytes: 4096 };
        let limits = PeerLimits { inbox, when_full, ..LIMITS };
        for _ in 0..ROUNDS {
            let session = bus.arrive_with(&name, limits, &["x@1"]);
            let call = || [(); 3].map(|()| bus.call(bus.main(), "x@1", ""));
            let (calls, ()) = meet(call, || bus.leave(&session));
            for call in calls {
                let outcome = call.map(|call| call.answer().now_or_never());
                let is_expected = matches!(
                    outcome,
                    Ok(Some(Err(Error::PeerGone))) | Err(Error::NoProvider(_) | Error::Overloaded(_))
                );
                assert!(is_expected, "{outcome:?}");
            }
            assert_eq!(session.inbox().depth(), (0, 0));
        }
    }
}

/// Asks the bus from another thread as soon as it is woken.
struct Asking {
    bus: Arc<Bus>,
    was_answered: AtomicBool,
}

impl Wake for Asking {
    fn wake(self: Arc<Self>) {
        let (bus, (answer, answered)) = (self.bus.clone(), mpsc::channel());
        thread::spawn(move || answer.send(bus.peer(PeerId::MAIN).is_some()));
        let is_in_time = answered.recv_timeout(Duration::from_secs(2)) != Err(RecvTimeoutError::Timeout);
        self.was_answered.store(is_in_time, Ordering::Release);
    }
}

#[tokio::test]
async fn a_caller_that_hears_of_the_end_of_a_program_can_use_the_bus_at_once() {
    let bus = TestBus::new();
    let name = bus.name("app:x", &["x@1"], &[]);
    let inbox = InboxLimits { messages: 1, bytes: 4096 };
    let limits = PeerLimits { inbox, when_full: RequestPolicy::Block, ..LIMITS };
    let session = bus.arrive_with(&name, limits, &["x@1"]);
    let mut calls = [(); 2].map(|()| Box::pin(bus.call(bus.main(), "x@1", "").unwrap().answer()));
    let callers =
        [(); 2].map(|()| Arc::new(Asking { bus: bus.bus.clone(), was_answered: AtomicBool::new(false) }));
    for (call, caller) in calls.iter_mut().zip(&callers) {
        let waker = Waker::from(caller.clone());
        assert!(call.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    }
    bus.leave(&session);
    assert!(callers.iter().all(|caller| caller.was_answered.load(Ordering::Acquire)));
}

#[tokio::test]
async fn a_job_that_is_taken_back_while_it_gets_room_is_delivered_to_nobody() {
    let bus = TestBus::new();
    let queue = super::outside::queue(&bus, &["q"]);
    let when_full = weir_names::QueuePolicy::Block;
    let settings = QueueSettings { messages: 1, bytes: 1 << 20, when_full, ..super::queues::SETTINGS };
    bus.configure_queues(vec![(queue.name().clone(), settings, None)]);
    let offer = || bus.bus.offer(bus.main(), &queue, Bytes::new(), Parent::default()).unwrap();
    let reader = JobReader::new("reader".into(), u64::MAX, None, || {});
    for _ in 0..5 * ROUNDS {
        let (first, second) = (offer(), offer());
        let in_hand = queue.take(&reader).unwrap();
        meet(|| drop(second), || in_hand.done());
        let stats = queue.status();
        assert_eq!((stats.waiting, stats.in_hand, stats.bytes, stats.blocked), (0, 0, 0, 0));
        first.done().now_or_never().unwrap().unwrap();
    }
}
