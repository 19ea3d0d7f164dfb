//! The books: what both ends of each request and the subscribers of events say, compared with the promises.

use std::collections::{BTreeMap, HashMap, VecDeque};

use test_guests::churn::{Ask, BATCH, Deed, Ended, Handled, Heard, Manner, Outcome, RECEIVERS};

use crate::deaths::Deaths;

#[derive(Debug, Default)]
pub(crate) struct Books {
    streams: HashMap<(u32, usize), Stream>,
    feeds: HashMap<(String, u32), Feed>,
    /// The last event of an instance that a subscriber heard.
    heard: HashMap<(String, u32), u32>,
    /// Requests `trapped` before their receiver reported them in hand, by receiver.
    unseen: [u64; RECEIVERS.len()],
    tally: BTreeMap<&'static str, u64>,
}

#[derive(Debug, Default)]
struct Stream {
    /// The last one in the receiver's hands.
    last: u32,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    handled_by: Option<u32>,
    outcome: Option<Outcome>,
}

#[derive(Debug, Default)]
struct Feed {
    /// The last event, the instance that heard it, and whether it died of that.
    sequence: u64,
    by: u32,
    was_deadly: bool,
    /// Events that this instance may have in hand, each by the last event before it that was not lost.
    before: VecDeque<u64>,
}

impl Books {
    /// A request is in hand for the first time, after all sent before it, and while its sender waits or has a reason
    /// not to.
    pub(crate) fn handled(&mut self, to: usize, Handled { by, ask }: Handled) -> Result<(), String> {
        let Ask { from, number, .. } = ask;
        let stream = self.streams.entry((from, to)).or_default();
        let last = stream.last;
        stream.last = number.max(last);
        let entry = stream.entry(number);
        if let Some(before) = entry.handled_by.replace(by) {
            return Err(format!("{ask:?} was delivered to {before} and again to {by}"));
        }
        if let Some(
            outcome @ (Outcome::Answered(_) | Outcome::Trapped | Outcome::PeerGone | Outcome::Refused),
        ) = entry.outcome
        {
            return Err(format!("{ask:?} ended with {outcome:?} and was delivered to {by} then"));
        }
        if number <= last {
            return Err(format!("{ask:?} was delivered after {last}"));
        }
        Ok(())
    }

    /// A request ended once, in a possible way.
    pub(crate) fn ended(&mut self, from: u32, ended: Ended) -> Result<(), String> {
        let Ended { to, number, deed, hurried, outcome } = ended;
        let entry = self.streams.entry((from, to)).or_default().entry(number);
        let handled_by = entry.handled_by;
        let wrong = |why: &str| Err(format!("{ended:?} of {from}, {why}; in the hand of {handled_by:?}"));
        *self.tally.entry(name(outcome)).or_default() += 1;
        if entry.outcome.replace(outcome).is_some() {
            return wrong("which had ended");
        }
        let receiver = &RECEIVERS[to];
        match outcome {
            Outcome::Answered(by) if handled_by != Some(by) => wrong("not there"),
            Outcome::Answered(_) if deed != Deed::Answer => wrong("by the dead"),
            Outcome::Refused if handled_by.is_some() => wrong("all the same"),
            Outcome::TimedOut if !hurried => wrong("too early"),
            // The receiver does not leave, and the next instance comes in time.
            Outcome::PeerGone if !hurried && !receiver.may_leave => wrong("which was to wait"),
            // Of several in hand, another may have killed it.
            Outcome::PeerGone if handled_by.is_some() && kills(deed) && receiver.manner == Manner::Single => {
                wrong("which it died of")
            }
            Outcome::Trapped if handled_by.is_none() => {
                self.unseen[to] += 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An instance sent up to these numbers, and all have ended.
    pub(crate) fn complete(&mut self, from: u32, last: &[u32]) -> Result<(), String> {
        for (to, &last) in last.iter().enumerate() {
            let entries = &self.streams.entry((from, to)).or_default().entries;
            let ended = entries.iter().filter(|entry| entry.outcome.is_some()).count();
            if (ended, entries.len()) != (last as usize, last as usize) {
                return Err(format!("of {from}, {ended} of {last} ended, to {}", RECEIVERS[to].id));
            }
        }
        Ok(())
    }

    /// An event is in hand: a new one, with all losses reported.
    pub(crate) fn heard(&mut self, subscriber: &str, heard: Heard) -> Result<(), String> {
        let Heard { by, subscription, sequence, lost, ask } = heard;
        let feed = self.feeds.entry((subscriber.to_owned(), subscription)).or_default();
        let wrong = |why: &str, feed: &Feed| Err(format!("`{subscriber}`: {heard:?} {why} {feed:?}"));
        if sequence <= feed.sequence {
            return wrong("came again after", feed);
        }
        // The instance before may have died with the last events, unheard with the losses before them.
        let has_died = by != feed.by;
        let is_heard = |last: u64| sequence.checked_sub(lost + 1) == Some(last);
        // Others subscribed before, and their topic counted from then on.
        let is_first = feed.sequence == 0;
        let is_told = is_first
            || (is_heard(feed.sequence) && !feed.was_deadly)
            || (has_died && feed.before.iter().any(|last| is_heard(*last)));
        if !is_told {
            return wrong("says so of what was lost after", feed);
        }
        if has_died {
            feed.before.clear();
        }
        let kind = match (lost, feed.sequence + 1 == sequence - lost) {
            (0, _) => "none lost",
            (_, true) => "lost for want of room",
            (_, false) => "lost with an instance",
        };
        *self.tally.entry(kind).or_default() += 1;
        (feed.sequence, feed.by, feed.was_deadly) = (sequence, by, ask.deed != Deed::Answer);
        feed.before.push_back(sequence - lost - 1);
        if feed.before.len() > at_once(subscriber) {
            feed.before.pop_front();
        }
        let last = self.heard.insert((subscriber.to_owned(), ask.from), ask.number).unwrap_or_default();
        match ask.number <= last {
            true => Err(format!("`{subscriber}`: {heard:?} came after {last}")),
            false => Ok(()),
        }
    }

    pub(crate) fn tally(&self) -> &BTreeMap<&'static str, u64> {
        &self.tally
    }

    /// All possible outcomes happened. A receiver killed from outside may have reported nothing of what it had in
    /// hand.
    pub(crate) fn assert_accounted(&self, deaths: &Deaths) {
        let often = self.tally.values().filter(|times| **times >= 20).count();
        assert_eq!(often, OUTCOMES + LOSSES, "{:?}", self.tally);
        for (receiver, unseen) in RECEIVERS.iter().zip(self.unseen) {
            // Until it reports the first, it owes an answer to all it took at once.
            let at_once = if receiver.manner == Manner::AnyOrder { u64::from(BATCH) } else { 1 };
            let overdue = deaths.overdue(receiver.id);
            assert!(
                unseen <= overdue * at_once,
                "{unseen} of {receiver:?}, which was killed {overdue} times"
            );
        }
    }
}

fn at_once(subscriber: &str) -> usize {
    match RECEIVERS.iter().find(|receiver| receiver.id == subscriber).map(|receiver| receiver.manner) {
        Some(Manner::InOrder | Manner::AnyOrder) => BATCH as usize,
        _ => 1,
    }
}

/// Possible ends of a request, and possible losses of an event.
const OUTCOMES: usize = 6;
const LOSSES: usize = 3;

fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered(_) => "answered",
        Outcome::Trapped => "trapped",
        Outcome::PeerGone => "peer gone",
        Outcome::Refused => "refused",
        Outcome::TimedOut => "timed out",
        Outcome::GivenUp => "given up",
    }
}

fn kills(deed: Deed) -> bool {
    matches!(deed, Deed::Trap | Deed::Spin | Deed::Hold)
}

impl Stream {
    fn entry(&mut self, number: u32) -> &mut Entry {
        let place = number as usize - 1;
        if self.entries.len() <= place {
            self.entries.resize(place + 1, Entry::default());
        }
        &mut self.entries[place]
    }
}
