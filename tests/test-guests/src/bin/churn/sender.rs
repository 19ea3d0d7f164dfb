//! Sends, and checks that every request ends once and in an allowed way.

use std::{
    collections::{HashMap, HashSet},
    time::{Duration, Instant},
};

use fastrand::Rng;
use test_guests::{
    PATIENT,
    churn::{Ask, BATCH, Begun, Deed, Ended, HOARD, Handled, Manner, Outcome, RECEIVERS, Report, TOPIC},
    words::text,
};
use weir_sdk::raw::{
    channel::{self, Message, Response},
    events,
    requests::{self, Options},
    types::{Error, MessageId},
};

use crate::{
    end,
    ledger::{Ledger, decode, encode},
};

/// One request of this many, by chance, does something.
const DEADLY: u32 = 300;
const HURRIED: u32 = 64;
const GIVEN_UP: u32 = 200;
const BEFORE_AN_EVENT: u32 = 8;
const BEFORE_ITS_OWN_DEATH: u32 = 4000;

/// One event of this many kills its receivers.
const DEADLY_EVENTS: u32 = 500;

const REPORTED: usize = 64;

pub(crate) fn run(ledger: &Ledger, begun: &Begun, window: usize) -> Result<(), String> {
    let open = |id| requests::open(&format!("{id}@1"), "ask", None).map_err(text);
    let mut sender = Sender {
        ledger,
        instance: begun.instance,
        rng: Rng::with_seed(begun.seed),
        targets: RECEIVERS.iter().map(|receiver| open(receiver.id)).collect::<Result<_, _>>()?,
        last: vec![0; RECEIVERS.len()],
        published: 0,
        under_way: HashMap::new(),
        given_up: HashSet::new(),
        ended: Vec::new(),
    };
    let is_stopped = if window == 0 { sender.call()? } else { sender.send(window)? };
    if is_stopped {
        // Outstanding responses come before stop is said again.
        while let Some(message) = channel::receive() {
            sender.hear(message)?;
        }
    }
    sender.report(true)?;
    while !is_stopped && channel::receive().is_some() {
        ledger.complain("a response when all had come")?;
    }
    Ok(())
}

struct Sender<'a> {
    ledger: &'a Ledger,
    instance: u32,
    rng: Rng,
    targets: Vec<u32>,
    /// The numbers of the last requests, by receiver.
    last: Vec<u32>,
    published: u32,
    under_way: HashMap<MessageId, Sent>,
    /// Cancelled requests. The answer may be on its way already.
    given_up: HashSet<MessageId>,
    ended: Vec<Ended>,
}

struct Sent {
    to: usize,
    ask: Ask,
    /// The time of sending and the timeout, if that is short enough to pass.
    hurried: Option<(Instant, Duration)>,
}

impl Sender<'_> {
    /// Calls, one request after the other, until there are enough. Returns whether it was told to stop.
    fn call(&mut self) -> Result<bool, String> {
        while self.report(false)? {
            match channel::receive_within(0) {
                Err(Error::Timeout) => {}
                Ok(None) => return Ok(true),
                other => self.ledger.complain(&format!("received {other:?}"))?,
            }
            while self.ended.len() < REPORTED {
                let (sent, options, payload) = self.next()?;
                let outcome = requests::call(self.target(sent.to)?, &payload, options);
                self.end(&sent, outcome, true)?;
            }
        }
        Ok(false)
    }

    /// Sends, with this many requests under way, until there are enough and all have ended. Returns whether
    /// it was told to stop.
    fn send(&mut self, window: usize) -> Result<bool, String> {
        let mut goes_on = self.report(false)?;
        loop {
            while goes_on && self.under_way.len() < window && self.ended.len() < REPORTED {
                self.send_one()?;
            }
            if self.ended.len() >= REPORTED {
                goes_on = self.report(false)?;
            } else if self.under_way.is_empty() {
                return Ok(false);
            } else {
                match channel::receive() {
                    Some(message) => self.hear(message)?,
                    None => return Ok(true),
                }
            }
        }
    }

    fn send_one(&mut self) -> Result<(), String> {
        let (sent, options, payload) = self.next()?;
        match requests::send(self.target(sent.to)?, &payload, options) {
            Ok(id) if self.rng.u32(..GIVEN_UP) == 0 => {
                requests::cancel(id);
                self.given_up.insert(id);
                self.ended.push(sent.ended(Outcome::GivenUp));
            }
            Ok(id) => drop(self.under_way.insert(id, sent)),
            Err(error) => self.end(&sent, Err(error), true)?,
        }
        Ok(())
    }

    /// The next message. By chance, an event or the sender's own death comes before it.
    fn next(&mut self) -> Result<(Sent, Options, Vec<u8>), String> {
        if self.rng.u32(..BEFORE_ITS_OWN_DEATH) == 0 {
            self.report(false)?;
            let deeds = [Deed::Trap, Deed::Spin, Deed::Hold, Deed::Fail, Deed::Finish];
            end(self.ledger, self.rng.choice(deeds).unwrap_or(Deed::Trap));
        }
        if self.rng.u32(..BEFORE_AN_EVENT) == 0 {
            self.publish()?;
        }
        let to = self.rng.usize(..RECEIVERS.len());
        let may_leave = RECEIVERS.get(to).is_some_and(|receiver| receiver.may_leave);
        let deeds: &[Deed] = match may_leave {
            true => &[Deed::Trap, Deed::Spin, Deed::Hold, Deed::Fail, Deed::Finish],
            false => &[Deed::Trap, Deed::Spin, Deed::Hold],
        };
        let is_deadly = self.rng.u32(..DEADLY) == 0;
        let deed = if is_deadly { self.rng.choice(deeds).copied() } else { None };
        let last = self.last.get_mut(to).ok_or("no such receiver")?;
        *last += 1;
        let ask = Ask { from: self.instance, number: *last, deed: deed.unwrap_or(Deed::Answer) };
        let timeout_ms = (self.rng.u32(..HURRIED) == 0).then(|| self.rng.u32(1..20));
        let hurried = timeout_ms.map(|ms| (Instant::now(), Duration::from_millis(ms.into())));
        Ok((Sent { to, ask, hurried }, Options { timeout_ms, parent: None }, encode(&ask)?))
    }

    fn publish(&mut self) -> Result<(), String> {
        self.published += 1;
        let deed = if self.rng.u32(..DEADLY_EVENTS) == 0 { Deed::Trap } else { Deed::Answer };
        let ask = Ask { from: self.instance, number: self.published, deed };
        events::publish(TOPIC, &encode(&ask)?, PATIENT).map(drop).map_err(text)
    }

    fn hear(&mut self, message: Message) -> Result<(), String> {
        let Message::Response(Response { id, outcome }) = message else {
            return self.ledger.complain("not a response, to one that only sends");
        };
        match self.under_way.remove(&id) {
            Some(sent) => self.end(&sent, outcome, false),
            None if self.given_up.remove(&id) => Ok(()),
            None => self.ledger.complain(&format!("{outcome:?} for {id}, of which nothing was to come")),
        }
    }

    /// Records the end of a request. It can be refused only when it is sent.
    fn end(&mut self, sent: &Sent, outcome: Result<Vec<u8>, Error>, as_sent: bool) -> Result<(), String> {
        let outcome = match outcome {
            Ok(answer) => {
                let Handled { by, ask } = decode(&answer)?;
                if (ask.from, ask.number) != (sent.ask.from, sent.ask.number) {
                    return self.ledger.complain(&format!("the answer to {ask:?} for {:?}", sent.ask));
                }
                if self.overtaken(sent) > overtakes(sent.to) {
                    return self.ledger.complain(&format!("no end of what was sent before {:?}", sent.ask));
                }
                Outcome::Answered(by)
            }
            Err(Error::Trapped) => Outcome::Trapped,
            Err(Error::PeerGone) => Outcome::PeerGone,
            Err(Error::NoProvider(_) | Error::Overloaded(_)) if as_sent => Outcome::Refused,
            Err(Error::Timeout | Error::NotReady(_)) if sent.is_due() => Outcome::TimedOut,
            Err(error) => return self.ledger.complain(&format!("{error:?} for {:?}", sent.ask)),
        };
        self.ended.push(sent.ended(outcome));
        Ok(())
    }

    /// The number of earlier requests to the same receiver that have not ended. One that is due ends on another thread than
    /// those that are answered, so its end may come a little later.
    fn overtaken(&self, sent: &Sent) -> usize {
        let is_before =
            |other: &&Sent| other.to == sent.to && other.ask.number < sent.ask.number && !other.is_due();
        self.under_way.values().filter(is_before).count()
    }

    /// Reports ended requests. Returns whether to send more.
    fn report(&mut self, is_last: bool) -> Result<bool, String> {
        let last = is_last.then(|| self.last.clone());
        self.ledger.report(&Report { by: self.instance, ended: std::mem::take(&mut self.ended), last })
    }

    fn target(&self, to: usize) -> Result<u32, String> {
        self.targets.get(to).copied().ok_or_else(|| "no such receiver".to_owned())
    }
}

/// The number of requests that a receiver may answer before an earlier one.
fn overtakes(to: usize) -> usize {
    match RECEIVERS.get(to).map(|receiver| receiver.manner) {
        Some(Manner::AnyOrder) => BATCH as usize - 1,
        Some(Manner::Hoard) => HOARD - 1,
        _ => 0,
    }
}

impl Sent {
    fn is_due(&self) -> bool {
        self.hurried.is_some_and(|(at, time)| at.elapsed() >= time)
    }

    fn ended(&self, outcome: Outcome) -> Ended {
        let Ask { number, deed, .. } = self.ask;
        Ended { to: self.to, number, deed, hurried: self.hurried.is_some(), outcome }
    }
}
