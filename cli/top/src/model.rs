//! What the view knows of a Main: a row for each extension and each peer, with rates between looks.
//!
//! Counters of Main only grow, and begin anew with Main. A counter that is lower than before gives no rate.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant, SystemTime},
};

use weir_names::ContractName;
use weir_reports::{ExtensionStatus, FailureRecord, PeerCounts, PeerStatus};

use crate::{
    answers::{Counts, LogLine, Look, Operations},
    quantiles::{Interval, Quantile},
};

/// The shortest time between two looks that rates are made of. After less, the interval goes on from the earlier look.
const MIN_INTERVAL: Duration = Duration::from_millis(50);

/// The most samples of each row: two minutes at the usual interval.
const MAX_SAMPLES: usize = 120;

/// Identifies a row, on whatever line it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Extension(String),
    Peer(String),
}

impl Key {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Extension(name) | Self::Peer(name) => name,
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) key: Key,
    pub(crate) state: String,
    /// The share of processor time, from 0 to 1. `None` for peers.
    pub(crate) cpu: Option<f64>,
    /// The memory in use and its limit, in bytes. `None` for peers.
    pub(crate) memory: Option<(u64, u64)>,
    /// The messages that it received and sent in a second.
    pub(crate) messages: Option<f64>,
    /// The time within which half of its requests since the last look were answered; `p99` is that of 99 in 100.
    pub(crate) p50: Option<Quantile>,
    pub(crate) p99: Option<Quantile>,
    /// The number of messages that wait for it.
    pub(crate) inbox: u64,
    /// The number of messages without room, answers after the deadline and refused requests.
    pub(crate) lost: u64,
    /// The number of them between the last two looks.
    pub(crate) newly_lost: u64,
    /// The number of restarts. `None` for peers.
    pub(crate) restarts: Option<u64>,
    pub(crate) facts: Facts,
    pub(crate) history: History,
    counters: Counters,
}

impl Row {
    /// Makes a row of which nothing else is known yet.
    fn new(key: Key, state: &str, inbox: u64, facts: Facts, counters: Counters) -> Self {
        Self {
            key,
            state: state.to_owned(),
            cpu: None,
            memory: None,
            messages: None,
            p50: None,
            p99: None,
            inbox,
            lost: counters.lost,
            newly_lost: 0,
            restarts: None,
            facts,
            history: History::default(),
            counters,
        }
    }

    /// Returns the used memory as a part of the limit, from 0 to 1.
    pub(crate) fn memory_share(&self) -> Option<f64> {
        let (used, limit) = self.memory?;
        (limit > 0).then(|| as_f64(used) / as_f64(limit))
    }
}

/// What only the pane of one extension or peer shows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) reason: Option<String>,
    /// Since when it has its state, or a peer its oldest session. `None` for peers without a session.
    pub(crate) since: Option<SystemTime>,
    pub(crate) class: String,
    pub(crate) fulfills: Vec<ContractName>,
    /// The last failures, oldest first.
    pub(crate) failures: Vec<FailureRecord>,
    /// Attempts to connect under this name with a wrong proof.
    pub(crate) denied: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    cpu_seconds: f64,
    messages: u64,
    lost: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Model {
    /// The rows in the order of the configuration; peers after extensions.
    pub(crate) rows: Vec<Row>,
    /// The extension that the last look asked for, and its log, oldest first.
    pub(crate) log: Option<(String, Vec<LogLine>)>,
    pid: Option<u64>,
    /// When the next interval begins: at the last look that counted.
    since: Option<Instant>,
    counts: BTreeMap<String, Counts>,
}

/// What a look said of Main itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    First,
    Same,
    /// Main is another process than before: all counts begin anew.
    Another,
}

impl Model {
    pub(crate) fn get(&self, key: &Key) -> Option<&Row> {
        self.rows.iter().find(|row| row.key == *key)
    }

    /// Replaces the rows by those of a new look, and returns what it says of Main itself.
    pub(crate) fn add(&mut self, look: Look) -> Seen {
        let seen = match self.since {
            None => Seen::First,
            Some(_) if self.pid != look.pid => Seen::Another,
            Some(_) => Seen::Same,
        };
        if seen == Seen::Another {
            *self = Self::default();
        }
        let elapsed = self.since.map(|since| look.at.saturating_duration_since(since));
        let is_too_soon = elapsed.is_some_and(|elapsed| elapsed < MIN_INTERVAL);
        let mut before: BTreeMap<Key, Row> = self.rows.drain(..).map(|row| (row.key.clone(), row)).collect();
        let extensions = look.extensions.into_iter().map(of_extension);
        let fresh = extensions.chain(look.peers.into_iter().map(of_peer));
        self.rows = fresh.map(|row| continued(row, &mut before, elapsed, is_too_soon)).collect();
        self.pid = look.pid;
        self.log = look.log_of.map(|id| (id, look.log));
        if !is_too_soon {
            self.count(look.operations.as_ref(), seen == Seen::Same);
            self.since = Some(look.at);
            for row in &mut self.rows {
                row.history.add(sample(row, elapsed.is_some()));
            }
        }
        seen
    }

    /// Sets the quantiles of the rows from the counts of this look and the one before, if there is one.
    fn count(&mut self, operations: Option<&Operations>, has_before: bool) {
        let now = operations.map(Operations::by_provider).unwrap_or_default();
        let bounds = operations.map(|all| all.bounds.as_slice()).unwrap_or_default();
        let nothing = Counts::new();
        for row in self.rows.iter_mut().filter(|_| has_before) {
            let before = self.counts.get(row.key.name()).unwrap_or(&nothing);
            let interval = now.get(row.key.name()).map(|now| Interval::between(before, now));
            let quantile = |percent| interval.as_ref()?.quantile(percent, bounds);
            (row.p50, row.p99) = (quantile(50), quantile(99));
        }
        self.counts = now.into_iter().map(|(name, counts)| (name.to_owned(), counts)).collect();
    }
}

/// Adds to a row what the look before says: rates, and its history.
fn continued(
    mut row: Row,
    before: &mut BTreeMap<Key, Row>,
    elapsed: Option<Duration>,
    is_too_soon: bool,
) -> Row {
    let (Some(before), Some(elapsed)) = (before.remove(&row.key), elapsed) else { return row };
    row.history = before.history;
    if is_too_soon {
        let Row { cpu, messages, p50, p99, newly_lost, counters, .. } = before;
        return Row { cpu: cpu.and(row.cpu.and(cpu)), messages, p50, p99, newly_lost, counters, ..row };
    }
    let seconds = elapsed.as_secs_f64();
    let (old, new) = (before.counters, row.counters);
    if row.cpu.is_some() && new.cpu_seconds >= old.cpu_seconds {
        // Main's figures and the looks are not of the same moments: the share could be a little over 1.
        row.cpu = Some(((new.cpu_seconds - old.cpu_seconds) / seconds).clamp(0.0, 1.0));
    }
    row.messages = new.messages.checked_sub(old.messages).map(|messages| as_f64(messages) / seconds);
    row.newly_lost = new.lost.saturating_sub(old.lost);
    row
}

fn of_extension(extension: ExtensionStatus) -> Row {
    let ExtensionStatus { id, received, sent, shed, late, refused, .. } = extension;
    let lost = shed.saturating_add(late).saturating_add(refused.unwrap_or(0));
    let is_compiling = extension.compiling.is_some();
    let counters =
        Counters { cpu_seconds: extension.cpu.as_secs_f64(), messages: received.saturating_add(sent), lost };
    let state = if is_compiling { "compiling" } else { extension.state.as_str() };
    let facts = Facts {
        reason: extension.reason,
        since: Some(extension.since),
        class: extension.class,
        fulfills: extension.fulfills,
        failures: extension.failures,
        denied: 0,
    };
    Row {
        cpu: Some(extension.cpu_share),
        memory: Some((extension.memory, extension.memory_limit)),
        restarts: Some(extension.restarts),
        ..Row::new(Key::Extension(id.to_string()), state, extension.inbox_messages, facts, counters)
    }
}

fn of_peer(peer: PeerStatus) -> Row {
    let PeerStatus { name, sessions, fulfills, denied, counts, .. } = peer;
    let PeerCounts { sent, received, shed, late } = counts;
    let lost = shed.saturating_add(late);
    let state = if sessions.is_empty() { "no session" } else { "connected" };
    let waiting = sessions.iter().fold(0_u64, |sum, session| sum.saturating_add(session.waiting));
    let since = sessions.first().map(|oldest| oldest.since);
    let facts = Facts { since, fulfills, denied, ..Facts::default() };
    let counters = Counters { cpu_seconds: 0.0, messages: received.saturating_add(sent), lost };
    Row::new(Key::Peer(name.to_string()), state, waiting, facts, counters)
}

fn sample(row: &Row, has_before: bool) -> Sample {
    Sample {
        cpu: row.cpu,
        memory: row.memory.map(|(used, _)| as_f64(used)),
        messages: row.messages,
        p99: row.p99.map(Quantile::seconds),
        inbox: Some(as_f64(row.inbox)),
        lost: has_before.then(|| as_f64(row.newly_lost)),
    }
}

/// Converts a number. The result is exact enough for a figure of three digits.
pub(crate) fn as_f64(number: u64) -> f64 {
    number as f64
}

/// What a row did between two looks. `None` means that a figure is not known for that interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Sample {
    /// The share of processor time, from 0 to 1.
    pub(crate) cpu: Option<f64>,
    /// The memory in use, in bytes.
    pub(crate) memory: Option<f64>,
    /// Messages a second.
    pub(crate) messages: Option<f64>,
    /// The time within which 99 of 100 requests were answered, in seconds.
    pub(crate) p99: Option<f64>,
    /// The number of messages that wait.
    pub(crate) inbox: Option<f64>,
    /// Messages lost in the interval.
    pub(crate) lost: Option<f64>,
}

/// The last samples of one row, for its sparklines.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    samples: VecDeque<Sample>,
}

impl History {
    pub(crate) fn add(&mut self, sample: Sample) {
        if self.samples.len() >= MAX_SAMPLES {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Returns one figure of all samples, oldest first.
    pub(crate) fn of(&self, figure: impl Fn(&Sample) -> Option<f64>) -> Vec<Option<f64>> {
        self.samples.iter().map(figure).collect()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::{Map, Value, json};
    use weir_reports::{SessionId, SessionStatus};

    use super::*;
    use crate::source::Answers;

    /// Main's answer: what is said here of each extension, and zeros.
    pub(crate) fn answer(extensions: &str) -> Vec<u8> {
        let said: Vec<Map<String, Value>> = serde_json::from_str(&format!("[{extensions}]")).unwrap();
        let whole = |said| {
            let mut all = json!({
                "state": "stopped", "since": "2026-11-20T13:29:43.651Z", "restarts": 0, "cpu-seconds": 0.0,
                "memory": 0, "memory-limit": 0, "inbox-messages": 0, "inbox-bytes": 0, "received": 0, "sent": 0,
                "shed": 0, "late": 0, "class": "",
            });
            all.as_object_mut().unwrap().extend(said);
            all
        };
        let extensions: Vec<Value> = said.into_iter().map(whole).collect();
        json!({ "extensions": extensions, "more": 1 }).to_string().into()
    }

    /// A peer with sessions for each of which so many messages wait.
    pub(crate) fn peer(waiting: &[u64]) -> PeerStatus {
        let name: weir_names::PeerName = "app:player".parse().unwrap();
        let session = |waiting: &u64| SessionStatus {
            id: SessionId(1),
            name: name.clone(),
            since: SystemTime::UNIX_EPOCH,
            proof: "uid".into(),
            in_flight: 0,
            waiting: *waiting,
            waiting_bytes: 0,
            subscriptions: 0,
            serves: Vec::new(),
            counts: PeerCounts::default(),
        };
        PeerStatus {
            sessions: waiting.iter().map(session).collect(),
            name: name.clone(),
            fulfills: Vec::new(),
            sessions_so_far: 2,
            denied: 0,
            counts: PeerCounts { shed: 4, late: 1, ..PeerCounts::default() },
        }
    }

    /// A look, so many milliseconds after `begun`.
    pub(crate) fn look(begun: Instant, millis: u64, extensions: &str) -> Look {
        let answers = Answers {
            at: begun + Duration::from_millis(millis),
            pid: Some(1),
            ..Answers::of(answer(extensions))
        };
        Look::read(&answers, None).unwrap()
    }

    fn first(model: &Model) -> &Row {
        &model.rows[0]
    }

    #[test]
    fn the_first_look_has_the_share_that_main_measured() {
        let mut model = Model::default();
        let seen = model.add(look(Instant::now(), 0, r#"{"id":"a","cpu-share":0.9,"cpu-seconds":50.0}"#));
        assert_eq!((seen, first(&model).cpu), (Seen::First, Some(0.9)));
        assert_eq!(first(&model).messages, None);
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let (mut model, begun) = (Model::default(), Instant::now());
        model.add(look(begun, 0, r#"{"id":"a","cpu-seconds":1.0,"received":10,"sent":10,"shed":1}"#));
        model.add(look(begun, 500, r#"{"id":"a","cpu-seconds":1.25,"received":20,"sent":15,"shed":3}"#));
        let row = first(&model);
        assert_eq!((row.cpu, row.messages), (Some(0.5), Some(30.0)));
        assert_eq!((row.lost, row.newly_lost), (3, 2));
    }

    #[test]
    fn two_looks_at_nearly_the_same_time_leave_the_rates_as_they_are() {
        let (mut model, begun) = (Model::default(), Instant::now());
        model.add(look(begun, 0, r#"{"id":"a","state":"ready","cpu-seconds":1.0,"received":10}"#));
        model.add(look(begun, 1000, r#"{"id":"a","state":"ready","cpu-seconds":1.5,"received":20}"#));
        model.add(look(begun, 1010, r#"{"id":"a","state":"stopped","cpu-seconds":1.51,"received":30}"#));
        let row = first(&model);
        assert_eq!((row.cpu, row.messages, row.state.as_str()), (Some(0.5), Some(10.0), "stopped"));
        model.add(look(begun, 2000, r#"{"id":"a","cpu-seconds":2.0,"received":40}"#));
        assert_eq!(first(&model).messages, Some(20.0));
    }

    #[test]
    fn a_main_that_was_started_again_gives_no_absurd_rates() {
        let (mut model, begun) = (Model::default(), Instant::now());
        model.add(look(begun, 0, r#"{"id":"a","cpu-seconds":100.0,"received":1000,"shed":9}"#));
        let after = look(begun, 1000, r#"{"id":"a","cpu-seconds":0.1,"cpu-share":0.1,"received":1}"#);
        assert_eq!(model.add(Look { pid: Some(2), ..after.clone() }), Seen::Another);
        let row = first(&model);
        assert_eq!((row.cpu, row.messages, row.newly_lost), (Some(0.1), None, 0));
    }

    #[test]
    fn a_counter_that_goes_backwards_gives_no_rate() {
        let (mut model, begun) = (Model::default(), Instant::now());
        model.add(look(begun, 0, r#"{"id":"a","cpu-seconds":100.0,"received":1000,"shed":9}"#));
        model.add(look(begun, 1000, r#"{"id":"a","cpu-seconds":0.1,"cpu-share":0.2,"received":1}"#));
        let row = first(&model);
        assert_eq!((row.cpu, row.messages, row.newly_lost), (Some(0.2), None, 0));
    }

    #[test]
    fn extensions_that_are_no_longer_configured_leave_nothing_behind() {
        let (mut model, begun) = (Model::default(), Instant::now());
        model.add(look(begun, 0, r#"{"id":"a"},{"id":"b"}"#));
        model.add(look(begun, 1000, r#"{"id":"b"}"#));
        assert_eq!(model.rows.len(), 1);
        assert!(model.get(&Key::Extension("a".to_owned())).is_none());
    }

    #[test]
    fn a_peer_has_messages_and_losses_but_no_processor() {
        let mut model = Model::default();
        model.add(Look { peers: vec![peer(&[2, 3])], ..look(Instant::now(), 0, "") });
        let row = first(&model);
        assert_eq!((row.state.as_str(), row.cpu, row.inbox, row.lost), ("connected", None, 5, 5));
    }

    #[test]
    fn only_the_last_samples_are_kept() {
        let mut history = History::default();
        for number in 0..1000 {
            history.add(Sample { inbox: Some(f64::from(number)), ..Sample::default() });
        }
        let kept = history.of(|sample| sample.inbox);
        assert_eq!(kept.len(), MAX_SAMPLES);
        assert_eq!(kept.last(), Some(&Some(999.0)));
    }
}
