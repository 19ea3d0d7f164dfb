//! Handlers of Main's contracts that never end leave the others alone.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use tokio::time::timeout;
use weir_host::{CallOptions, Error, Main, Service};

use super::support::{PATIENCE, builder, until};

const CALLS: usize = 300;

struct Living(Arc<AtomicUsize>);

impl Living {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// `hang@1`: `on` never answers and counts its runs; `off` answers.
fn hang(at_work: &Arc<AtomicUsize>) -> Service {
    let at_work = at_work.clone();
    let on = move |_| {
        let living = Living::new(&at_work);
        async move {
            let _living = living;
            pending().await
        }
    };
    Service::new("hang@1".parse().unwrap())
        .on("on".parse().unwrap(), on)
        .on("off".parse().unwrap(), async |_| Ok("off".into()))
}

fn other() -> Service {
    Service::new("other@1".parse().unwrap())
        .on("on".parse().unwrap(), async |_| Ok("other".into()))
        .on_blocking("block".parse().unwrap(), |_| Ok("blocked".into()))
}

fn within(timeout: Duration) -> CallOptions {
    let mut options = CallOptions::default();
    options.timeout = Some(timeout);
    options
}

async fn call(main: &Main, contract: &str, operation: &str) -> Result<Bytes, Error> {
    let answer = main.client().call_with(contract, operation, "", within(PATIENCE));
    timeout(PATIENCE / 2, answer).await.unwrap()
}

#[tokio::test]
async fn calls_that_nobody_waits_for_any_more_leave_their_handlers_to_others() {
    let at_work = Arc::<AtomicUsize>::default();
    let main = builder(vec![]).serve(hang(&at_work)).serve(other()).start().await.unwrap();
    let client = main.client();
    let brief = Duration::from_millis(200);
    let timed_out = join_all((0..CALLS).map(|_| client.call_with("hang@1", "on", "", within(brief)))).await;
    assert!(timed_out.iter().all(|answer| *answer == Err(Error::Timeout)), "{timed_out:?}");
    assert_eq!(call(&main, "other@1", "on").await.unwrap(), "other");
    assert_eq!(call(&main, "hang@1", "off").await.unwrap(), "off");
    timeout(PATIENCE, until(|| at_work.load(Ordering::SeqCst) == 0)).await.unwrap();
}

#[tokio::test]
async fn handlers_that_hang_leave_other_contracts_alone_and_are_dropped_with_their_callers() {
    let at_work = Arc::<AtomicUsize>::default();
    let main = builder(vec![]).serve(hang(&at_work)).serve(other()).start().await.unwrap();
    let client = main.client().clone();
    let calls = tokio::spawn(async move {
        join_all((0..CALLS).map(|_| client.call_with("hang@1", "on", "", within(10 * PATIENCE)))).await
    });
    timeout(PATIENCE, until(|| at_work.load(Ordering::SeqCst) == 256)).await.unwrap();
    assert_eq!(call(&main, "other@1", "on").await.unwrap(), "other");
    assert_eq!(call(&main, "hooks@1", "list").await.unwrap(), "[]");
    assert_eq!(at_work.load(Ordering::SeqCst), 256, "further ones wait");
    calls.abort();
    timeout(PATIENCE, until(|| at_work.load(Ordering::SeqCst) == 0)).await.unwrap();
    assert_eq!(call(&main, "hang@1", "off").await.unwrap(), "off");
}

#[tokio::test]
async fn blocking_handlers_that_are_stuck_leave_threads_to_other_contracts() {
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let begun = Arc::<AtomicUsize>::default();
    let begins = begun.clone();
    let stuck = Service::new("stuck@1".parse().unwrap()).on_blocking("on".parse().unwrap(), move |_| {
        begins.fetch_add(1, Ordering::SeqCst);
        // At the latest when the test ends.
        let _end = released.lock().unwrap().recv();
        Ok("".into())
    });
    let main = builder(vec![]).serve(stuck).serve(other()).start().await.unwrap();
    let client = main.client();
    let brief = Duration::from_millis(500);
    let timed_out = join_all((0..4).map(|_| client.call_with("stuck@1", "on", "", within(brief)))).await;
    assert!(timed_out.iter().all(|answer| *answer == Err(Error::Timeout)), "{timed_out:?}");
    assert_eq!(call(&main, "other@1", "block").await.unwrap(), "blocked");
    let before = begun.load(Ordering::SeqCst);
    drop(release);
    assert_eq!(call(&main, "stuck@1", "on").await.unwrap(), "");
    assert_eq!(begun.load(Ordering::SeqCst), before + 1, "what nobody waits for has left the queue");
}
