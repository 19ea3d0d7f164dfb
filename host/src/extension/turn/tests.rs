//! Whose turn it is, with guests that are futures.

use std::{cell::RefCell, future::poll_fn, rc::Rc};

use tokio::{sync::Notify, task::LocalSet};

use super::*;

/// What happened, in order.
type Log = Rc<RefCell<Vec<String>>>;

fn in_turn<F: Future>(turns: &Arc<Turns>, guest: F) -> InTurn<F> {
    InTurn::new(guest, turns.clone(), CpuShare::WHOLE, Arc::new(Activity::new()), Arc::default())
}

/// A guest that uses up a slice each time that it runs, `slices` times.
async fn busy(name: &str, slices: u32, log: Log) {
    for _ in 0..slices {
        log.borrow_mut().push(name.to_owned());
        let mut has_yielded = false;
        poll_fn(|context| {
            context.waker().wake_by_ref();
            if std::mem::replace(&mut has_yielded, true) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

async fn all<F: Future + 'static>(guests: Vec<F>) {
    let tasks: Vec<_> = guests.into_iter().map(tokio::task::spawn_local).collect();
    for task in tasks {
        task.await.unwrap_or_else(|_| panic!("a guest panicked"));
    }
}

#[tokio::test]
async fn busy_guests_take_turns() {
    let (turns, log) = (Arc::new(Turns::default()), Log::default());
    let guests = ["a", "b", "c"].map(|name| in_turn(&turns, busy(name, 4, log.clone())));
    LocalSet::new().run_until(all(guests.into())).await;
    assert_eq!(log.borrow().concat(), "abcabcabcabc");
    assert!(!turns.queue().is_taken);
}

#[tokio::test]
async fn a_guest_that_is_woken_waits_for_one_turn_however_many_are_busy() {
    let (turns, log, wake) = (Arc::new(Turns::default()), Log::default(), Rc::new(Notify::new()));
    let waiting = {
        let (log, wake) = (log.clone(), wake.clone());
        async move {
            for _ in 0..10 {
                wake.notified().await;
                log.borrow_mut().push("woken".to_owned());
            }
        }
    };
    let waking = async {
        for _ in 0..10 {
            let before = log.borrow().len();
            while log.borrow().len() < before + 50 {
                tokio::task::yield_now().await;
            }
            log.borrow_mut().push("wake".to_owned());
            wake.notify_one();
        }
    };
    let tasks = LocalSet::new();
    tasks.spawn_local(in_turn(&turns, waiting));
    for number in 0..16 {
        let name = number.to_string();
        let log = log.clone();
        tasks.spawn_local(in_turn(&turns, async move { busy(&name, u32::MAX, log).await }));
    }
    tasks.run_until(waking).await;
    let log = log.borrow();
    let mut after = log.split(|entry| entry == "wake").skip(1).filter(|rest| rest.len() > 1);
    let turns_before = |rest: &[String]| rest.iter().position(|entry| entry == "woken").unwrap();
    assert!(after.by_ref().all(|rest| turns_before(rest) <= 1), "{log:?}");
}

#[tokio::test]
async fn a_guest_that_ends_or_is_killed_passes_its_turn_on() {
    let (turns, log) = (Arc::new(Turns::default()), Log::default());
    let mut guests = ["a", "b", "c"].map(|name| in_turn(&turns, busy(name, 2, log.clone())));
    let mut context = Context::from_waker(Waker::noop());
    for guest in &mut guests {
        assert!(Pin::new(guest).poll(&mut context).is_pending());
    }
    let [a, mut b, c] = guests;
    // `a` has the turn; `c` waits behind `b`.
    drop(c);
    assert!(Pin::new(&mut b).poll(&mut context).is_pending());
    assert_eq!(log.borrow().concat(), "abc");
    drop(a);
    assert!(Pin::new(&mut b).poll(&mut context).is_pending());
    assert_eq!(log.borrow().concat(), "abcb");
    assert!(Pin::new(&mut b).poll(&mut context).is_ready());
    assert!(turns.queue().waiting.is_empty() && !turns.queue().is_taken);
}

#[tokio::test]
async fn whoever_is_over_its_share_keeps_no_turn_from_others() {
    let (turns, log) = (Arc::new(Turns::default()), Log::default());
    let share = "0.1%".parse().unwrap();
    let usage = Arc::<Usage>::default();
    let greedy = InTurn::new(
        busy("greedy ", 100, log.clone()),
        turns.clone(),
        share,
        Arc::new(Activity::new()),
        usage.clone(),
    );
    let mut greedy = Box::pin(greedy);
    // What it used before it came here.
    greedy.share.spend(1_000_000_000);
    let mut context = Context::from_waker(Waker::noop());
    assert!(greedy.as_mut().poll(&mut context).is_pending());
    LocalSet::new().run_until(all(vec![in_turn(&turns, busy("other ", 3, log.clone()))])).await;
    assert_eq!(log.borrow().concat(), "other other other ");
    assert!(greedy.delay.is_some());
}
