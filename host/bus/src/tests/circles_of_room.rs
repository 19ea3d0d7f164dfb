//! Circles of waits for room: every real one is found, and no other.

use weir_names::Policy;

use super::*;

fn block(bus: &TestBus, peer: &Arc<Peer>, pattern: &str, messages: u32) {
    let delivery = LaneSettings { policy: Policy::Block, messages, bytes: u64::MAX };
    bus.bus.subscribe(peer, peer.inbox(), pattern, Some(delivery)).unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_fills_its_own_inbox_with_the_first_of_two_subscriptions_does_not_wait_for_itself() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    block(&bus, &peer, "t.*", 100);
    block(&bus, &peer, "t.x", 100);
    // Room for one more.
    for number in 0..7 {
        let topic = format!("t.{number}y");
        bus.publish(bus.main(), None, &topic, "".into()).unwrap();
    }
    let publishing = bus.bus.publish(&peer, None, "t.x", "".into(), (None, Parent::default()));
    let outcome = publishing.map(|publishing| publishing.receipt().now_or_never());
    assert!(!matches!(outcome, Ok(None)), "it waits for itself, to its deadline");
}

#[tokio::test(start_paused = true)]
async fn who_has_made_room_is_not_waited_for_any_more() {
    let bus = TestBus::new();
    let publisher = bus.ready("p", &["p@1"], &[]);
    let (quick, slow) = (bus.ready("quick", &[], &["p@1"]), bus.ready("slow", &[], &[]));
    for peer in [&quick, &slow] {
        block(&bus, peer, "t", 1);
    }
    bus.publish(bus.main(), None, "t", "".into()).unwrap();
    let waits = bus.bus.publish(&publisher, None, "t", "".into(), (None, Parent::default())).unwrap();
    take_event(quick.inbox());
    let mut target = bus.open(&quick, "p@1", "do", None).unwrap();
    let deadline = bus.term(&target, None, Parent::default());
    let call = bus.call_to(&quick, &mut target, Bytes::new(), deadline.clone(), true).map(drop);
    drop(waits);
    assert_eq!(call, Ok(()), "`p` waits for `slow` alone, which waits for nobody");
}
