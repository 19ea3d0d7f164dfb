//! What an extension's patterns cost Main.

use super::*;

/// As many patterns as an extension may have, as long as they may be, that all match one topic.
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
    let publishing = bus.bus.publish(bus.main(), None, &topic, "".into(), (None, None)).unwrap();
    let (compared, took) = (publishing.compared, began.elapsed());
    drop(publishing);
    assert!(compared < 10 * 256, "{compared} nodes in {took:?}");
}
