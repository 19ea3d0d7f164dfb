//! What a guest's Store holds: everything that ends with the instance.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::poll_fn,
    sync::Arc,
    task::{Poll, Waker},
    time::Duration,
};

use tokio::time::Instant;
use wasmtime::component::Linker;
use wasmtime_wasi::{WasiCtxView, WasiView};
use weir_bus::{
    Bus, Error, Event, Incoming, Look, MessageId, Peer, PeerId, Phase, Reply, Request, Taken, Target, Term,
    Waiter,
};
use weir_config::ExtensionConfig;
use weir_metrics::Usage;
use weir_names::harmless;

use super::{
    abi, imports,
    in_hand::InHand,
    instance::{Notice, Signals},
    jobs::Jobs,
    memory::size,
    output::Output,
    sandbox::{Guest, Sandbox},
};

/// Bytes of what a guest gives as a reason.
const MAX_REASON: usize = 1024;

/// The state of one instance.
pub struct State {
    pub(super) bus: Arc<Bus>,
    pub(super) peer: Arc<Peer>,
    pub(super) in_hand: InHand,
    pub(super) jobs: Jobs,
    /// Whether a job comes before an event the next time.
    is_turn_of_jobs: bool,
    pub(super) output: Output,
    pub(super) config: Arc<ExtensionConfig>,
    /// Why the guest itself says that it is about to fail.
    pub(super) fault: Option<String>,
    pub(super) sandbox: Sandbox,
    signals: Arc<Signals>,
    targets: Vec<Target>,
    under_way: BTreeMap<MessageId, Arc<Waiter>>,
    pub(super) in_flight: u64,
    usage: Arc<Usage>,
    declared: Declared,
    /// Peers whose messages it received: those whose names it may know.
    met: BTreeSet<PeerId>,
}

/// What an instance has said of itself last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Declared {
    Nothing,
    Ready,
    Interrupted,
}

impl State {
    pub(super) fn new(
        bus: Arc<Bus>,
        peer: Arc<Peer>,
        signals: Arc<Signals>,
        sandbox: Sandbox,
        output: Output,
        usage: Arc<Usage>,
        config: Arc<ExtensionConfig>,
    ) -> Self {
        let in_flight = config.limits.in_flight.into();
        Self {
            bus,
            jobs: Jobs::new(peer.clone(), size(in_flight)),
            is_turn_of_jobs: false,
            peer,
            in_hand: InHand::new(size(in_flight)),
            output,
            config,
            fault: None,
            sandbox,
            signals,
            targets: Vec::new(),
            under_way: BTreeMap::new(),
            in_flight,
            usage,
            declared: Declared::Nothing,
            met: BTreeSet::new(),
        }
    }

    /// The next message without waiting, as the guest gets it: `Some(None)` is stop.
    pub(super) fn take(&mut self, task: Option<&Waker>) -> Option<Option<abi::Message>> {
        self.begin_receive(false);
        let next = self.take_one(task);
        self.jobs.end_receive();
        match next {
            Next::Stop => Some(None),
            Next::Empty => None,
            Next::Message(message) => Some(Some(message)),
        }
    }

    /// Whoever has looked for a message in vain waits for this, and looks again.
    pub(super) fn readable(&self) -> impl Future<Output = ()> + use<> {
        let takings = self.jobs.takes.then(|| self.jobs.takings().clone());
        let mut has_waited = false;
        async move {
            match takings {
                Some(takings) => takings.readable().await,
                // The inbox has its task: it is polled again when there is something.
                None => {
                    poll_fn(|_| match std::mem::replace(&mut has_waited, true) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    })
                    .await;
                }
            }
        }
    }

    /// Up to `max` messages without waiting; empty is stop.
    pub(super) fn take_batch(
        &mut self,
        task: Option<&Waker>,
        max: usize,
        order: abi::BatchOrder,
    ) -> Option<Vec<abi::Message>> {
        self.begin_receive(order == abi::BatchOrder::InOrder);
        let mut batch = Vec::new();
        let mut is_stop = false;
        // Stop ends a batch, and is said by the next receive.
        while batch.len() < max && (batch.is_empty() || !self.peer.is_stopping()) {
            match self.take_one(task.filter(|_| batch.is_empty())) {
                Next::Message(message) => batch.push(message),
                end => {
                    is_stop = matches!(end, Next::Stop);
                    break;
                }
            }
        }
        self.jobs.end_receive();
        (is_stop || !batch.is_empty()).then_some(batch)
    }

    /// The name of a peer, for those who have met it.
    pub(super) fn name_of(&self, peer: PeerId) -> Option<String> {
        let knows = peer == PeerId::MAIN || peer == self.peer.id() || self.met.contains(&peer);
        let peer = knows.then(|| self.bus.peer(peer))?;
        peer.map(|peer| peer.name().to_owned())
    }

    /// Declares the extension ready, once.
    pub(super) async fn declare_ready(&mut self) {
        if self.declared != Declared::Ready {
            self.declared = Declared::Ready;
            self.peer.set_phase_if_up(Phase::Ready);
            self.signals.notify(Notice::Ready).await;
        }
    }

    pub(super) async fn declare_interrupted(&mut self, reason: String) {
        let reason = harmless(&reason, MAX_REASON);
        // It has said how it is: the first receive implies nothing else.
        self.declared = Declared::Interrupted;
        self.peer.set_phase_if_up(Phase::Interrupted(reason.clone()));
        self.signals.notify(Notice::Interrupted(reason)).await;
    }

    pub(super) fn is_ready(&self) -> bool {
        self.declared != Declared::Nothing
    }

    /// The guest's number for an operation; the same names give the same number.
    pub(super) fn open(
        &mut self,
        contract: &str,
        operation: &str,
        provider: Option<&str>,
    ) -> Result<u32, Error> {
        if let Some(known) = self.targets.iter().position(|target| target.is(contract, operation, provider)) {
            return Ok(u32::try_from(known).unwrap_or(u32::MAX));
        }
        let (used, allowed) = (self.targets.len() as u64 + 1, self.sandbox.fixed.open_operations);
        if used > allowed {
            return Err(Error::LimitExceeded { name: "open-operations".into(), used, allowed });
        }
        let target = self.bus.open(&self.peer, contract, operation, provider)?;
        self.targets.push(target);
        Ok(u32::try_from(self.targets.len() - 1).unwrap_or(u32::MAX))
    }

    /// Sends to an opened operation in the way that `send` does, with the time that the options give.
    pub(super) fn send_to<T>(
        &mut self,
        number: u32,
        options: &abi::Options,
        send: impl FnOnce(&Bus, &Arc<Peer>, &mut Target, Term) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (timeout, parent) = self.times(options)?;
        let target = usize::try_from(number)
            .ok()
            .and_then(|place| self.targets.get_mut(place))
            .ok_or_else(|| Error::Invalid(format!("operation {number} was never opened")))?;
        let term = self.bus.term(target, timeout, parent);
        send(&self.bus, &self.peer, target, term)
    }

    /// How long something may take, and when the request ends that it is done for.
    pub(super) fn times(&self, options: &abi::Options) -> Result<(Option<Duration>, Option<Instant>), Error> {
        let timeout = match options.timeout_ms {
            Some(0) => return Err(Error::Invalid("a timeout of 0 ms".into())),
            timeout => timeout.map(|ms| Duration::from_millis(ms.into())),
        };
        let parent = match options.parent {
            None => None,
            Some(id) => Some(self.in_hand.deadline_of(MessageId(id)).ok_or_else(|| not_in_hand(id))?),
        };
        Ok((timeout, parent))
    }

    /// Fails if no further request may be sent without waiting.
    pub(super) fn check_under_way(&self) -> Result<(), Error> {
        let (used, allowed) = (self.under_way.len() as u64 + 1, self.in_flight);
        if used > allowed {
            Err(Error::LimitExceeded { name: "in-flight".into(), used, allowed })
        } else {
            Ok(())
        }
    }

    pub(super) fn sent(&mut self, waiter: Arc<Waiter>) -> u64 {
        let id = waiter.id();
        self.under_way.insert(id, waiter);
        self.show_in_flight();
        id.0
    }

    pub(super) fn cancel(&mut self, id: u64) {
        // Once its reply is on its way, it counts until that is received.
        if self.under_way.get(&MessageId(id)).is_some_and(|waiter| waiter.cancel()) {
            self.under_way.remove(&MessageId(id));
            self.show_in_flight();
        }
    }

    /// Shows how many requests are in hand and under way.
    pub(super) fn show_in_flight(&self) {
        self.usage.in_hand.set(self.in_hand.len() as u64);
        self.usage.under_way.set(self.under_way.len() as u64);
    }

    /// The guest comes back: it is through with what it was given one by one, or in order.
    fn begin_receive(&mut self, in_order: bool) {
        self.in_hand.begin_batch(in_order);
        self.jobs.begin_receive();
    }

    fn take_one(&mut self, task: Option<&Waker>) -> Next {
        if self.in_hand.is_full() && self.peer.take_abandoned_in_hand() {
            self.in_hand.forget_abandoned();
            self.show_in_flight();
        }
        // Said each time: the inbox forgets it when somebody gives up on a request.
        let look = Look { events: true, hold: Some(self.in_hand.is_full()), task };
        if self.jobs.takes { self.take_one_or_job(look) } else { self.take_from_inbox(&look) }
    }

    // Both apart from the above: what this finds room for on the stack is most of what an extension that has found
    // nothing has used of it.
    #[inline(never)]
    fn take_from_inbox(&mut self, look: &Look<'_>) -> Next {
        let taken = self.peer.take_with(look);
        self.next(taken)
    }

    #[inline(never)]
    fn take_one_or_job(&mut self, look: Look<'_>) -> Next {
        let jobs_first = self.is_turn_of_jobs;
        match self.peer.take_with(&Look { events: !jobs_first, ..look }) {
            Taken::Empty => {}
            Taken::Message(event @ Incoming::Event(_)) => {
                self.is_turn_of_jobs = true;
                return self.next(Taken::Message(event));
            }
            taken => return self.next(taken),
        }
        if let Some((job, sender)) = self.jobs.next() {
            self.in_hand.pass_job(MessageId(job.id));
            self.is_turn_of_jobs = false;
            self.met.insert(sender);
            return Next::Message(abi::Message::Job(job));
        }
        if !jobs_first {
            return Next::Empty;
        }
        let taken = self.peer.take_with(&look);
        self.next(taken)
    }

    fn next(&mut self, taken: Taken) -> Next {
        match taken {
            Taken::Stop => Next::Stop,
            Taken::Empty => Next::Empty,
            Taken::Message(message) => Next::Message(self.delivered(message)),
        }
    }

    /// The message as it goes into the guest, and what must be remembered of it.
    fn delivered(&mut self, message: Incoming) -> abi::Message {
        match message {
            Incoming::Request(request) => self.deliver_request(request),
            Incoming::Reply(Reply { id, outcome }) => {
                if let Some(waiter) = self.under_way.remove(&id) {
                    self.in_hand.pass_response(id, waiter.receiver());
                }
                self.show_in_flight();
                abi::Message::Response(abi::Response { id: id.0, outcome: outcome.map_err(Into::into) })
            }
            Incoming::Event(event) => self.deliver_event(event),
        }
    }

    /// Who has just been woken knows since when: to ask for the time is a good part of what a message takes.
    fn now(&self) -> Instant {
        self.sandbox.meter.woken().map_or_else(Instant::now, Instant::from)
    }

    fn deliver_request(&mut self, request: Request) -> abi::Message {
        let (id, sender, operation) = (request.answer.id().0, request.answer.sender(), request.number);
        self.met.insert(sender);
        let now = self.now();
        let remaining_ms = milliseconds(request.answer.deadline().saturating_duration_since(now));
        let waited_us = microseconds(now.saturating_duration_since(request.answer.sent()));
        let payload = self.in_hand.hold(request);
        self.show_in_flight();
        let sender = sender.0;
        abi::Message::Request(abi::Request { id, sender, operation, remaining_ms, waited_us, payload })
    }

    fn deliver_event(&mut self, event: Event) -> abi::Message {
        self.met.insert(event.published.sender);
        self.in_hand.pass(event.clone());
        let Event { subscription, names_one_topic, lost, retained, published } = event;
        abi::Message::Event(abi::Event {
            sender: published.sender.0,
            subscription,
            topic: (!names_one_topic).then(|| published.topic.to_string()),
            sequence: published.sequence,
            lost,
            retained,
            waited_us: microseconds(self.now().saturating_duration_since(published.at)),
            payload: published.payload.clone(),
        })
    }
}

/// What a look for a message found, as the guest gets it.
enum Next {
    Stop,
    Empty,
    Message(abi::Message),
}

impl Drop for State {
    fn drop(&mut self) {
        for waiter in self.under_way.values() {
            waiter.cancel();
        }
        self.usage.in_hand.set(0);
        self.usage.under_way.set(0);
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").field("peer", &self.peer.id()).finish_non_exhaustive()
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.sandbox.wasi()
    }
}

impl Guest for State {
    const WORLD: &'static str = "weir:iec/extension";

    fn add_to_linker(linker: &mut Linker<Self>) -> wasmtime::Result<()> {
        imports::add_to_linker(linker)
    }

    #[inline(always)]
    fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    #[inline(always)]
    fn sandbox_mut(&mut self) -> &mut Sandbox {
        &mut self.sandbox
    }
}

pub(super) fn not_in_hand(id: u64) -> Error {
    Error::Invalid(format!("request {id} is not in hand: never received, or answered already"))
}

/// In whole milliseconds, at least 1 while any time is left.
fn milliseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros().div_ceil(1000)).unwrap_or(u32::MAX)
}

pub(super) fn microseconds(duration: Duration) -> u32 {
    u32::try_from(duration.as_micros()).unwrap_or(u32::MAX)
}
