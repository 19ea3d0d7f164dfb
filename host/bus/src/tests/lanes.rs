//! Random interleavings of publishing, taking, death and waiting, against a small model of the lanes.

use std::collections::VecDeque;

use proptest::prelude::*;
use weir_names::Policy;

use super::*;

const LANES: usize = 3;
const TOPICS: [&str; 2] = ["x", "y"];

/// The most messages in an inbox.
const INBOX: u32 = 6;

#[derive(Clone, Debug)]
enum Op {
    Publish {
        lane: usize,
        topic: usize,
        payload: usize,
    },
    /// A reply comes; it has room before all events.
    Reply(usize),
    Take,
    /// The instance takes this many and dies after reaching the first.
    Die(usize),
    GiveUp(usize),
    Unsubscribe(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..LANES, 0..TOPICS.len(), payload())
            .prop_map(|(lane, topic, payload)| Op::Publish { lane, topic, payload }),
        1 => payload().prop_map(Op::Reply),
        6 => Just(Op::Take),
        1 => (1..5_usize).prop_map(Op::Die),
        1 => (0..4_usize).prop_map(Op::GiveUp),
        1 => (0..LANES).prop_map(Op::Unsubscribe),
    ]
}

/// Bytes of a payload: mostly small next to the envelope, at times more than some inboxes hold.
fn payload() -> impl Strategy<Value = usize> {
    prop_oneof![3 => 8..32_usize, 2 => 32..400_usize, 1 => 400..1024_usize]
}

fn lane_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(u64::MAX), 150..3000_u64]
}

fn policy() -> impl Strategy<Value = Policy> {
    prop::sample::select(Policy::ALL.to_vec())
}

/// One event, by its overall number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Item {
    lane: usize,
    topic: usize,
    number: u64,
    lost: u64,
    /// Topic and envelope included.
    bytes: u64,
}

/// All lanes as one list, in order.
struct Model {
    policies: [Policy; LANES],
    capacity: [(u32, u64); LANES],
    /// The most bytes of the inbox.
    bytes: u64,
    /// Bytes of each waiting reply.
    replies: VecDeque<u64>,
    waiting: VecDeque<Item>,
    blocked: VecDeque<Item>,
    /// Events lost after the last of each lane.
    lost: [u64; LANES],
    /// Lanes, in order of subscription.
    order: Vec<usize>,
}

impl Model {
    fn has_room(&self, item: &Item) -> bool {
        let all = self.waiting.iter().map(|item| item.bytes).sum::<u64>();
        self.lane_has_room(item)
            && (self.waiting.is_empty()
                || self.waiting.len() < INBOX as usize && all + item.bytes <= self.beside_replies())
    }

    fn lane_has_room(&self, item: &Item) -> bool {
        let own = || self.waiting.iter().filter(|other| other.lane == item.lane);
        let (messages, bytes) = self.capacity[item.lane];
        let used = own().map(|item| item.bytes).sum::<u64>();
        own().next().is_none() || own().count() < messages as usize && used + item.bytes <= bytes
    }

    fn beside_replies(&self) -> u64 {
        self.bytes.saturating_sub(self.replies.iter().sum())
    }

    /// The next event of the lane shows the loss, even if it waits for room.
    fn lose(&mut self, place: usize) {
        let item = self.waiting.remove(place).unwrap();
        self.lose_before(place, 0, item);
    }

    fn lose_before(&mut self, waiting: usize, blocked: usize, item: Item) {
        let next = self.waiting.iter_mut().skip(waiting).chain(self.blocked.iter_mut().skip(blocked));
        let next = next.into_iter().find(|next| next.lane == item.lane);
        *next.map_or(&mut self.lost[item.lane], |next| &mut next.lost) += item.lost + 1;
    }

    fn lose_before_all(&mut self, item: Item) {
        self.lose_before(0, 0, item);
    }

    /// Whether there is room once all that may give way does.
    fn can_make_room(&self, coming: &Item) -> bool {
        let may_go = |item: &&Item| matches!(self.policies[item.lane], Policy::DropOldest | Policy::Latest);
        let stays = || self.waiting.iter().filter(|item| !may_go(item));
        let kept: u64 = stays().map(|item| item.bytes).sum();
        stays().next().is_none()
            || stays().count() < INBOX as usize && kept + coming.bytes <= self.beside_replies()
    }

    fn publish(&mut self, mut item: Item) -> Receipt {
        let policy = self.policies[item.lane];
        let mut receipt = Receipt::default();
        if matches!(policy, Policy::DropOldest | Policy::Latest) && !self.can_make_room(&item) {
            self.lost[item.lane] += 1;
            receipt.shed = 1;
            return receipt;
        }
        let same = |other: &Item| other.lane == item.lane && other.topic == item.topic;
        if policy == Policy::Latest
            && let Some(place) = self.waiting.iter().position(same)
        {
            self.lose(place);
            receipt.shed += 1;
        }
        loop {
            let queues = self.blocked.iter().any(|other| other.lane == item.lane);
            if self.has_room(&item) && !queues {
                item.lost = std::mem::take(&mut self.lost[item.lane]);
                self.waiting.push_back(item);
                receipt.delivered = 1;
                return receipt;
            }
            match policy {
                Policy::DropOldest | Policy::Latest => {
                    let own_is_full = !self.lane_has_room(&item);
                    let gives_way = |other: &Item| match own_is_full {
                        true => other.lane == item.lane,
                        false => matches!(self.policies[other.lane], Policy::DropOldest | Policy::Latest),
                    };
                    receipt.shed += 1;
                    match self.waiting.iter().position(gives_way) {
                        Some(place) => self.lose(place),
                        None => {
                            self.lost[item.lane] += 1;
                            return receipt;
                        }
                    }
                }
                Policy::DropNewest => {
                    self.lost[item.lane] += 1;
                    receipt.shed += 1;
                    return receipt;
                }
                Policy::Reject => {
                    self.lost[item.lane] += 1;
                    receipt.refused += 1;
                    return receipt;
                }
                Policy::Block => {
                    item.lost = std::mem::take(&mut self.lost[item.lane]);
                    self.blocked.push_back(item);
                    return receipt;
                }
            }
        }
    }

    /// Lets in events that wait for room, lane by lane.
    fn admit(&mut self) {
        for lane in self.order.clone() {
            while let Some(place) = self.blocked.iter().position(|item| item.lane == lane)
                && self.has_room(&self.blocked[place])
            {
                let item = self.blocked.remove(place).unwrap();
                self.waiting.push_back(item);
            }
        }
    }

    /// The oldest events make room, first of those that may give way.
    fn reply(&mut self, bytes: u64) {
        self.replies.push_back(bytes);
        while self.waiting.iter().map(|item| item.bytes).sum::<u64>() > self.beside_replies() {
            let may_go =
                |item: &Item| matches!(self.policies[item.lane], Policy::DropOldest | Policy::Latest);
            let place = self.waiting.iter().position(may_go).unwrap_or_default();
            self.lose(place);
        }
    }

    fn take_reply(&mut self) -> bool {
        let has_one = self.replies.pop_front().is_some();
        self.admit();
        has_one
    }

    fn take(&mut self) -> Option<Item> {
        let item = self.waiting.pop_front();
        self.admit();
        item
    }
}

/// The lanes beside their model.
struct World {
    bus: TestBus,
    peer: Arc<Peer>,
    provider: Arc<Peer>,
    model: Model,
    lanes: Vec<Arc<Subscription>>,
    blocked: Vec<(u64, Publishing)>,
    published: u64,
}

impl World {
    fn new(policies: [Policy; LANES], capacity: [(u32, u64); LANES], bytes: u64) -> Self {
        let bus = TestBus::new();
        let limits = PeerLimits { inbox: InboxLimits { messages: INBOX, bytes }, ..LIMITS };
        let peer = bus.add_with("a", limits, &[], &["p@1"]);
        let provider = bus.ready("p", &["p@1"], &[]);
        start(&peer, &[]);
        let (waiting, blocked, lost) = (VecDeque::new(), VecDeque::new(), [0; LANES]);
        let replies = VecDeque::new();
        let order = (0..LANES).collect();
        let model = Model { policies, capacity, bytes, replies, waiting, blocked, lost, order };
        let (lanes, blocked) = (Vec::new(), Vec::new());
        let mut world = Self { bus, peer, provider, model, lanes, blocked, published: 0 };
        world.lanes = (0..LANES).map(|lane| world.subscribe(lane)).collect();
        world
    }

    fn subscribe(&self, lane: usize) -> Arc<Subscription> {
        let Model { policies, capacity, .. } = &self.model;
        let (messages, bytes) = capacity[lane];
        let delivery = LaneSettings { policy: policies[lane], messages, bytes };
        let pattern = format!("lane{lane}.*");
        self.bus.bus.subscribe(&self.peer, self.peer.inbox(), &pattern, Some(delivery)).unwrap()
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Publish { lane, topic, payload } => self.publish(lane, topic, payload),
            Op::Reply(payload) => self.reply(payload),
            Op::Take if !self.model.replies.is_empty() => self.take_reply(),
            Op::Take => {
                let expected = self.model.take();
                let taken = self.take();
                self.check_same(taken.as_ref(), expected);
            }
            Op::Die(taken) => self.die(taken),
            Op::GiveUp(place) => {
                if place < self.blocked.len() {
                    let (number, publishing) = self.blocked.remove(place);
                    drop(publishing);
                    if let Some(place) = self.model.blocked.iter().position(|item| item.number == number) {
                        let item = self.model.blocked.remove(place).unwrap();
                        let all = self.model.waiting.len();
                        self.model.lose_before(all, place, item);
                    }
                    // The next in line may be smaller, and a reply may have driven out more than it needs.
                    self.model.admit();
                }
            }
            Op::Unsubscribe(lane) => {
                self.bus.unsubscribe(&self.peer, self.lanes[lane].number()).unwrap();
                self.model.waiting.retain(|item| item.lane != lane);
                self.model.blocked.retain(|item| item.lane != lane);
                self.model.lost[lane] = 0;
                self.model.admit();
                self.model.order.retain(|other| *other != lane);
                self.model.order.push(lane);
                self.lanes[lane] = self.subscribe(lane);
            }
        }
        self.check();
    }

    /// Only replies that fit by themselves and beside others.
    fn reply(&mut self, payload: usize) {
        let bytes = 128 + payload as u64;
        if bytes > self.model.beside_replies() {
            return;
        }
        self.bus.send(&self.peer, "p@1", "").unwrap();
        take_request(&self.provider).responder.give(Ok(vec![0; payload].into()));
        self.model.reply(bytes);
    }

    fn take_reply(&mut self) {
        take_reply(&self.peer).outcome.unwrap();
        assert!(self.model.take_reply());
    }

    fn publish(&mut self, lane: usize, topic: usize, payload: usize) {
        self.published += 1;
        let name = format!("lane{lane}.{}", TOPICS[topic]);
        let payload = Bytes::from(format!("{:0payload$}", self.published));
        let bytes = 128 + (name.len() + payload.len()) as u64;
        let item = Item { lane, topic, number: self.published, lost: 0, bytes };
        let publishing =
            self.bus.bus.publish(self.bus.main(), None, &name, payload, (None, Parent::default())).unwrap();
        let expected = self.model.publish(item);
        if self.model.blocked.back().is_some_and(|last| last.number == item.number) {
            self.blocked.push((item.number, publishing));
        } else {
            assert_eq!(publishing.receipt().now_or_never(), Some(Ok(expected)));
        }
    }

    fn take(&self) -> Option<Event> {
        match self.peer.take() {
            Taken::Message(Incoming::Event(event)) => Some(event),
            Taken::Empty => None,
            other => panic!("{other:?}"),
        }
    }

    /// As an instance that takes a batch of events and dies after reaching the first.
    fn die(&mut self, taken: usize) {
        while !self.model.replies.is_empty() {
            self.take_reply();
        }
        let mut events = Vec::new();
        let mut items = Vec::new();
        for _ in 0..taken {
            let Some(event) = self.take() else { break };
            let item = self.model.take().unwrap();
            self.check_same(Some(&event), Some(item));
            events.push(event);
            items.push(item);
        }
        if events.is_empty() {
            return;
        }
        let reached = events.remove(0);
        let lost = [(reached.subscription, reached.lost + 1)];
        self.peer.give_back(events.into_iter().map(Incoming::Event).collect(), &lost);
        let first = items.remove(0);
        for item in items.into_iter().rev() {
            let is_newer = |other: &Item| (other.lane, other.topic) == (item.lane, item.topic);
            if self.model.policies[item.lane] == Policy::Latest && self.model.waiting.iter().any(is_newer) {
                self.model.lose_before_all(item);
            } else {
                self.model.waiting.push_front(item);
            }
        }
        self.model.lose_before_all(first);
    }

    fn check_same(&self, event: Option<&Event>, item: Option<Item>) {
        let number = |event: &Event| str::from_utf8(&event.published.payload).unwrap().parse().unwrap();
        let shown = event.map(|event| (number(event), event.lost, event.published.bytes()));
        assert_eq!(shown, item.map(|item| (item.number, item.lost, item.bytes)));
    }

    fn check(&self) {
        let Model { waiting, replies, .. } = &self.model;
        let events: u64 = waiting.iter().map(|item| item.bytes).sum();
        let (messages, bytes) =
            ((waiting.len() + replies.len()) as u64, events + replies.iter().sum::<u64>());
        assert_eq!(self.peer.inbox().depth(), (messages, bytes));
        for (lane, subscription) in self.lanes.iter().enumerate() {
            let (_, stats) = self.peer.inbox().events().stats(subscription.number());
            let blocked = self.model.blocked.iter().filter(|item| item.lane == lane).count();
            let own = || self.model.waiting.iter().filter(|item| item.lane == lane);
            let bytes = own().map(|item| item.bytes).sum();
            assert_eq!(
                (stats.waiting, stats.bytes, stats.blocked),
                (own().count() as u64, bytes, blocked as u64)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn lanes_hold_lose_and_report_what_the_model_says(
        policies in [policy(), policy(), policy()],
        messages in [1..5_u32, 1..5_u32, 1..9_u32],
        bytes in [lane_bytes(), lane_bytes(), lane_bytes()],
        inbox in 1200..6000_u64,
        ops in prop::collection::vec(op(), 1..150),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let capacity = [0, 1, 2].map(|lane| (messages[lane], bytes[lane]));
            let mut world = World::new(policies, capacity, inbox);
            for op in ops {
                world.apply(&op);
            }
            while !world.model.replies.is_empty() {
                world.take_reply();
            }
            while let Some(expected) = world.model.take() {
                let event = world.take();
                world.check_same(event.as_ref(), Some(expected));
            }
            world.blocked.clear();
        });
    }
}
