//! Grants: anything not granted is refused, with its name and the missing key.

use super::*;

fn narrow(bus: &TestBus) -> Arc<Peer> {
    let access = Access {
        fulfills: vec!["mine@1".parse().unwrap()],
        calls: vec!["theirs@1".parse().unwrap()],
        publishes: vec!["out.*".parse().unwrap()],
        subscribes: vec![("in.>".parse().unwrap(), LaneSettings::default())],
        ..Access::default()
    };
    let peer = bus.add_peer(&"a".parse().unwrap(), LIMITS, access, None);
    peer.begin_instance();
    peer
}

#[tokio::test(start_paused = true)]
async fn only_what_fulfills_lists_is_served() {
    let bus = TestBus::new();
    let peer = narrow(&bus);
    let operations = ["do".to_owned()];
    assert_eq!(peer.serve("mine@1", &operations), Ok(0));
    assert_eq!(
        denied(peer.serve("other@1", &operations)),
        "`a` may not serve `other@1`; `fulfills` would grant it"
    );
}

#[tokio::test(start_paused = true)]
async fn only_what_requires_or_wants_lists_is_called_whether_or_not_it_exists() {
    let bus = TestBus::new();
    let peer = narrow(&bus);
    bus.ready("b", &["other@1"], &[]);
    for contract in ["other@1", "nobody@1", "mine@1"] {
        assert_eq!(
            denied(bus.open(&peer, contract, "do", None)),
            format!("`a` may not call `{contract}`; `requires` or `wants` would grant it")
        );
    }
    assert_eq!(
        bus.open(&peer, "theirs@1", "do", None).unwrap_err(),
        Error::UnknownContract("theirs@1".to_owned())
    );
}

#[tokio::test(start_paused = true)]
async fn only_under_granted_topics_is_published() {
    let bus = TestBus::new();
    let peer = narrow(&bus);
    assert_eq!(bus.publish(&peer, None, "out.a", Bytes::new()), Ok(Receipt::default()));
    for topic in ["out.a.b", "out", "in.a"] {
        for to in [None, Some("a")] {
            assert_eq!(
                denied(bus.publish(&peer, to, topic, Bytes::new())),
                format!("`a` may not publish `{topic}`; `publishes` would grant it")
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_subscription_wider_than_its_grant_is_refused() {
    let bus = TestBus::new();
    let peer = narrow(&bus);
    for pattern in ["in.a", "in.*", "in.*.b", "in.>"] {
        bus.subscribe(&peer, peer.inbox(), pattern).unwrap();
    }
    for pattern in [">", "*.a", "in", "out.a"] {
        assert_eq!(
            denied(bus.subscribe(&peer, peer.inbox(), pattern)),
            format!("`a` may not subscribe to `{pattern}`; `subscribes` would grant it")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn names_that_make_no_sense_are_invalid_everywhere() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &["c@1"], &["c@1"]);
    let invalid = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Invalid(_))), "{result:?}");
    for name in ["", "c", "C@1", "c@1\0", "../c@1"] {
        invalid(bus.open(&peer, name, "do", None).map(drop));
        invalid(peer.serve(name, &["do".to_owned()]).map(drop));
    }
    for topic in ["", "a..b", "a.*", ">", "a b"] {
        invalid(bus.publish(&peer, None, topic, Bytes::new()).map(drop));
    }
    for pattern in ["", "a.>.b", "a*", "."] {
        invalid(bus.subscribe(&peer, peer.inbox(), pattern).map(drop));
    }
    invalid(bus.open(&peer, "c@1", "do it", None).map(drop));
}

#[tokio::test(start_paused = true)]
async fn a_contract_is_served_once_with_1_to_256_operations_each_named_once() {
    let bus = TestBus::new();
    let peer = bus.add("a", &["c@1", "d@1"], &[]);
    peer.begin_instance();
    let names = |count: usize| (0..count).map(|number| format!("op-{number}")).collect::<Vec<_>>();
    let invalid =
        |operations: &[String]| assert!(matches!(peer.serve("c@1", operations), Err(Error::Invalid(_))));
    invalid(&[]);
    invalid(&names(257));
    invalid(&["do".to_owned(), "do".to_owned()]);
    invalid(&["do".to_owned(), "not well formed".to_owned()]);
    // The refused ones left nothing behind.
    assert_eq!(peer.serve("c@1", &names(256)), Ok(0));
    assert_eq!(peer.serve("d@1", &names(1)), Ok(256));
    invalid(&names(1));
}
