//! The turns of a connection that notes its steps.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Wake, Waker},
};

use futures_util::{FutureExt, stream};
use tokio::sync::{mpsc, oneshot};
use weir_host::{Config, Main, config::PeerConfig};

use super::*;

#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// Notes its steps.
struct Noted {
    session: Session,
    under_way: UnderWay<u32, &'static str>,
    requests: Requests,
    has_room: bool,
    wanted: Option<Wanted>,
    /// What is there to read.
    input: usize,
    /// What the writes return.
    writes: VecDeque<Step<&'static str>>,
    steps: Vec<&'static str>,
}

impl Protocol for Noted {
    type Id = u32;
    type Outcome = &'static str;
    type Close = &'static str;

    fn parts(&mut self) -> (&Session, &mut UnderWay<u32, &'static str>, &mut Requests) {
        (&self.session, &mut self.under_way, &mut self.requests)
    }

    fn has_room(&self) -> bool {
        self.has_room
    }

    fn wanted(&self) -> Option<Wanted> {
        self.wanted
    }

    fn answer(&mut self, _id: Option<u32>, outcome: &'static str) {
        self.steps.push(outcome);
    }

    fn send_job(&mut self, _context: &mut Context<'_>) -> bool {
        let comes = !self.steps.contains(&"job");
        self.steps.extend(comes.then_some("job"));
        comes
    }

    fn send(&mut self, _message: PeerMessage) {
        self.steps.push("message");
    }

    fn send_given_up(&mut self, _number: u32) {
        self.steps.push("given up");
    }

    fn read(&mut self, _context: &mut Context<'_>) -> Step<&'static str> {
        let comes = self.input > 0;
        self.input -= usize::from(comes);
        self.steps.extend(comes.then_some("read"));
        Ok(comes)
    }

    fn write(&mut self, _context: &mut Context<'_>) -> Step<&'static str> {
        self.steps.push("write");
        let wrote = self.writes.pop_front().unwrap_or(Ok(false));
        self.has_room |= wrote.is_ok_and(|made_room| made_room);
        wrote
    }

    fn regranted(&mut self) {
        self.steps.push("regranted");
    }

    fn tick(&mut self) -> Result<(), Option<&'static str>> {
        self.steps.push("tick");
        Ok(())
    }
}

async fn noted() -> (Main, Noted) {
    let main = Main::builder(Config::default()).start().await.unwrap();
    let session = main.peer(PeerConfig::new("app:a".parse().unwrap())).unwrap();
    let (under_way, requests) = (UnderWay::default(), Requests::new(1));
    let (writes, steps) = (VecDeque::new(), Vec::new());
    let wanted = Some(Wanted { requests: true, events: true });
    (main, Noted { session, under_way, requests, has_room: true, wanted, input: 0, writes, steps })
}

/// Gives a connection one turn, which does not end it; whether it asks for another.
fn turn(connection: &mut Noted) -> bool {
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(woken.clone());
    let turn = run(connection, std::future::pending(), stream::empty());
    assert!(pin!(turn).poll(&mut Context::from_waker(&waker)).is_pending());
    woken.0.load(Relaxed) > 0
}

#[tokio::test]
async fn a_program_that_sends_without_end_lets_others_have_their_turn() {
    let (_main, mut connection) = noted().await;
    connection.input = 100;
    assert!(turn(&mut connection));
    assert_eq!(connection.input, 100 - ROUNDS * READS);
    assert!(!turn(&mut connection));
    assert_eq!(connection.input, 0);
    let steps = connection.steps.len();
    assert!(!turn(&mut connection));
    assert_eq!(connection.steps.split_off(steps), ["write"]);
}

#[tokio::test]
async fn nothing_is_added_while_too_much_waits_and_all_goes_on_with_the_write_that_makes_room() {
    let (_main, mut connection) = noted().await;
    let context = &mut Context::from_waker(Waker::noop());
    let (answer, later) = oneshot::channel();
    assert!(connection.under_way.begin(Some(1), later.map(Result::unwrap), context).is_none());
    answer.send("answer").unwrap();
    (connection.has_room, connection.input) = (false, 1);
    assert!(!turn(&mut connection));
    assert_eq!(connection.steps, ["write"]);
    connection.writes.push_back(Ok(true));
    assert!(!turn(&mut connection));
    assert_eq!(connection.steps, ["write", "write", "answer", "job", "read", "write", "write"]);
}

#[tokio::test]
async fn a_program_that_reads_no_more_is_sent_nothing_and_what_it_sent_is_read() {
    let (_main, mut connection) = noted().await;
    (connection.wanted, connection.input) = (None, 1);
    assert!(!turn(&mut connection));
    assert_eq!(connection.steps, ["read", "write", "write"]);
}

#[tokio::test]
async fn each_tick_is_heard_and_the_end_from_outside_comes_first() {
    let (_main, mut connection) = noted().await;
    let (ticks, mut heard) = mpsc::channel(8);
    let heard = stream::poll_fn(move |context| heard.poll_recv(context));
    let (end, ended) = oneshot::channel();
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(woken.clone());
    let context = &mut Context::from_waker(&waker);
    {
        let over = ended.map(|end: Result<&'static str, _>| end.unwrap());
        let mut run = pin!(run(&mut connection, over, heard));
        assert!(run.as_mut().poll(context).is_pending());
        for ticked in 1..3 {
            ticks.try_send(()).unwrap();
            assert_eq!(woken.0.load(Relaxed), ticked);
            assert!(run.as_mut().poll(context).is_pending());
        }
        ticks.try_send(()).unwrap();
        end.send("over").unwrap();
        assert_eq!(run.as_mut().poll(context), Poll::Ready(Some("over")));
    }
    connection.steps.retain(|step| *step == "tick");
    assert_eq!(connection.steps, ["tick", "tick"]);
}

#[tokio::test]
async fn the_reason_of_a_step_ends_the_connection() {
    let (_main, mut connection) = noted().await;
    connection.writes.push_back(Err(Some("slow")));
    let end = run(&mut connection, std::future::pending(), stream::empty()).await;
    assert_eq!(end, Some("slow"));
    connection.writes.push_back(Err(None));
    let end = run(&mut connection, std::future::pending(), stream::empty()).await;
    assert_eq!(end, None);
}
