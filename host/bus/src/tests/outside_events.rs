//! Events of programs outside Main and to them, in random order: each is seen in its place or counted as lost.

use proptest::prelude::*;

use super::*;

const TOPICS: [&str; 2] = ["t.0", "t.1"];

#[derive(Clone, Debug)]
enum Op {
    Publish { from: usize, topic: usize },
    Take(usize),
    Leave(usize),
    Subscribe { by: usize, topic: usize },
}

fn op() -> impl Strategy<Value = Op> {
    let (peer, topic) = (|| 0..3_usize, || 0..TOPICS.len());
    prop_oneof![
        8 => (peer(), topic()).prop_map(|(from, topic)| Op::Publish { from, topic }),
        4 => peer().prop_map(Op::Take),
        1 => peer().prop_map(Op::Leave),
        2 => (peer(), topic()).prop_map(|(by, topic)| Op::Subscribe { by, topic }),
    ]
}

/// The last program under a name, and how far it is in each topic.
struct Program {
    name: Arc<Peer>,
    session: Arc<Peer>,
    /// The subscription to each topic, and the last sequence that it has seen or lost.
    seen: [Option<(u32, u64)>; TOPICS.len()],
}

impl Program {
    fn take(&mut self) -> bool {
        let event = match self.session.take() {
            Taken::Empty => return false,
            Taken::Message(Incoming::Event(event)) => event,
            other => panic!("no event but {other:?}"),
        };
        let topic = TOPICS.iter().position(|topic| event.published.topic.as_str() == *topic).unwrap();
        let (subscription, last) = self.seen[topic].as_mut().expect("it has subscribed");
        assert_eq!((event.subscription, event.published.sequence), (*subscription, *last + event.lost + 1));
        *last = event.published.sequence;
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_program_sees_every_event_since_it_subscribed_in_order_or_as_lost_and_none_of_those_before_it(
        ops in prop::collection::vec(op(), 1..200),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let bus = TestBus::new();
            let mut sequences = [0; TOPICS.len()];
            let mut programs = ["app:a", "app:b", "app:c"].map(|name| {
                let name = bus.name(name, &[], &[]);
                Program { session: bus.arrive(&name, LIMITS), name, seen: [None; TOPICS.len()] }
            });
            for op in ops {
                match op {
                    Op::Publish { from, topic } => {
                        let hears = |program: &&Program| program.seen[topic].is_some();
                        let receivers = programs.iter().filter(hears).count();
                        let name = TOPICS[topic];
                        let receipt = bus.publish(&programs[from].session, None, name, "".into()).unwrap();
                        // The oldest give way.
                        assert_eq!(receipt.delivered as usize, receivers);
                        sequences[topic] += u64::from(receivers > 0 || sequences[topic] > 0);
                    }
                    Op::Take(by) => drop(programs[by].take()),
                    Op::Leave(by) => {
                        let program = &mut programs[by];
                        bus.leave(&program.session);
                        assert_eq!(program.session.inbox().depth(), (0, 0));
                        program.session = bus.arrive(&program.name, LIMITS);
                        program.seen = [None; TOPICS.len()];
                    }
                    Op::Subscribe { by, topic } => {
                        let program = &mut programs[by];
                        let own = bus.subscribe(&program.session, program.session.inbox(), TOPICS[topic]);
                        program.seen[topic].get_or_insert((own.unwrap().number(), sequences[topic]));
                    }
                }
            }
            programs.iter_mut().for_each(|program| while program.take() {});
            // The next event shows what was lost last.
            let last = bus.arrive(&programs[0].name, LIMITS);
            let next = TOPICS.map(|topic| bus.publish(&last, None, topic, "".into()).unwrap().delivered > 0);
            for program in &mut programs {
                while program.take() {}
                for (seen, (sequence, is_heard)) in program.seen.iter().zip(sequences.iter().zip(next)) {
                    assert!(seen.is_none_or(|(_, last)| is_heard && last == sequence + 1));
                }
            }
        });
    }
}
