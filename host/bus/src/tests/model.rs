//! Random sequences of operations, against a model of their outcomes.

mod reference;

use futures_util::FutureExt;
use proptest::prelude::*;

use self::reference::{Found, Life, Model, ModelPeer, Modelled};
use super::*;

const PEERS: usize = 3;
const ROOM: usize = 4;

#[derive(Clone, Debug)]
enum Op {
    Request { from: usize, to: usize, ms: u64, slot: bool },
    GiveUp(usize),
    Take(usize),
    Answer { by: usize, index: usize },
    Discard { by: usize, index: usize },
    Advance(u64),
    Stop(usize),
    End { peer: usize },
    Start(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let peer = || 0..PEERS;
    let index = || 0..64_usize;
    prop_oneof![
        6 => (peer(), peer(), 1..1000_u64, any::<bool>())
            .prop_map(|(from, to, ms, slot)| Op::Request { from, to, ms, slot }),
        1 => index().prop_map(Op::GiveUp),
        6 => peer().prop_map(Op::Take),
        4 => (peer(), index()).prop_map(|(by, index)| Op::Answer { by, index }),
        1 => (peer(), index()).prop_map(|(by, index)| Op::Discard { by, index }),
        1 => (1..400_u64).prop_map(Op::Advance),
        1 => peer().prop_map(Op::Stop),
        1 => peer().prop_map(|peer| Op::End { peer }),
        2 => peer().prop_map(Op::Start),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Each of the peers is an extension, or a name of programs.
    #[test]
    fn every_request_ends_once_and_as_the_model_says(
        outside in any::<[bool; PEERS]>(),
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(outside);
            for op in ops {
                world.apply(op).await;
                assert_eq!(world.bus.waiters(), world.model.live());
            }
            world.finish().await;
        });
    }
}

/// The bus beside its model.
struct World {
    bus: TestBus,
    /// Extensions, and the names of programs.
    owners: Vec<Arc<Peer>>,
    /// Extensions, and the programs that came last under their names.
    peers: Vec<Arc<Peer>>,
    model: Model,
    /// The real side of each request of the model.
    waiting: Vec<Real>,
    in_hand: Vec<Vec<(usize, Request)>>,
}

enum Real {
    Slot(Option<PendingCall>),
    Lane(Arc<Waiter>),
}

impl World {
    fn new(outside: [bool; PEERS]) -> Self {
        let bus = TestBus::new();
        let contracts: Vec<_> = (0..PEERS).map(contract).collect();
        let calls: Vec<&str> = contracts.iter().map(String::as_str).collect();
        let model = Model { peers: outside.map(ModelPeer::new), ..Model::default() };
        let add = |index: usize| match outside[index] {
            true => bus.name(&model.name(index), &[calls[index]], &calls),
            false => bus.add_with(&model.name(index), limits(), &[calls[index]], &calls),
        };
        let owners: Vec<_> = (0..PEERS).map(add).collect();
        let in_hand = (0..PEERS).map(|_| Vec::new()).collect();
        Self { bus, peers: owners.clone(), owners, model, waiting: Vec::new(), in_hand }
    }

    async fn apply(&mut self, op: Op) {
        match op {
            Op::Request { from, to, ms, slot } => self.request(from, to, ms, slot),
            Op::GiveUp(index) => self.give_up(index),
            Op::Take(peer) => self.take(peer),
            Op::Answer { by, index } => self.answer(by, index, true),
            Op::Discard { by, index } => self.answer(by, index, false),
            Op::Advance(ms) => {
                self.model.advance(ms);
                tokio::time::advance(Duration::from_millis(ms)).await;
            }
            // A program that is to end is ended.
            Op::Stop(peer) if self.model.peers[peer].is_outside => {}
            Op::Stop(peer) if self.model.peers[peer].life == Life::Up => {
                self.model.peers[peer].life = Life::Draining;
                self.peers[peer].set_phase(Phase::Draining);
                self.peers[peer].stop();
            }
            Op::End { peer } if self.model.peers[peer].life != Life::Down => self.end(peer),
            Op::Start(peer) if self.model.peers[peer].life == Life::Down => self.start(peer),
            Op::Stop(_) | Op::End { .. } | Op::Start(_) => {}
        }
        // Lets the deadlines' task find what is due.
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }

    fn request(&mut self, from: usize, to: usize, ms: u64, slot: bool) {
        if self.model.peers[from].life == Life::Down {
            return;
        }
        let number = self.waiting.len();
        let payload = Bytes::from(number.to_string());
        let caller = &self.peers[from];
        let mut target = self.bus.open(caller, &contract(to), "do", None).unwrap();
        let now = Instant::now();
        let term = Term::new(now, now + Duration::from_millis(ms));
        let sent = match slot {
            true => self
                .bus
                .call_to(caller, &mut target, payload, term.clone(), false)
                .map(|call| Real::Slot(Some(call))),
            false => self
                .bus
                .bus
                .send(caller, &mut target, payload, term.clone())
                .map(|(waiter, _)| Real::Lane(waiter)),
        };
        match (sent, self.model.refusal(from, to, slot)) {
            (Ok(real), None) => {
                self.waiting.push(real);
                let deadline_ms = self.model.now_ms + ms;
                let (ended, outcome) = (false, None);
                self.model.requests.push(Modelled { from, to, deadline_ms, slot, ended, outcome });
                self.model.peers[to].waiting.push_back(number);
                self.model.peers[from].expected += usize::from(!slot);
            }
            (Err(error), Some(expected)) => assert_eq!(error, expected),
            (sent, expected) => panic!("{:?}, and the model says {expected:?}", sent.err()),
        }
    }

    fn give_up(&mut self, index: usize) {
        let Some(number) = pick(self.waiting.len(), index) else { return };
        if self.model.requests[number].ended {
            return;
        }
        self.model.end(number, None);
        match &mut self.waiting[number] {
            Real::Slot(call) => drop(call.take()),
            Real::Lane(waiter) => drop(waiter.cancel()),
        }
    }

    fn take(&mut self, peer: usize) {
        if self.model.peers[peer].life == Life::Down {
            return;
        }
        let found = match self.peers[peer].take() {
            Taken::Stop => Found::Stop,
            Taken::Empty => Found::Empty,
            Taken::Message(Incoming::Event(_)) => panic!("nobody publishes here"),
            Taken::Message(Incoming::Reply(reply)) => {
                let number = self.waiting.iter().position(|real| real.id() == Some(reply.id)).unwrap();
                assert_eq!(Some(reply.outcome), self.model.requests[number].outcome);
                Found::Reply(number)
            }
            Taken::Message(Incoming::Request(request)) => {
                let number: usize = std::str::from_utf8(&request.payload).unwrap().parse().unwrap();
                let from = self.model.requests[number].from;
                assert_eq!(request.responder.sender(), self.owners[from].id());
                self.in_hand[peer].push((number, request));
                Found::Request(number)
            }
        };
        assert_eq!(found, self.model.take(peer));
    }

    fn answer(&mut self, by: usize, index: usize, answers: bool) {
        let Some(place) = pick(self.in_hand[by].len(), index) else { return };
        let (number, request) = self.in_hand[by].remove(place);
        self.model.peers[by].in_hand.retain(|&held| held != number);
        if answers {
            let outcome = Ok(request.payload.clone());
            assert_eq!(request.responder.give(outcome.clone()), self.model.end(number, Some(outcome)));
        } else {
            drop(request);
            self.model.end(number, Some(Err(Error::PeerGone)));
        }
    }

    /// The instance dies; one asked to stop is not expected back. A program leaves.
    fn end(&mut self, peer: usize) {
        let is_outside = self.model.peers[peer].is_outside;
        for (number, request) in std::mem::take(&mut self.in_hand[peer]) {
            let outcome = Err(if is_outside { Error::PeerGone } else { Error::Trapped });
            match is_outside {
                true => drop(request),
                false => drop(request.responder.give(outcome.clone())),
            }
            self.model.end(number, Some(outcome));
        }
        self.model.peers[peer].in_hand.clear();
        let own = (0..self.waiting.len()).filter(|&number| self.model.requests[number].from == peer);
        for number in own.collect::<Vec<_>>() {
            self.give_up(number);
        }
        let is_last = std::mem::take(&mut self.model.peers[peer].life) == Life::Draining;
        match is_outside {
            true => self.bus.leave(&self.peers[peer]),
            false => self.peers[peer].set_phase(Phase::Down),
        }
        if is_last {
            self.peers[peer].inbox().clear(Seat::FIRST);
        }
        if is_last || is_outside {
            for number in std::mem::take(&mut self.model.peers[peer].waiting) {
                self.model.end(number, Some(Err(Error::PeerGone)));
            }
        }
    }

    fn start(&mut self, peer: usize) {
        let contract = contract(peer);
        match self.model.peers[peer].is_outside {
            true => self.peers[peer] = self.bus.arrive_with(&self.owners[peer], limits(), &[&contract]),
            false => start(&self.peers[peer], &[&contract]),
        }
        let model = &mut self.model.peers[peer];
        (model.life, model.told, model.expected) = (Life::Up, false, 0);
        model.replies.clear();
    }

    /// Every deadline passes; then each caller has the answer of the model.
    async fn finish(mut self) {
        self.apply(Op::Advance(1000)).await;
        assert_eq!(self.bus.waiters(), 0);
        for peer in 0..PEERS {
            while self.model.peers[peer].life != Life::Down && !self.model.peers[peer].replies.is_empty() {
                self.take(peer);
            }
        }
        for (real, modelled) in self.waiting.into_iter().zip(self.model.requests) {
            if let Real::Slot(Some(call)) = real {
                assert_eq!(call.answer().now_or_never(), modelled.outcome);
            }
        }
    }
}

impl Real {
    fn id(&self) -> Option<MessageId> {
        match self {
            Self::Slot(_) => None,
            Self::Lane(waiter) => Some(waiter.id()),
        }
    }
}

fn limits() -> PeerLimits {
    let messages = u32::try_from(ROOM).unwrap();
    PeerLimits { inbox: InboxLimits { messages, bytes: 1 << 20 }, ..LIMITS }
}

fn contract(index: usize) -> String {
    format!("c{index}@1")
}

fn pick(len: usize, index: usize) -> Option<usize> {
    index.checked_rem(len)
}
