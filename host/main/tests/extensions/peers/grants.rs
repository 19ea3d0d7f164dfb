//! What a reload, an operator and the end of Main do to open sessions.

use std::pin::pin;

use futures_util::poll;
use weir_host::{
    Config, Error, ExtensionConfig, Main,
    peers::{PeerConfig, PeerError, Proof, SessionEnd, TokenHash},
};

use super::{
    super::support::{puppet, puppet_with, set, tell},
    disk, ended, next, open, peer, peer_with, read_by_a, reload, request, serving, start, tell_a,
};

fn reader() -> ExtensionConfig {
    puppet_with("a", |a| a.wants = vec!["disk@1".parse().unwrap()])
}

/// May call `a@1`, and subscribe to `news.>`.
fn granted(name: &str) -> PeerConfig {
    peer_with(name, |peer| {
        peer.wants = vec!["a@1/run".parse().unwrap()];
        let news: weir_host::names::TopicPattern = "news.>".parse().unwrap();
        peer.subscribes = vec![news.into()];
        peer.takes = vec!["q".parse().unwrap()];
    })
}

fn is_denied<T>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::PermissionDenied(_)))
}

fn with_queue(peer: PeerConfig) -> Config {
    let mut config = super::with_peers(vec![puppet("a")], vec![peer]);
    config.queues.insert("q".parse().unwrap(), Default::default());
    config
}

#[tokio::test]
async fn a_job_that_comes_after_a_reader_s_grant_was_taken_goes_to_another() {
    let main = Main::builder(with_queue(granted("app:player"))).start().await.unwrap();
    let session = open(&main, "app:player");
    let mut of_session = session.client().queue("q").unwrap();
    let mut taken = pin!(of_session.take());
    assert!(poll!(&mut taken).is_pending());
    main.control().reload_with(with_queue(peer("app:player"))).await.unwrap();

    // The reader has not been polled since, so it stands in the queue's line, and is handed the job.
    let mut queue = main.client().queue("q").unwrap();
    queue.put("job").await.unwrap();
    assert_eq!(main.control().queues()[0].in_hand, 1);
    assert!(taken.await.is_none());
    let job = queue.take().await.unwrap();
    assert_eq!((&**job.payload(), job.deliveries()), (&b"job"[..], 1));
    job.done();
}

#[tokio::test]
async fn a_reload_gives_and_takes_grants_of_open_sessions() {
    let main = start(vec![puppet("a")], vec![peer("app:player")]).await;
    let session = open(&main, "app:player");
    assert!(is_denied(&tell_a(&session, "echo on").await) && is_denied(&session.subscribe("news.*")));

    main.control().reload_with(with_queue(granted("app:player"))).await.unwrap();
    assert_eq!(tell_a(&session, "echo on").await.unwrap(), "on");
    let number = session.subscribe("news.*").unwrap();
    assert_eq!(session.subscriptions(), [number]);
    let mut events = session.client().subscribe("news.*").unwrap();
    let mut queue = session.client().queue("q").unwrap();

    let regranted = session.regranted();
    let took = async {
        let taken = queue.take().await;
        assert!(taken.is_none(), "the wait ends with the grant");
    };
    let take_back = main.control().reload_with(with_queue(peer("app:player")));
    let (reloaded, (), ()) = tokio::join!(take_back, took, regranted);
    reloaded.unwrap();
    assert_eq!(session.subscriptions(), [0; 0]);
    assert_eq!(events.next().await, None);
    assert!(is_denied(&tell_a(&session, "echo on").await) && is_denied(&session.subscribe("news.*")));
    assert_eq!(main.peers().list()[0].sessions.len(), 1, "the session goes on");
}

#[tokio::test]
async fn a_reload_ends_the_sessions_whose_proof_is_gone_and_no_other() {
    let proofs = |uid: Option<u32>, tokens: &[&str]| {
        peer_with("app:player", |player| {
            player.uid = uid;
            player.tokens = tokens.iter().copied().map(TokenHash::of).collect();
        })
    };
    let main = start(Vec::new(), vec![proofs(Some(7), &["old", "new"])]).await;
    let admit = |proof| main.peers().admit("app:player", proof);
    let by = [Proof::Token("old"), Proof::Token("new"), Proof::Uid(7)].map(|proof| admit(proof).unwrap());
    let [old, new, user] = &by;
    for wrong in [Proof::Token("other"), Proof::Token(""), Proof::Uid(0)] {
        assert!(matches!(admit(wrong), Err(PeerError::Denied)), "{wrong:?}");
    }
    let [status] = &main.peers().list()[..] else { panic!("one name") };
    let shown: Vec<_> = status.sessions.iter().map(|session| &*session.proof).collect();
    assert_eq!((shown, status.denied), (vec!["token", "token", "uid"], 3));

    reload(&main, Vec::new(), vec![proofs(Some(7), &["new"])]).await;
    assert_eq!(ended(old).await, SessionEnd::Revoked);
    assert!(next(old).await.is_none());
    reload(&main, Vec::new(), vec![proofs(None, &["new"])]).await;
    assert_eq!(ended(user).await, SessionEnd::Revoked);
    assert!(matches!(admit(Proof::Token("old")), Err(PeerError::Denied)));
    let left: Vec<_> = main.peers().list()[0].sessions.iter().map(|session| session.id).collect();
    assert_eq!(left, [new.id()]);
}

#[tokio::test]
async fn a_removed_name_is_denied_as_an_unknown_one_and_has_its_number_when_it_comes_back() {
    let main = start(vec![puppet("a")], vec![granted_without_queue()]).await;
    let session = open(&main, "app:player");
    assert_eq!(tell_a(&session, "asker").await.unwrap(), "app:player");
    reload(&main, vec![puppet("a")], Vec::new()).await;
    assert_eq!(ended(&session).await, SessionEnd::Revoked);
    assert_eq!(tell_a(&session, "asker").await, Err(Error::PeerGone));
    assert!(matches!(main.peers().open("app:player"), Err(PeerError::Denied)));
    assert!(matches!(main.peers().admit("app:player", Proof::Token("x")), Err(PeerError::Denied)));
    assert!(main.peers().list().is_empty());

    reload(&main, vec![puppet("a")], vec![peer("app:other"), granted_without_queue()]).await;
    assert_eq!(tell_a(&open(&main, "app:player"), "asker").await.unwrap(), "app:player");
}

fn granted_without_queue() -> PeerConfig {
    let mut peer = granted("app:player");
    peer.takes.clear();
    peer
}

#[tokio::test]
async fn a_session_whose_contract_is_taken_back_ends_and_its_callers_hear_it_at_once() {
    let main = start(vec![reader()], vec![disk()]).await;
    let session = serving(&main);
    let serve = async {
        let in_hand = request(&session).await;
        reload(&main, vec![reader()], vec![peer("sidecar:disk"), other_disk()]).await;
        assert_eq!(ended(&session).await, SessionEnd::Revoked);
        drop(in_hand);
    };
    let (read, ()) = tokio::join!(read_by_a(&main), serve);
    assert_eq!(read.unwrap_err(), "Error::PeerGone");
    let successor = open(&main, "sidecar:other");
    successor.serve("disk@1", &["read".to_owned()]).unwrap();
    let serve = async { request(&successor).await.answer(Ok("other".into())) };
    assert_eq!(tokio::join!(read_by_a(&main), serve).0.unwrap(), "other");
}

fn other_disk() -> PeerConfig {
    peer_with("sidecar:other", |other| other.fulfills = vec!["disk@1".parse().unwrap()])
}

#[tokio::test]
async fn an_extension_takes_over_a_contract_of_a_peer_and_gives_it_back() {
    let extension = || {
        puppet_with("d", |d| {
            d.fulfills = vec!["disk@1".parse().unwrap()];
            set(d, "contract", "disk@1");
        })
    };
    let caller = || reader();
    let main = start(vec![caller()], vec![disk()]).await;
    let session = serving(&main);
    reload(&main, vec![caller(), extension()], vec![peer("sidecar:disk")]).await;
    assert_eq!(ended(&session).await, SessionEnd::Revoked);
    assert_eq!(tell(&main, "a", "call disk@1 run echo on").await.unwrap(), "on");

    reload(&main, vec![caller()], vec![disk()]).await;
    let session = serving(&main);
    let serve = async { request(&session).await.answer(Ok("back".into())) };
    assert_eq!(tokio::join!(read_by_a(&main), serve).0.unwrap(), "back");
}

#[tokio::test]
async fn a_name_has_no_more_sessions_than_its_limit_and_an_operator_ends_one() {
    let two = peer_with("app:two", |two| two.limits.sessions = 2);
    let main = start(Vec::new(), vec![two]).await;
    let (first, _second) = (open(&main, "app:two"), open(&main, "app:two"));
    assert!(matches!(main.peers().open("app:two"), Err(PeerError::TooMany { allowed: 2, .. })));
    assert!(main.peers().end(first.id()));
    assert!(!main.peers().end(first.id()), "it has ended");
    assert_eq!(ended(&first).await, SessionEnd::Ended);
    let third = open(&main, "app:two");
    assert!(third.id() > first.id());
    assert_eq!(main.peers().list()[0].sessions_so_far, 3);
}

#[tokio::test]
async fn new_limits_hold_for_sessions_that_begin_after_the_reload() {
    let of = |bytes: u64, sessions: u32| {
        peer_with("app:player", |player| {
            player.wants = vec!["a@1".parse().unwrap()];
            player.limits.message_size = bytes;
            player.limits.sessions = sessions;
        })
    };
    let main = start(vec![puppet("a")], vec![of(1024, 1)]).await;
    let before = open(&main, "app:player");
    assert!(matches!(main.peers().open("app:player"), Err(PeerError::TooMany { allowed: 1, .. })));
    reload(&main, vec![puppet("a")], vec![of(2048, 2)]).await;
    let after = open(&main, "app:player");
    for (session, allowed) in [(&before, 1024), (&after, 2048)] {
        assert_eq!(session.limits().message_size, allowed);
        let too_large = session.client().call("a@1", "run", vec![b' '; 2049]).await;
        assert_eq!(too_large, Err(Error::TooLarge { bytes: 2049, allowed }));
    }
}

#[tokio::test]
async fn the_end_of_main_ends_sessions_after_the_extensions_have_drained() {
    let last_words = puppet_with("a", |a| {
        a.requires = vec!["disk@1".parse().unwrap()];
        set(a, "stop", "call disk@1 read last words");
    });
    let main = start(vec![last_words], vec![disk()]).await;
    let session = serving(&main);
    super::super::support::reached(&main, "a", weir_host::control::ExtensionState::Ready).await;
    let peers = main.peers().clone();
    let serve = async {
        let last = request(&session).await;
        assert_eq!((&*last.sender, &last.payload[..]), ("a", &b"last words"[..]));
        assert!(last.answer(Ok("".into())));
        assert_eq!(ended(&session).await, SessionEnd::Stopping);
        assert!(next(&session).await.is_none());
    };
    let (shut_down, ()) = tokio::join!(main.shutdown(), serve);
    shut_down.unwrap();
    assert!(matches!(peers.open("sidecar:disk"), Err(PeerError::Stopping)));
    assert!(matches!(peers.open_with(peer("app:late")), Err(PeerError::Stopping)));
    assert_eq!(session.client().call("disk@1", "read", "").await, Err(Error::Ended));
}
