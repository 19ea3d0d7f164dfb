//! The last value of a topic, across instances and with full lanes.

use weir_names::Policy;

use super::*;

fn publish(bus: &TestBus, payload: &'static str) {
    bus.publish(bus.main(), None, "context", payload.into()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_is_to_take_over_gets_the_last_value_itself() {
    let bus = TestBus::new();
    bus.retain(["context".parse().unwrap()]);
    let old = bus.ready("a", &[], &[]);
    bus.subscribe(&old, old.inbox(), "context").unwrap();
    publish(&bus, "1");
    take_event(old.inbox());
    let grants = vec![(">".parse().unwrap(), LaneSettings::default())];
    let new = old.renewed(LIMITS, Access { subscribes: grants, ..Access::default() });
    new.begin_beside();
    bus.subscribe(&new, new.inbox(), "context").unwrap();
    let of_the_old = old.take();
    bus.replace(&new, true);
    new.become_current();
    let of_the_new = new.take();
    let got = (matches!(of_the_old, Taken::Message(_)), matches!(of_the_new, Taken::Message(_)));
    assert_eq!(got, (false, true), "the old one has had it, the new one has not");
}

#[tokio::test(start_paused = true)]
async fn a_last_value_that_waits_for_room_is_not_shown_as_lost() {
    let bus = TestBus::new();
    bus.retain(["context".parse().unwrap()]);
    let peer = bus.ready("a", &[], &[]);
    let block = LaneSettings { policy: Policy::Block, messages: 1, bytes: u64::MAX };
    bus.bus.subscribe(&peer, peer.inbox(), "context", Some(block)).unwrap();
    publish(&bus, "1");
    let waiting =
        bus.bus.publish(bus.main(), None, "context", "2".into(), (None, Parent::default())).unwrap();
    peer.begin_instance();
    bus.bus.subscribe(&peer, peer.inbox(), "context", Some(block)).unwrap();
    let events = drain(peer.inbox());
    assert_eq!(waiting.receipt().await.unwrap().delivered, 1);
    assert_eq!(events, [(1, 0, "1".into()), (2, 0, "2".into())], "both came, and none was lost");
}
