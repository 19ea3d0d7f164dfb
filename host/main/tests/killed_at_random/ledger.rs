//! The contract through which extensions report what they send, get and hear, before they act on it.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use fastrand::Rng;
use serde::{Serialize, de::DeserializeOwned};
use test_guests::churn::{Begun, Handled, Heard, LEDGER, RECEIVERS, Report};
use tokio::sync::{Notify, oneshot};
use weir_host::{HandlerError, Service, service::ServedRequest};

use crate::{books::Books, deaths::Deaths};

/// One instance in this many dies before it is ready.
const STILLBORN: u32 = 16;

/// Most messages between two unrequested kills.
const BETWEEN_KILLS: u64 = 2000;

/// Victims that may wait for the present kill.
const KILLS: usize = 16;

/// All reports, and the victims of kills from outside.
pub(crate) struct Ledger {
    pages: Mutex<Pages>,
    changed: Notify,
    kills: async_channel::Sender<String>,
}

#[derive(Debug)]
struct Pages {
    rng: Rng,
    books: Books,
    wanted: u64,
    handled: u64,
    heard: u64,
    next_kill: u64,
    instances: u32,
    present: HashMap<String, u32>,
    complete: HashSet<u32>,
    held: HashMap<String, Vec<oneshot::Sender<()>>>,
    heard_from_main: usize,
    faults: Vec<String>,
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Pages { books, handled, heard, instances, present, complete, .. } = &*self.pages();
        write!(f, "{handled} requests, {heard} events, {instances} instances, of which {present:?} run; ")?;
        write!(f, "{} are through; {:?}", complete.len(), books.tally())
    }
}

impl Ledger {
    /// Returns the channel of victims, too.
    pub(crate) fn new(seed: u64, wanted: u64) -> (Self, async_channel::Receiver<String>) {
        let (kills, killed) = async_channel::bounded(KILLS);
        let pages = Pages {
            rng: Rng::with_seed(seed),
            books: Books::default(),
            wanted,
            handled: 0,
            heard: 0,
            next_kill: BETWEEN_KILLS,
            instances: 0,
            present: HashMap::new(),
            complete: HashSet::new(),
            held: HashMap::new(),
            heard_from_main: 0,
            faults: Vec::new(),
        };
        (Self { pages: Mutex::new(pages), changed: Notify::new(), kills }, killed)
    }

    pub(crate) fn service(self: Arc<Self>) -> Service {
        let service = Service::new(LEDGER.parse().unwrap());
        let service = self.on(service, "begin", |pages, name, ()| pages.begin(name));
        let service = self.on(service, "handled", Pages::handled);
        let service = self.on(service, "heard", Pages::heard);
        let service = self.on(service, "report", Pages::report);
        let service = self.on(service, "complain", |pages, name, text: String| {
            pages.faults.push(format!("`{name}`: {text}"));
        });
        let (held, stays) = (self.clone(), self);
        service
            .on("hold".parse().unwrap(), move |request| {
                let ledger = held.clone();
                async move {
                    let killed = ledger.pages().hold(&request.sender);
                    // Fails when all is over.
                    let _closed = ledger.kills.send(request.sender).await;
                    killed_at_last(killed).await
                }
            })
            .on("stay".parse().unwrap(), move |request| killed_at_last(stays.pages().hold(&request.sender)))
    }

    fn on<T: DeserializeOwned + 'static, A: Serialize + 'static>(
        self: &Arc<Self>,
        service: Service,
        operation: &str,
        write: fn(&mut Pages, &str, T) -> A,
    ) -> Service {
        let ledger = self.clone();
        service.on(operation.parse().unwrap(), move |ServedRequest { sender, payload, .. }| {
            let mut pages = ledger.pages();
            let before = pages.news();
            let answer = write(&mut pages, &sender, serde_json::from_slice(&payload).unwrap());
            if let Some(victim) = pages.victim() {
                // With many victims waiting, that is enough.
                let _enough = ledger.kills.try_send(victim);
            }
            if pages.news() != before {
                ledger.changed.notify_waiters();
            }
            std::future::ready(Ok(serde_json::to_vec(&answer).unwrap().into()))
        })
    }

    /// Waits for enough messages and no sender waiting, or for a fault.
    pub(crate) async fn settled(&self, senders: &[&str]) {
        self.until(|pages| {
            let is_complete =
                |id: &&str| pages.present.get(*id).is_some_and(|it| pages.complete.contains(it));
            senders.iter().all(is_complete)
        })
        .await;
    }

    /// Waits until this many subscribers have heard an event of Main's.
    pub(crate) async fn heard_from_main(&self, subscribers: usize) {
        self.until(|pages| pages.heard_from_main == subscribers).await;
    }

    async fn until(&self, is_so: impl Fn(&Pages) -> bool) {
        loop {
            let changed = self.changed.notified();
            if self.is_over(&is_so) {
                return;
            }
            changed.await;
        }
    }

    fn is_over(&self, is_so: impl Fn(&Pages) -> bool) -> bool {
        let pages = self.pages();
        is_so(&pages) || !pages.faults.is_empty()
    }

    /// No further kills from outside, beside those that wait.
    pub(crate) fn close(&self) {
        self.kills.close();
    }

    pub(crate) fn assert_faultless(&self) {
        let faults: Vec<_> = self.pages().faults.iter().take(10).cloned().collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }

    pub(crate) fn assert_accounted(&self, deaths: &Deaths) {
        self.pages().books.assert_accounted(deaths);
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap()
    }
}

/// Ends long after the caller's death.
async fn killed_at_last(killed: oneshot::Receiver<()>) -> Result<bytes::Bytes, HandlerError> {
    // Nothing is sent.
    let _dropped = killed.await;
    Err(HandlerError::new("killed", "and asks"))
}

impl Pages {
    /// A new instance: the one before is dead.
    fn begin(&mut self, name: &str) -> Begun {
        self.held.remove(name);
        self.instances += 1;
        self.present.insert(name.to_owned(), self.instances);
        let dies = self.goes_on() && self.rng.u32(..STILLBORN) == 0;
        Begun { instance: self.instances, seed: self.rng.u64(..), dies }
    }

    fn handled(&mut self, name: &str, handled: Handled) {
        self.handled += 1;
        self.check_present(name, handled.by);
        if handled.ask.from == 0 {
            return;
        }
        let to = RECEIVERS.iter().position(|receiver| receiver.id == name).unwrap();
        let outcome = self.books.handled(to, handled);
        self.faults.extend(outcome.err());
    }

    fn heard(&mut self, name: &str, heard: Heard) {
        self.heard += 1;
        self.heard_from_main += usize::from(heard.ask.from == 0);
        self.check_present(name, heard.by);
        let outcome = self.books.heard(name, heard);
        self.faults.extend(outcome.err());
    }

    fn report(&mut self, name: &str, Report { by, ended, last }: Report) -> bool {
        self.check_present(name, by);
        for ended in ended {
            let outcome = self.books.ended(by, ended);
            self.faults.extend(outcome.err());
        }
        if let Some(last) = last {
            let outcome = self.books.complete(by, &last);
            self.faults.extend(outcome.err());
            self.complete.insert(by);
        }
        self.goes_on()
    }

    fn hold(&mut self, name: &str) -> oneshot::Receiver<()> {
        let (held, killed) = oneshot::channel();
        self.held.entry(name.to_owned()).or_default().push(held);
        killed
    }

    /// Changes that waiters look for.
    fn news(&self) -> (usize, usize, usize) {
        (self.complete.len(), self.heard_from_main, self.faults.len())
    }

    fn goes_on(&self) -> bool {
        self.handled + self.heard < self.wanted && self.faults.is_empty()
    }

    /// Each extension has one instance at a time.
    fn check_present(&mut self, name: &str, by: u32) {
        let present = self.present.get(name);
        if present != Some(&by) {
            self.faults.push(format!("`{name}`: {by} speaks, and {present:?} is there"));
        }
    }

    fn victim(&mut self) -> Option<String> {
        let messages = self.handled + self.heard;
        if messages < self.next_kill || !self.goes_on() {
            return None;
        }
        self.next_kill = messages + self.rng.u64(1..BETWEEN_KILLS);
        let place = self.rng.usize(..self.present.len());
        // In the same order for the same seed.
        let mut names: Vec<_> = self.present.keys().cloned().collect();
        names.sort_unstable();
        names.into_iter().nth(place)
    }
}
