//! What programs outside Main may do, also when that changes while they run.

use weir_names::Policy;

use super::{outside::queue, *};

/// Every kind of grant, each for one thing.
fn narrow() -> Access {
    Access {
        fulfills: vec!["mine@1".parse().unwrap()],
        calls: vec!["theirs@1/do".parse().unwrap(), "all@1".parse().unwrap()],
        publishes: vec!["out.*".parse().unwrap()],
        subscribes: vec![("in.>".parse().unwrap(), LaneSettings::default())],
        puts: vec!["puts".parse().unwrap()],
        takes: vec!["takes".parse().unwrap()],
        is_concurrent: false,
    }
}

fn grant(bus: &TestBus, access: Access) -> Arc<Peer> {
    bus.add_name(&"app:x".parse().unwrap(), access).unwrap()
}

/// The outcome of everything that a grant is needed for, with the name of the operation.
fn try_all(bus: &TestBus, session: &Arc<Peer>) -> Vec<Result<(), String>> {
    let queue = |name: &str| bus.queue(name).unwrap();
    let text = |result: Result<(), Error>| result.map_err(|error| denied::<()>(Err(error)));
    [
        bus.open(session, "theirs@1", "do", None).map(drop),
        bus.open(session, "theirs@1", "undo", None).map(drop),
        bus.publish(session, None, "out.a", Bytes::new()).map(drop),
        bus.publish(session, Some("app:x"), "other", Bytes::new()).map(drop),
        bus.subscribe(session, session.inbox(), "in.a").map(drop),
        bus.subscribe(session, session.inbox(), ">").map(drop),
        bus.bus.put(session, &queue("puts"), Bytes::new(), (None, Parent::default())).map(drop),
        bus.bus.put(session, &queue("takes"), Bytes::new(), (None, Parent::default())).map(drop),
        bus.bus.offer(session, &queue("takes"), Bytes::new(), Parent::default()).map(drop),
        session.may_take(queue("takes").name()),
        session.may_take(queue("puts").name()),
        bus.open_queue(session, "takes").map(drop),
        bus.open_queue(session, "neither").map(drop),
        bus.bus.serve(session, "other@1", &["do".to_owned()]),
    ]
    .map(text)
    .into()
}

fn world() -> (TestBus, Arc<Peer>) {
    let bus = TestBus::new();
    bus.ready("a", &["theirs@1", "all@1"], &[]);
    queue(&bus, &["puts", "takes", "neither"]);
    let session = bus.arrive(&grant(&bus, narrow()), LIMITS);
    (bus, session)
}

fn text(what: &str, key: &str) -> Result<(), String> {
    Err(format!("`app:x` may not {what}; `{key}` would grant it"))
}

#[tokio::test(start_paused = true)]
async fn anything_not_granted_is_refused_with_its_name_and_the_missing_key() {
    let (bus, session) = world();
    let expected = [
        Ok(()),
        text("call `theirs@1/undo`", "wants"),
        Ok(()),
        text("publish `other`", "publishes"),
        Ok(()),
        text("subscribe to `>`", "subscribes"),
        Ok(()),
        text("put into `takes`", "puts"),
        text("put into `takes`", "puts"),
        Ok(()),
        text("take from `puts`", "takes"),
        Ok(()),
        text("put into or take from `neither`", "puts` or `takes"),
        text("serve `other@1`", "fulfills"),
    ];
    assert_eq!(try_all(&bus, &session), expected);
    // A grant of one operation is none of the contract; a grant of the contract is one of every operation.
    assert!(bus.open(&session, "all@1", "do", None).is_ok());
    let unknown = bus.open(&session, "all@1", "undo", None);
    assert!(matches!(unknown, Err(Error::Invalid(_))), "{unknown:?}");
}

#[tokio::test(start_paused = true)]
async fn grants_taken_back_end_everything_at_once_and_come_back_with_the_grant() {
    let (bus, session) = world();
    bus.bus.serve(&session, "mine@1", &["do".to_owned()]).unwrap();
    assert!(!bus.serves_beyond_grants(&session));
    let mut target = bus.open(&session, "theirs@1", "do", None).unwrap();
    let term = bus.term(&target, None, Parent::default());
    drop(bus.call_to(&session, &mut target, "".into(), term.clone(), false).unwrap());
    bus.subscribe(&session, session.inbox(), "in.a").unwrap();
    bus.publish(bus.main(), None, "in.a", "waits".into()).unwrap();

    grant(&bus, Access::default());
    assert!(try_all(&bus, &session).iter().all(Result::is_err));
    let called = bus.call_to(&session, &mut target, "".into(), term.clone(), false);
    assert_eq!(Err(denied(called)), text("call `theirs@1/do`", "wants"));
    assert_eq!((session.inbox().depth(), bus.subscribers(&"in.a".parse().unwrap())), ((0, 0), 0));
    assert!(bus.serves_beyond_grants(&session));
    let unknown = Error::UnknownContract("mine@1".to_owned());
    assert_eq!(bus.call(bus.main(), "mine@1", "").map(drop), Err(unknown));

    grant(&bus, narrow());
    drop(bus.call_to(&session, &mut target, "".into(), term.clone(), false).unwrap());
    bus.subscribe(&session, session.inbox(), "in.a").unwrap();
    // The program that served it must be ended, or it would serve what it was not asked for.
    let nobody = Error::NoProvider("`app:x` is not connected".to_owned());
    assert_eq!(bus.call(bus.main(), "mine@1", "").map(drop), Err(nobody));
}

#[tokio::test(start_paused = true)]
async fn subscriptions_beyond_the_grants_end_and_the_others_wait_as_granted_now() {
    let (bus, session) = world();
    let kept = bus.subscribe(&session, session.inbox(), "in.kept.1").unwrap().number();
    bus.subscribe(&session, session.inbox(), "in.ended").unwrap();
    let one = LaneSettings { policy: Policy::DropOldest, messages: 1, bytes: u64::MAX };
    grant(&bus, Access { subscribes: vec![("in.kept.*".parse().unwrap(), one)], ..narrow() });
    for payload in ["1", "2"] {
        bus.publish(bus.main(), None, "in.kept.1", payload.into()).unwrap();
    }
    assert_eq!(bus.publish(bus.main(), None, "in.ended", "".into()).unwrap().delivered, 0);
    let event = take_event(session.inbox());
    assert_eq!((event.subscription, event.lost, &event.published.payload[..]), (kept, 1, &b"2"[..]));
}

#[tokio::test(start_paused = true)]
async fn grants_of_one_name_say_nothing_of_another() {
    let (bus, session) = world();
    let before = try_all(&bus, &session);
    bus.subscribe(&session, session.inbox(), "in.b").unwrap();
    let other = bus.arrive(&bus.name("app:y", &[], &[]), LIMITS);
    bus.add_name(&"app:y".parse().unwrap(), Access::default()).unwrap();
    assert!(bus.open(&other, "theirs@1", "do", None).is_err());
    assert_eq!(try_all(&bus, &session), before);
    assert_eq!(bus.subscribers(&"in.b".parse().unwrap()), 1);
}

#[tokio::test(start_paused = true)]
async fn a_contract_moves_between_an_extension_and_a_name_in_either_order_of_a_reconfiguration() {
    for name_first in [true, false] {
        let bus = TestBus::new();
        let extension = bus.ready("a", &["x@1"], &[]);
        let name = bus.name("sidecar:x", &[], &[]);
        let session = bus.arrive(&name, LIMITS);
        let serve = || bus.bus.serve(&session, "x@1", &["do".to_owned()]);
        let to_name = || drop(bus.name("sidecar:x", &["x@1"], &[]));
        let from_extension = || {
            let renewed = extension.renewed(LIMITS, any_topic(&[], &[]));
            bus.replace(&renewed, true);
            renewed
        };
        let renewed = if name_first {
            to_name();
            from_extension()
        } else {
            let renewed = from_extension();
            to_name();
            renewed
        };
        assert_eq!(bus.owner_of(&"x@1".parse().unwrap()).unwrap().name(), "sidecar:x");
        serve().unwrap();
        let call = bus.call(bus.main(), "x@1", "").unwrap();
        take_request(&session).responder.give(ok("outside"));
        assert_eq!(call.answer().await, ok("outside"));

        // And back.
        let from_name = || drop(bus.name("sidecar:x", &[], &[]));
        let to_extension = || {
            let back = renewed.renewed(LIMITS, any_topic(&["x@1"], &[]));
            bus.replace(&back, true);
            start(&back, &["x@1"]);
            back
        };
        let back = if name_first {
            from_name();
            to_extension()
        } else {
            let back = to_extension();
            from_name();
            back
        };
        assert!(bus.serves_beyond_grants(&session));
        let call = bus.call(bus.main(), "x@1", "").unwrap();
        assert!(matches!(session.take(), Taken::Empty));
        take_request(&back).responder.give(ok("inside"));
        assert_eq!(call.answer().await, ok("inside"));
        bus.leave(&session);
        assert_eq!(bus.owner_of(&"x@1".parse().unwrap()).unwrap().name(), "a");
    }
}
