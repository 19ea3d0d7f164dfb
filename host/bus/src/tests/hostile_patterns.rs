//! The cost of an extension's patterns to Main.

use super::*;

/// As many and as long patterns as allowed, all matching one topic.
fn patterns() -> impl Iterator<Item = String> {
    (0..256_u32).map(|number| {
        let segment = |place: u32| if place < 8 && number >> place & 1 == 1 { "*" } else { "a" };
        (0..16).map(segment).collect::<Vec<_>>().join(".")
    })
}

#[tokio::test(start_paused = true)]
async fn one_extension_can_make_a_publish_visit_few_more_nodes_than_it_has_subscriptions() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    for pattern in patterns() {
        bus.subscribe(&peer, peer.inbox(), &pattern).unwrap();
    }
    let topic = vec!["a"; 16].join(".");
    let began = std::time::Instant::now();
    let publishing = bus.bus.publish(bus.main(), None, &topic, "".into(), (None, Parent::default())).unwrap();
    let (compared, took) = (publishing.compared, began.elapsed());
    drop(publishing);
    assert!(compared < 10 * 256, "{compared} nodes in {took:?}");
}

#[tokio::test(start_paused = true)]
async fn subscriptions_that_do_not_match_make_a_publish_visit_no_more_nodes() {
    let bus = TestBus::new();
    let limits = PeerLimits { subscriptions: u64::MAX, ..LIMITS };
    let (peer, other) = (bus.ready("a", &[], &[]), bus.add_with("b", limits, &[], &[]));
    start(&other, &[]);
    for pattern in ["a.b.c", "a.*.c", "*.b.>", ">"] {
        bus.subscribe(&peer, peer.inbox(), pattern).unwrap();
    }
    let mut subscribed = 0;
    let mut visited_with = |others: u32| {
        // Beside the topic at each of its segments, behind it, and before its end; exact and not.
        while subscribed < others {
            let number = subscribed;
            let pattern = match number % 8 {
                0 => format!("a.b.x{number}"),
                1 => format!("a.x{number}.c"),
                2 => format!("x{number}.b.c"),
                3 => format!("a.b.c.x{number}"),
                4 => format!("*.x{number}.c"),
                5 => format!("x{number}.*.>"),
                6 => format!("*.*.x{number}"),
                _ => format!("a.x{number}.>"),
            };
            bus.subscribe(&other, other.inbox(), &pattern).unwrap();
            subscribed += 1;
        }
        let publishing =
            bus.bus.publish(bus.main(), None, "a.b.c", "".into(), (None, Parent::default())).unwrap();
        assert_eq!(publishing.deliveries(), 4, "those of `b` do not match");
        publishing.compared
    };
    let few = visited_with(16);
    assert_eq!(visited_with(10_000), few);
}
