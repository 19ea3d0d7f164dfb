//! Programs outside Main: sessions of peers, beside extensions.

mod grants;
mod requests;
mod traffic;

use weir_host::{
    Config, ExtensionConfig, Main,
    client::ReceivedEvent,
    peers::{PeerConfig, PeerMessage, PeerRequest, Session, SessionEnd, Wanted},
};

use super::support::{PATIENCE, config, tell};

/// A peer of the operator's file, without grants.
fn peer(name: &str) -> PeerConfig {
    PeerConfig::new(name.parse().unwrap())
}

fn peer_with(name: &str, change: impl FnOnce(&mut PeerConfig)) -> PeerConfig {
    let mut peer = peer(name);
    change(&mut peer);
    peer
}

/// `sidecar:disk`, which may serve `disk@1`.
fn disk() -> PeerConfig {
    peer_with("sidecar:disk", |disk| disk.fulfills = vec!["disk@1".parse().unwrap()])
}

fn with_peers(extensions: Vec<ExtensionConfig>, peers: Vec<PeerConfig>) -> Config {
    let mut config = config(extensions);
    config.peers = peers;
    config
}

async fn start(extensions: Vec<ExtensionConfig>, peers: Vec<PeerConfig>) -> Main {
    Main::builder(with_peers(extensions, peers)).start().await.unwrap()
}

async fn reload(main: &Main, extensions: Vec<ExtensionConfig>, peers: Vec<PeerConfig>) {
    main.control().reload_with(with_peers(extensions, peers)).await.unwrap();
}

fn open(main: &Main, name: &str) -> Session {
    main.peers().open(name).unwrap()
}

/// A session of `sidecar:disk` that serves `disk@1`, with the operation `read`.
fn serving(main: &Main) -> Session {
    let session = open(main, "sidecar:disk");
    session.serve("disk@1", &["read".to_owned()]).unwrap();
    session
}

/// The next message. None once the session has ended.
async fn next(session: &Session) -> Option<PeerMessage> {
    let next = session.next(Wanted { requests: true, events: true });
    tokio::time::timeout(PATIENCE, next).await.unwrap()
}

async fn request(session: &Session) -> PeerRequest {
    match next(session).await {
        Some(PeerMessage::Request(request)) => request,
        other => panic!("no request, but {other:?}"),
    }
}

async fn event(session: &Session) -> ReceivedEvent {
    match next(session).await {
        Some(PeerMessage::Event(_, event)) => event,
        other => panic!("no event, but {other:?}"),
    }
}

async fn ended(session: &Session) -> SessionEnd {
    tokio::time::timeout(PATIENCE, session.ended()).await.unwrap()
}

/// Has a session call `run` of `a@1`.
async fn tell_a(session: &Session, command: &str) -> Result<String, weir_host::Error> {
    let answer = session.client().call("a@1", "run", command.to_owned()).await?;
    Ok(String::from_utf8(answer.to_vec()).unwrap())
}

/// Has `a` read from `disk@1`.
async fn read_by_a(main: &Main) -> Result<String, String> {
    tell(main, "a", "call disk@1 read x").await
}
