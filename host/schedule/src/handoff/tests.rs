use std::{
    future::poll_fn,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use tokio::task::{JoinHandle, yield_now};
use weir_metrics::{Usage, nanoseconds};

use super::*;
use crate::{
    activity::Activity,
    chain::{AT_MOST, CHAIN, Within, begin, hand, switch},
    in_turn::InTurn,
    look::processor_time,
    share::SharedShare,
    turns::Turns,
};

/// Where tasks leave their wakers, and what they did.
#[derive(Default)]
struct Shared {
    wakers: Mutex<Vec<Waker>>,
    order: Mutex<Vec<&'static str>>,
}

impl Shared {
    fn note(&self, what: &'static str) {
        self.order.lock().push(what);
    }
}

fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(Handoff::new(work))
}

/// Leaves its waker, and is pending once.
async fn wait(shared: &Shared) {
    let mut has_waited = false;
    poll_fn(|context| {
        if mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        shared.wakers.lock().push(context.waker().clone());
        Poll::Pending
    })
    .await;
}

fn hand_to_the_last(shared: &Shared) {
    let waker = shared.wakers.lock().pop().unwrap();
    hand(|| waker.wake());
}

#[tokio::test]
async fn who_was_handed_the_thread_runs_before_those_that_were_ready_before() {
    let shared = Arc::<Shared>::default();
    let (of_callee, of_caller, of_other) = (shared.clone(), shared.clone(), shared.clone());
    let callee = spawn(async move {
        wait(&of_callee).await;
        of_callee.note("callee");
    });
    yield_now().await;
    let caller = spawn(async move {
        of_caller.note("caller");
        hand_to_the_last(&of_caller);
    });
    let other = tokio::spawn(async move { of_other.note("other") });
    for task in [callee, caller, other] {
        task.await.unwrap();
    }
    assert_eq!(*shared.order.lock(), ["caller", "callee", "other"]);
}

#[tokio::test]
async fn without_a_task_of_its_kind_on_the_thread_the_runtime_runs_it() {
    let shared = Arc::<Shared>::default();
    let of_callee = shared.clone();
    let callee = spawn(async move { wait(&of_callee).await });
    yield_now().await;
    hand_to_the_last(&shared);
    callee.await.unwrap();
}

fn in_turn(turns: &Arc<Turns>, guest: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let share = Arc::new(SharedShare::new("100%".parse().unwrap()));
    spawn(InTurn::new(guest, turns.clone(), share, Arc::new(Activity::new()), Arc::default()))
}

#[tokio::test]
async fn who_was_handed_the_thread_runs_before_those_that_wait_for_a_look() {
    let shared = Arc::<Shared>::default();
    let turns = Arc::new(Turns::default());
    let (of_callee, of_caller, of_other) = (shared.clone(), shared.clone(), shared.clone());
    let _callee = spawn(async move {
        wait(&of_callee).await;
        of_callee.note("callee");
    });
    yield_now().await;
    turns.look.ran(u64::MAX);
    let _caller = in_turn(&turns, async move {
        of_caller.note("caller");
        hand_to_the_last(&of_caller);
        std::future::pending::<()>().await;
    });
    let other = in_turn(&turns, async move { of_other.note("other") });
    other.await.unwrap();
    assert_eq!(*shared.order.lock(), ["caller", "callee", "other"]);
}

#[tokio::test]
async fn those_that_wait_for_one_look_run_one_after_the_other_after_it() {
    let shared = Arc::<Shared>::default();
    let turns = Arc::new(Turns::default());
    turns.look.ran(u64::MAX);
    let tasks = ["first", "second", "third"].map(|name| {
        let shared = shared.clone();
        in_turn(&turns, async move {
            shared.note(name);
            wait(&shared).await;
        })
    });
    let of_other = shared.clone();
    let other = tokio::spawn(async move {
        for _ in 0..10 {
            yield_now().await;
            of_other.note("other");
        }
    });
    other.await.unwrap();
    assert!(tasks.iter().all(|task| !task.is_finished()));
    let order = shared.order.lock();
    let after = order.iter().skip_while(|name| **name == "other").take(3);
    assert!(after.eq(&["first", "second", "third"]), "{order:?}");
}

#[tokio::test]
async fn a_panic_is_that_of_the_task_and_not_of_the_one_that_handed_it_the_thread() {
    let shared = Arc::<Shared>::default();
    let (of_callee, of_caller) = (shared.clone(), shared.clone());
    let callee = spawn(async move {
        wait(&of_callee).await;
        panic!("of the callee");
    });
    yield_now().await;
    let caller = spawn(async move { hand_to_the_last(&of_caller) });
    caller.await.unwrap();
    assert!(callee.await.unwrap_err().is_panic());
}

#[tokio::test]
async fn two_that_hand_each_other_the_thread_for_ever_let_others_run() {
    let (turns, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let shared = Arc::<Shared>::default();
    let player = || {
        let (shared, turns, is_over) = (shared.clone(), turns.clone(), is_over.clone());
        spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                turns.fetch_add(1, Ordering::Relaxed);
                if !shared.wakers.lock().is_empty() {
                    hand_to_the_last(&shared);
                }
                wait(&shared).await;
            }
            for waker in mem::take(&mut *shared.wakers.lock()) {
                waker.wake();
            }
        })
    };
    let players = [player(), player()];
    while turns.load(Ordering::Relaxed) < 10 * AT_MOST {
        yield_now().await;
    }
    is_over.store(true, Ordering::Relaxed);
    for player in players {
        player.await.unwrap();
    }
}

#[tokio::test]
async fn what_it_does_is_dropped_with_the_task_though_somebody_keeps_its_waker() {
    let shared = Arc::<Shared>::default();
    let (of_task, held) = (shared.clone(), Arc::new(()));
    let of_it = held.clone();
    let task = spawn(async move {
        wait(&of_task).await;
        drop(of_it);
    });
    yield_now().await;
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(Arc::strong_count(&held), 1);
    hand_to_the_last(&shared);
}

/// A guest in turn, and its usage; it calls the task that waits last.
fn caller(shared: &Arc<Shared>) -> (JoinHandle<()>, Arc<Usage>) {
    let (shared, usage) = (shared.clone(), Arc::<Usage>::default());
    let share = Arc::new(SharedShare::new("100%".parse().unwrap()));
    let call = async move {
        shared.note("caller");
        switch(|| hand_to_the_last(&shared));
        shared.note("caller again");
    };
    let task = InTurn::new(call, Arc::default(), share, Arc::new(Activity::new()), usage.clone());
    (spawn(task), usage)
}

#[tokio::test]
async fn whom_a_guest_calls_runs_before_the_call_returns_and_not_at_its_cost() {
    const WORK: Duration = Duration::from_millis(20);
    let shared = Arc::<Shared>::default();
    let (of_callee, callee_used) = (shared.clone(), Arc::<Usage>::default());
    let share = Arc::new(SharedShare::new("100%".parse().unwrap()));
    let callee = async move {
        wait(&of_callee).await;
        of_callee.note("callee");
        let done = processor_time() + nanoseconds(WORK);
        while processor_time() < done {
            std::hint::spin_loop();
        }
        std::future::pending::<()>().await;
    };
    let callee = InTurn::new(callee, Arc::default(), share, Arc::new(Activity::new()), callee_used.clone());
    let _callee = spawn(callee);
    yield_now().await;
    let (caller, caller_used) = caller(&shared);
    caller.await.unwrap();
    assert_eq!(*shared.order.lock(), ["caller", "callee", "caller again"]);
    assert!(callee_used.cpu() >= WORK, "{callee_used:?}");
    // The rest of its work is over in a moment; the callee's time is not in it.
    assert!(caller_used.cpu() < WORK, "{caller_used:?}");
}

#[tokio::test]
async fn whom_a_task_of_mains_calls_runs_before_the_call_returns_if_that_is_on_the_worker() {
    for (is_worker, order) in
        [(false, ["task", "task again", "callee"]), (true, ["task", "callee", "task again"])]
    {
        let shared = Arc::<Shared>::default();
        let of_callee = shared.clone();
        let callee = spawn(async move {
            wait(&of_callee).await;
            of_callee.note("callee");
        });
        yield_now().await;
        if is_worker {
            crate::mark_worker_thread();
        }
        shared.note("task");
        switch(|| hand_to_the_last(&shared));
        shared.note("task again");
        callee.await.unwrap();
        assert_eq!(*shared.order.lock(), order);
    }
}

#[tokio::test]
async fn whom_one_calls_that_runs_within_a_call_runs_after_it() {
    let shared = Arc::<Shared>::default();
    let (of_last, of_middle) = (shared.clone(), shared.clone());
    let last = spawn(async move {
        wait(&of_last).await;
        of_last.note("last");
    });
    yield_now().await;
    let last_waker = shared.wakers.lock().pop().unwrap();
    let middle = spawn(async move {
        wait(&of_middle).await;
        of_middle.note("middle");
        switch(|| hand(|| last_waker.wake()));
        of_middle.note("middle again");
    });
    yield_now().await;
    let (caller, _) = caller(&shared);
    for task in [caller, middle, last] {
        task.await.unwrap();
    }
    let order = ["caller", "middle", "middle again", "last", "caller again"];
    assert_eq!(*shared.order.lock(), order);
}

#[tokio::test]
async fn one_that_is_woken_by_whom_it_calls_is_polled_once_more() {
    let (shared, of_caller) = (Arc::<Shared>::default(), Arc::<Shared>::default());
    let (of_callee, to_wake) = (shared.clone(), of_caller.clone());
    let callee = spawn(async move {
        wait(&of_callee).await;
        hand_to_the_last(&to_wake);
    });
    yield_now().await;
    let caller = spawn(async move {
        // Leaves the waker of the task itself, not of a guest.
        poll_fn(|context| {
            of_caller.wakers.lock().push(context.waker().clone());
            Poll::Ready(())
        })
        .await;
        switch(|| hand_to_the_last(&shared));
        let mut polls = 0;
        poll_fn(|_| {
            polls += 1;
            if polls == 2 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    });
    caller.await.unwrap();
    callee.await.unwrap();
}

#[tokio::test]
async fn on_the_thread_of_another_main_nobody_is_run() {
    let shared = Arc::<Shared>::default();
    let of_callee = shared.clone();
    let callee = spawn(async move {
        wait(&of_callee).await;
        of_callee.note("callee");
    });
    yield_now().await;
    let of_other = shared.clone();
    let other = std::thread::spawn(move || {
        crate::mark_worker_thread();
        switch(|| hand_to_the_last(&of_other));
        of_other.note("other");
    });
    other.join().unwrap();
    callee.await.unwrap();
    assert_eq!(*shared.order.lock(), ["other", "callee"]);
}

#[test]
fn one_that_ran_outside_of_a_call_is_nobodys_caller() {
    let chained = |within| CHAIN.with(|chain| chain.during(within, || begin().1));
    // It gets no permission to run, so it does not end.
    begin();
    assert_eq!(chained(Within::Own), 0);
    begin();
    assert_eq!(chained(Within::Task), 0);
    begin();
    assert_ne!(chained(Within::Guest), 0);
}
