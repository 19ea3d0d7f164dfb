//! Turns, with guests that are futures.

use std::{cell::RefCell, rc::Rc, time::Duration};

use tokio::{sync::Notify, task::LocalSet};

use super::*;

/// What happened, in order.
type Log = Rc<RefCell<Vec<String>>>;

fn in_turn<F: Future>(turns: &Arc<Turns>, guest: F) -> InTurn<F> {
    InTurn::new(guest, turns.clone(), share("100%"), Arc::new(Activity::new()), Arc::default())
}

fn share(text: &str) -> Arc<SharedShare> {
    Arc::new(SharedShare::new(text.parse().unwrap()))
}

/// A guest that uses up `slices` slices.
async fn busy(name: &str, slices: u32, log: Log) {
    for _ in 0..slices {
        log.borrow_mut().push(name.to_owned());
        end_slice().await;
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
    assert!(!turns.queue.lock().is_taken);
}

#[tokio::test]
async fn a_guest_that_is_woken_waits_for_a_turn_however_many_are_busy() {
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
    let after = log.split(|entry| entry == "wake").skip(1).filter(|rest| rest.len() > 1);
    let turns_before = |rest: &[String]| rest.iter().position(|entry| entry == "woken").unwrap();
    let turns: Vec<_> = after.map(turns_before).collect();
    assert!(turns.iter().all(|turns| *turns <= 1), "{log:?}");
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
    assert!(turns.queue.lock().waiting.is_empty() && !turns.queue.lock().is_taken);
}

#[tokio::test]
async fn whoever_is_over_its_share_keeps_no_turn_from_others() {
    let (turns, log) = (Arc::new(Turns::default()), Log::default());
    let usage = Arc::<Usage>::default();
    let greedy = InTurn::new(
        busy("greedy ", 100, log.clone()),
        turns.clone(),
        share("0.1%"),
        Arc::new(Activity::new()),
        usage.clone(),
    );
    let mut greedy = Box::pin(greedy);
    let mut context = Context::from_waker(Waker::noop());
    assert!(greedy.as_mut().poll(&mut context).is_pending());
    assert!(turns.queue.lock().is_taken);
    greedy.share.spend(1_000_000_000);
    assert!(greedy.as_mut().poll(&mut context).is_pending());
    assert!(!turns.queue.lock().is_taken);
    LocalSet::new().run_until(all(vec![in_turn(&turns, busy("other ", 3, log.clone()))])).await;
    assert_eq!(log.borrow().concat(), "greedy other other other ");
    assert!(greedy.delay.is_some());
}

#[tokio::test]
async fn guests_that_wake_each_other_all_the_time_keep_nobody_from_its_turn() {
    let (turns, log) = (Arc::new(Turns::default()), Log::default());
    let balls = [Rc::new(Notify::new()), Rc::new(Notify::new())];
    let tasks = LocalSet::new();
    for (from, to) in [(0, 1), (1, 0)] {
        let (from, to, log, look) = (balls[from].clone(), balls[to].clone(), log.clone(), turns.look.clone());
        tasks.spawn_local(in_turn(&turns, async move {
            loop {
                from.notified().await;
                // As if it worked for longer than there is between two looks.
                look.ran(u64::MAX);
                log.borrow_mut().push("ball".to_owned());
                to.notify_one();
            }
        }));
    }
    let busy_log = log.clone();
    tasks.spawn_local(in_turn(&turns, async move { busy("busy", u32::MAX, busy_log).await }));
    balls[0].notify_one();
    tasks
        .run_until(async {
            while log.borrow().len() < 200 {
                tokio::task::yield_now().await
            }
        })
        .await;
    let turns = log.borrow().iter().filter(|entry| *entry == "busy").count();
    assert!(turns > 50, "{turns} of 200");
}

#[tokio::test]
async fn delays_that_end_together_are_followed_by_turns() {
    let (turns, log) = (Arc::new(Turns::default()), Log::default());
    let guests: Vec<_> = (0..8)
        .map(|number| {
            let guest = busy_for_ever(number.to_string(), log.clone());
            let guest =
                InTurn::new(guest, turns.clone(), share("50%"), Arc::new(Activity::new()), Arc::default());
            // Spent before this test.
            let mut guest = Box::pin(guest);
            guest.share.spend(400_000_000);
            guest
        })
        .collect();
    let tasks = LocalSet::new();
    for guest in guests {
        tasks.spawn_local(guest);
    }
    let looks = Rc::new(RefCell::new(Vec::new()));
    let watch = async {
        while looks.borrow().len() < 50 || log.borrow().is_empty() {
            looks.borrow_mut().push(log.borrow().len());
            tokio::task::yield_now().await;
        }
    };
    tasks.run_until(watch).await;
    let most = looks.borrow().windows(2).map(|two| two[1] - two[0]).max();
    assert!(most.is_some_and(|most| most <= 2), "{most:?} ran between two looks");
}

async fn busy_for_ever(name: String, log: Log) {
    busy(&name, u32::MAX, log).await;
}

#[tokio::test]
async fn a_restart_does_not_renew_the_share() {
    let (turns, kept) = (Arc::new(Turns::default()), share("0.1%"));
    let run = |spent| {
        let guest = std::future::pending::<()>();
        let usage = Arc::default();
        let mut run = InTurn::new(guest, turns.clone(), kept.clone(), Arc::new(Activity::new()), usage);
        run.share.spend(spent);
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut run).poll(&mut context).is_pending());
        run.delay.is_some()
    };
    assert!(!run(400_000));
    assert!(run(400_000), "together they are over half a second's share");
}

#[tokio::test]
async fn what_one_spends_of_a_share_holds_back_the_others_that_spend_of_it() {
    let (turns, kept) = (Arc::new(Turns::default()), share("50%"));
    let guest = || {
        let guest = std::future::pending::<()>();
        InTurn::new(guest, turns.clone(), kept.clone(), Arc::new(Activity::new()), Arc::default())
            .among_others()
    };
    let is_delayed = |guest: &mut InTurn<_>| {
        assert!(Pin::new(&mut *guest).poll(&mut Context::from_waker(Waker::noop())).is_pending());
        guest.delay.is_some()
    };
    let (mut first, mut second) = (guest(), guest());
    assert!(!is_delayed(&mut first) && !is_delayed(&mut second));
    kept.lock().spend(1_000_000_000);
    assert!(is_delayed(&mut first) && is_delayed(&mut second));
    drop(first);
    assert!(is_delayed(&mut guest()), "whoever ends takes nothing back");
}

/// Guests that wait for a look that is due.
fn waiting_for_a_look<const N: usize>(turns: &Arc<Turns>) -> [InTurn<std::future::Ready<()>>; N] {
    turns.look.ran(u64::MAX);
    let mut guests = [(); N].map(|()| in_turn(turns, std::future::ready(())));
    for guest in &mut guests {
        assert!(!runs(guest));
    }
    guests
}

fn runs<F: Future>(guest: &mut InTurn<F>) -> bool {
    Pin::new(guest).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn what_a_guest_runs_brings_the_next_look_nearer() {
    const LONG: Duration = Duration::from_millis(1);
    let turns = Arc::new(Turns::default());
    let mut guest = in_turn(&turns, async {
        let began = Instant::now();
        while began.elapsed() < LONG {}
    });
    assert!(runs(&mut guest));
    assert!(turns.look.ran.load(Ordering::Relaxed) >= nanoseconds(LONG));
}

#[tokio::test]
async fn being_woken_again_brings_no_guest_past_a_look_that_is_due() {
    let turns = Arc::new(Turns::default());
    let [mut guest] = waiting_for_a_look(&turns);
    for _ in 0..3 {
        assert!(!runs(&mut guest));
    }
    assert!(turns.look.is_due());
    // Returns after the look.
    tokio::task::yield_now().await;
    assert!(runs(&mut guest));
    assert!(!turns.look.is_due());
}

#[tokio::test]
async fn whoever_takes_long_after_a_look_has_the_others_wait_for_the_next() {
    let turns = Arc::new(Turns::default());
    let mut guests = waiting_for_a_look::<3>(&turns);
    for first in 0..guests.len() {
        tokio::task::yield_now().await;
        for (number, guest) in guests.iter_mut().enumerate().skip(first) {
            assert_eq!(runs(guest), number == first);
            turns.look.ran(u64::MAX);
        }
    }
}

#[tokio::test]
async fn nobody_else_is_called_while_one_that_was_has_not_run() {
    let turns = Arc::new(Turns::default());
    let [mut slow, mut next] = waiting_for_a_look(&turns);
    for _ in 0..3 {
        tokio::task::yield_now().await;
        assert!(!runs(&mut next));
    }
    assert!(runs(&mut slow));
    tokio::task::yield_now().await;
    assert!(runs(&mut next));
}

#[tokio::test]
async fn whoever_is_called_and_over_its_share_has_the_next_one_called() {
    let turns = Arc::new(Turns::default());
    let [mut greedy, mut next] = waiting_for_a_look(&turns);
    greedy.share = Share::new("0.1%".parse().unwrap(), moment(Instant::now()));
    greedy.share.spend(1_000_000_000);
    tokio::task::yield_now().await;
    assert!(!runs(&mut greedy) && greedy.delay.is_some());
    tokio::task::yield_now().await;
    assert!(runs(&mut next));
}

#[tokio::test]
async fn who_has_run_calls_nobody_once_a_look_is_due() {
    let turns = Arc::new(Turns::default());
    turns.look.ran(u64::MAX);
    let look = turns.look.clone();
    let mut first = in_turn(&turns, async move {
        look.ran(u64::MAX);
        std::future::pending::<()>().await;
    });
    let mut second = in_turn(&turns, std::future::ready(()));
    assert!(!runs(&mut first) && !runs(&mut second));
    tokio::task::yield_now().await;
    assert!(!runs(&mut first));
    assert!(!runs(&mut second), "before the next look");
    tokio::task::yield_now().await;
    assert!(runs(&mut second));
}

#[tokio::test]
async fn whoever_leaves_has_others_called_by_the_look() {
    let turns = Arc::new(Turns::default());
    let [before, called, between, mut last] = waiting_for_a_look(&turns);
    drop(before);
    drop(between);
    tokio::task::yield_now().await;
    drop(called);
    assert!(!runs(&mut last));
    tokio::task::yield_now().await;
    assert!(runs(&mut last));
}

#[tokio::test]
async fn a_turn_that_waits_for_a_look_is_passed_on_by_whoever_leaves() {
    for looks_before in [0, 1] {
        let (turns, log) = (Arc::new(Turns::default()), Log::default());
        let mut guests = ["a", "b"].map(|name| in_turn(&turns, busy(name, 3, log.clone())));
        for guest in &mut guests {
            assert!(!runs(guest));
        }
        let [mut a, b] = guests;
        turns.look.ran(u64::MAX);
        // `a` has the turn and passes it to `b`, which then waits for the look.
        assert!(!runs(&mut a));
        for _ in 0..looks_before {
            tokio::task::yield_now().await;
        }
        drop(b);
        for _ in 0..2 {
            tokio::task::yield_now().await;
        }
        assert!(!runs(&mut a));
        assert_eq!(log.borrow().concat(), "abaa");
    }
}

/// A guest that holds the thread for a fifth of a second, and then could go on.
async fn long(hold: fn(Duration)) {
    hold(Duration::from_millis(200));
    end_slice().await;
}

/// Whether a guest is over its share after `hold`.
fn is_delayed_after(hold: fn(Duration)) -> bool {
    let turns = Arc::new(Turns::default());
    // A look, as on a worker that has run for long.
    turns.look.clone().wake();
    let guest =
        InTurn::new(long(hold), turns.clone(), share("5%"), Arc::new(Activity::new()), Arc::default());
    let mut guest = Box::pin(guest);
    let mut context = Context::from_waker(Waker::noop());
    assert!(guest.as_mut().poll(&mut context).is_pending());
    let _look = guest.as_mut().poll(&mut context);
    guest.delay.is_some()
}

#[tokio::test]
async fn a_pause_is_no_time_of_the_guest_that_ran_meanwhile() {
    let pause = |time| std::thread::park_timeout(time);
    assert!(!is_delayed_after(pause));
}

#[tokio::test]
async fn a_long_piece_of_work_is_charged_in_full() {
    let work = |time| {
        let start = crate::look::processor_time();
        while u128::from(crate::look::processor_time() - start) < Duration::as_nanos(&time) {}
    };
    assert!(is_delayed_after(work));
}

#[tokio::test]
async fn work_done_elsewhere_for_a_guest_is_spent_from_its_share() {
    let (turns, usage, share) = (Arc::new(Turns::default()), Arc::<Usage>::default(), share("10%"));
    share.elsewhere().fetch_add(200_000_000, Ordering::Relaxed);
    let guest = busy("a", 2, Log::default());
    let began = Instant::now();
    InTurn::new(guest, turns, share.clone(), Arc::new(Activity::new()), usage.clone()).await;
    // Its credit is the share of half a second, so it owes 150 ms, which a tenth of the time makes 1.5 s.
    assert!(began.elapsed() >= Duration::from_millis(1400), "{:?}", began.elapsed());
    assert!(usage.cpu() >= Duration::from_millis(200));
    assert_eq!(share.take_elsewhere(), 0);
}
