//! Requests between sessions and extensions.

use weir_host::{
    Error, HandlerError,
    control::ExtensionState,
    peers::{PeerConfig, PeerError},
};

use super::{
    super::support::{Gate, puppet, puppet_with, reached, start as start_without_peers, tell},
    disk, open, peer, peer_with, read_by_a, request, serving, start, tell_a, with_peers,
};

fn reader() -> weir_host::ExtensionConfig {
    puppet_with("a", |a| a.wants = vec!["disk@1".parse().unwrap()])
}

/// As a guest shows it.
fn shown(error: &Error) -> Result<String, String> {
    Err(format!("Error::{error:?}"))
}

#[tokio::test]
async fn a_session_calls_an_extension_under_the_name_and_the_grants_of_its_peer() {
    let of_one = peer_with("app:one", |one| one.wants = vec!["a@1/run".parse().unwrap()]);
    let of_another = peer_with("app:another", |another| another.wants = vec!["a@1/other".parse().unwrap()]);
    let main = start(vec![puppet("a")], vec![of_one, of_another]).await;
    let (first, second) = (open(&main, "app:one"), open(&main, "app:one"));
    assert_eq!(tell_a(&first, "asker").await.unwrap(), "app:one");
    assert_eq!(tell_a(&second, "asker").await.unwrap(), "app:one");
    assert_eq!(tell(&main, "a", "asker").await.unwrap(), "main");
    let another = open(&main, "app:another");
    let denied = tell_a(&another, "asker").await.unwrap_err();
    assert!(matches!(&denied, Error::PermissionDenied(why) if why.contains("`wants`")), "{denied:?}");
    let other = another.client().call("a@1", "other", "").await.unwrap_err();
    assert!(
        matches!(other, Error::Invalid(_)),
        "granted, but the extension has no such operation: {other:?}"
    );
}

#[tokio::test]
async fn an_extension_calls_a_contract_that_a_session_serves() {
    let main = start(vec![reader()], vec![disk()]).await;
    assert_eq!(read_by_a(&main).await, shown(&Error::NoProvider("`sidecar:disk` is not connected".into())));
    let session = serving(&main);
    let serve = async {
        let first = request(&session).await;
        assert_eq!(
            (&*first.sender, first.contract.as_str(), first.operation.as_str()),
            ("a", "disk@1", "read")
        );
        assert_eq!(first.payload, "x");
        assert!(first.answer(Ok("all of it".into())));
        let second = request(&session).await;
        assert!(second.answer(Err(HandlerError::new("empty", "no disk"))));
    };
    let ask = async { (read_by_a(&main).await, read_by_a(&main).await) };
    let ((read, failed), ()) = tokio::join!(ask, serve);
    assert_eq!(read.unwrap(), "all of it");
    let failed = failed.unwrap_err();
    assert!(failed.contains("empty") && failed.contains("no disk"), "{failed}");
}

#[tokio::test]
async fn an_extension_that_requires_an_absent_peer_starts_by_itself_once_a_session_serves() {
    let a = puppet_with("a", |a| a.requires = vec!["disk@1".parse().unwrap()]);
    let main = start(vec![a], vec![disk()]).await;
    let reason = reached(&main, "a", ExtensionState::Failed).await.unwrap();
    assert_eq!(reason, "it requires `disk@1`, and `sidecar:disk` is not connected");
    let idle = open(&main, "sidecar:disk");
    let session = serving(&main);
    reached(&main, "a", ExtensionState::Ready).await;
    let serve = async { request(&session).await.answer(Ok("x".into())) };
    assert_eq!(tokio::join!(read_by_a(&main), serve), (Ok("x".to_owned()), true));
    // It goes on without the peer, and sees that from each call.
    drop((session, idle));
    assert_eq!(read_by_a(&main).await, shown(&Error::NoProvider("`sidecar:disk` is not connected".into())));
    assert_eq!(main.control().status("a").unwrap().state, ExtensionState::Ready);
}

#[tokio::test]
async fn a_session_that_is_dropped_answers_what_it_has_in_hand_and_what_waits_for_it_at_once() {
    let main = start(vec![reader(), puppet("b")], vec![disk()]).await;
    let session = serving(&main);
    let die = async {
        let in_hand = request(&session).await;
        let waits = main.client().call("disk@1", "read", "waits");
        let die = async {
            // In the inbox by now.
            drop(session);
            drop(in_hand);
        };
        tokio::join!(biased; waits, die).0
    };
    // The default timeout is longer than the test may take.
    let (in_hand, waits) = tokio::join!(read_by_a(&main), die);
    assert_eq!(in_hand, shown(&Error::PeerGone));
    assert_eq!(waits, Err(Error::PeerGone));
    assert_eq!(main.client().waiters(), 0);
    assert_eq!(tell(&main, "b", "echo on").await.unwrap(), "on");
}

#[tokio::test]
async fn a_request_in_hand_outlives_its_session_until_it_is_dropped_or_answered() {
    let main = start(vec![reader()], vec![disk()]).await;
    let session = serving(&main);
    let answer = async {
        let in_hand = request(&session).await;
        drop(session);
        in_hand.answer(Ok("late".into()))
    };
    let (read, answered) = tokio::join!(read_by_a(&main), answer);
    assert_eq!((read.unwrap(), answered), ("late".to_owned(), true));
}

#[tokio::test]
async fn a_request_dropped_unanswered_is_answered_for_the_session() {
    let main = start(vec![reader()], vec![disk()]).await;
    let session = serving(&main);
    let forget = async { drop(request(&session).await) };
    assert_eq!(tokio::join!(read_by_a(&main), forget).0, shown(&Error::PeerGone));
}

#[tokio::test]
async fn one_session_serves_a_contract_and_another_may_when_it_has_left() {
    let main = start(vec![reader()], vec![disk()]).await;
    let (first, second) = (serving(&main), open(&main, "sidecar:disk"));
    let refused = second.serve("disk@1", &["read".to_owned()]).unwrap_err();
    let expected = "`disk@1` is served by another session of `sidecar:disk`";
    assert_eq!(refused, Error::Invalid(expected.to_owned()));
    drop(first);
    second.serve("disk@1", &["read".to_owned()]).unwrap();
    let serve = async { request(&second).await.answer(Ok("second".into())) };
    assert_eq!(tokio::join!(read_by_a(&main), serve).0.unwrap(), "second");
}

#[tokio::test]
async fn no_more_messages_are_under_way_than_the_limit() {
    let gate = Gate::new();
    let small = peer_with("app:small", |small| {
        small.wants = vec!["gate@1".parse().unwrap()];
        small.limits.in_flight = 2;
    });
    let mut config = with_peers(Vec::new(), vec![small]);
    config.main.serves = vec!["gate@1".parse().unwrap()];
    let main = weir_host::Main::builder(config).serve(gate.service()).start().await.unwrap();
    let session = open(&main, "app:small");
    let other = open(&main, "app:small");
    let call = || session.client().call("gate@1", "pass", "");
    let beside = async {
        assert_eq!(main.peers().list()[0].sessions[0].in_flight, 2);
        let third = call().await;
        gate.open(2);
        third
    };
    let (first, second, third) = tokio::join!(biased; call(), call(), beside);
    let refused = Error::LimitExceeded { name: "in-flight".into(), used: 3, allowed: 2 };
    assert_eq!((first, second, third), (Ok("".into()), Ok("".into()), Err(refused)));
    gate.open(2);
    // The limit is each session's own, and nothing of it is used up.
    assert_eq!(
        tokio::join!(call(), other.client().call("gate@1", "pass", "")),
        (Ok("".into()), Ok("".into()))
    );
}

#[tokio::test]
async fn a_program_makes_names_of_its_own_and_takes_none_of_the_operators() {
    let main = start(vec![puppet("a")], vec![disk()]).await;
    let configured = main.peer(disk()).unwrap_err();
    assert_eq!(configured.to_string(), "`sidecar:disk` is configured by the operator");

    let owned = peer_with("app:thief", |thief| thief.fulfills = vec!["a@1".parse().unwrap()]);
    assert!(matches!(main.peer(owned), Err(PeerError::Owned { owner, .. }) if owner == "a"));
    let owned = peer_with("app:thief", |thief| thief.fulfills = vec!["disk@1".parse().unwrap()]);
    assert!(matches!(main.peer(owned), Err(PeerError::Owned { owner, .. }) if owner == "sidecar:disk"));

    let wrong = peer_with("app:wrong", |wrong| wrong.limits.sessions = 0);
    let wrong = main.peer(wrong).unwrap_err().to_string();
    assert_eq!(wrong, "`peer.\"app:wrong\".limits.sessions` must be a whole number from 1 to 4096");

    let caller = |operation: &str| -> PeerConfig {
        peer_with("app:own", |own| own.wants = vec![format!("a@1/{operation}").parse().unwrap()])
    };
    let first = main.peer(caller("run")).unwrap();
    assert_eq!(tell_a(&first, "asker").await.unwrap(), "app:own");
    // The latest grants hold for all sessions of the name.
    let second = main.peer(caller("other")).unwrap();
    for session in [&first, &second] {
        assert!(matches!(tell_a(session, "asker").await, Err(Error::PermissionDenied(_))));
    }
    assert!(matches!(main.peers().open("app:unknown"), Err(PeerError::Denied)));
}

#[tokio::test]
async fn a_name_of_the_program_goes_on_through_a_reload_until_the_operator_takes_it() {
    let main = start_without_peers(vec![puppet("a")]).await;
    let own = peer_with("app:own", |own| own.wants = vec!["a@1".parse().unwrap()]);
    let session = main.peer(own.clone()).unwrap();
    super::reload(&main, vec![puppet("a")], Vec::new()).await;
    assert_eq!(tell_a(&session, "asker").await.unwrap(), "app:own");
    super::reload(&main, vec![puppet("a")], vec![peer("app:own")]).await;
    assert!(matches!(tell_a(&session, "asker").await, Err(Error::PermissionDenied(_))));
    assert!(matches!(main.peer(own), Err(PeerError::Configured(_))));
}

#[tokio::test]
async fn a_payload_over_the_limit_of_either_side_is_too_large() {
    let small = peer_with("app:small", |small| {
        small.wants = vec!["a@1".parse().unwrap()];
        small.limits.message_size = 1024;
    });
    let main = start(vec![puppet("a")], vec![small]).await;
    let session = open(&main, "app:small");
    let sent = session.client().call("a@1", "run", vec![b' '; 1025]).await;
    assert_eq!(sent, Err(Error::TooLarge { bytes: 1025, allowed: 1024 }));
    assert_eq!(tell_a(&session, "large 1024").await.unwrap().len(), 1024);
    let received = tell_a(&session, "large 1025").await.unwrap_err();
    assert!(format!("{received:?}").contains("TooLarge"), "{received:?}");
}
