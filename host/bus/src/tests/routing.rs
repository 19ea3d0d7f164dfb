//! Which peer answers: the named one, the owner, Main's own handler, or none, with an error at once.

use super::*;

fn route(bus: &TestBus, contract: &str, provider: Option<&str>) -> Result<String, Error> {
    bus.owners().find(&contract.parse().unwrap(), provider).map(|(peer, _)| peer.name().to_owned())
}

#[tokio::test(start_paused = true)]
async fn the_owner_answers_before_mains_own_handler_and_a_named_peer_before_both() {
    let bus = TestBus::new();
    for contract in ["both@1", "main.only@1"] {
        bus.serve_from_main(&contract.parse().unwrap(), &["do".to_owned()]).unwrap();
    }
    bus.ready("owner", &["both@1"], &[]);
    assert_eq!(route(&bus, "both@1", None).unwrap(), "owner");
    assert_eq!(route(&bus, "both@1", Some("owner")).unwrap(), "owner");
    assert_eq!(route(&bus, "both@1", Some("main")).unwrap(), "main");
    assert_eq!(route(&bus, "main.only@1", None).unwrap(), "main");
}

#[tokio::test(start_paused = true)]
async fn who_does_not_fulfil_a_contract_is_no_provider_of_it() {
    let bus = TestBus::new();
    bus.ready("owner", &["c@1"], &[]);
    bus.ready("other", &["d@1"], &[]);
    for name in ["other", "main", "nobody", ""] {
        let refused = Error::NoProvider(format!("`{name}` does not fulfil `c@1`"));
        assert_eq!(route(&bus, "c@1", Some(name)).unwrap_err(), refused);
    }
}

#[tokio::test(start_paused = true)]
async fn a_contract_that_nobody_owns_is_unknown_at_once() {
    let bus = TestBus::new();
    let caller = bus.ready("a", &[], &["c@1"]);
    for provider in [None, Some("a"), Some("main")] {
        assert_eq!(
            bus.open(&caller, "c@1", "do", provider).unwrap_err(),
            Error::UnknownContract("c@1".to_owned())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn main_serves_and_calls_as_any_other_peer() {
    let bus = TestBus::new();
    bus.serve_from_main(&"m@1".parse().unwrap(), &["do".to_owned()]).unwrap();
    let caller = bus.ready("a", &[], &["m@1"]);
    let main = bus.main();
    for peer in [&caller, main] {
        let call = bus.call(peer, "m@1", "").unwrap();
        let request = take_request(main);
        assert_eq!(request.responder.sender(), peer.id());
        request.responder.give(ok("main"));
        assert_eq!(call.answer().await, ok("main"));
    }
}

#[tokio::test(start_paused = true)]
async fn peers_are_known_by_number() {
    let bus = TestBus::new();
    let peer = bus.ready("a", &[], &[]);
    assert_eq!(bus.peer(PeerId::MAIN).unwrap().name(), "main");
    assert_eq!(bus.peer(peer.id()).unwrap().name(), "a");
    assert!(bus.peer(PeerId(2)).is_none());
    assert!(bus.peer(PeerId(u32::MAX)).is_none());
}
