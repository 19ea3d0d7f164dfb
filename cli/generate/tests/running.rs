//! Generated clients in Rust against a Main that runs Weir's own extensions: `cargo xtask test --full contracts`.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]
#![expect(clippy::print_stdout, reason = "the program that runs the tests reads it")]

#[path = "golden"]
#[expect(unreachable_pub, reason = "in a library it is public")]
mod generated {
    #[rustfmt::skip]
    pub(crate) mod settings_app;
    #[rustfmt::skip]
    pub(crate) mod settings_sidecar;
}

use std::{env, time::Duration};

use serde_json::json;
use weir_peer::{Error, Options, Peer};

use self::generated::{
    settings_app::{self, runtime::Update},
    settings_sidecar,
};

fn variable(name: &str) -> String {
    env::var(name).unwrap()
}

fn options() -> Options {
    Options::new(variable("WEIR_NAME").parse().unwrap()).token(variable("WEIR_TOKEN"))
}

/// Says that the client has done what it does before Main is killed.
fn ready() {
    println!("\nready");
}

#[tokio::test]
#[ignore = "needs a Main"]
async fn an_app_goes_on_after_a_break_and_knows_of_the_gap() {
    let connection = settings_app::runtime::Connection::new(variable("WEIR_PEERS"), options());
    let settings = settings_app::Client::new(&connection).within(Duration::from_secs(20));
    let entry = |value: i32| settings_app::Entry { key: "rust-app".to_owned(), value: value.into() };
    let key = settings_app::Key { key: "rust-app".to_owned() };

    settings.set(&entry(1)).await.unwrap();
    let setting = settings.get(&key).await.unwrap();
    assert_eq!((setting.value, setting.r#type), (json!(1), settings_app::Type::Integer));
    let prefix = settings_app::Prefix { prefix: Some("rust-app".to_owned()) };
    assert_eq!(settings.list(&prefix).await.unwrap().settings.len(), 1);
    assert!(settings.list(&settings_app::Prefix::default()).await.unwrap().settings.contains_key("rust-app"));
    let missing = settings_app::Key { key: "none".to_owned() };
    assert_eq!(settings.get(&missing).await.unwrap_err().code(), "not-found");

    let mut changes = settings.subscribe_changed_at("settings.changed.rust-app").await.unwrap();
    settings.set(&entry(2)).await.unwrap();
    let Some(Ok(Update::Event(event))) = changes.next().await else { panic!("no event") };
    assert_eq!((&*event.topic, event.payload.value), ("settings.changed.rust-app", json!(2)));

    ready();
    assert!(matches!(changes.next().await, Some(Ok(Update::Gap))));
    assert_eq!(settings.get(&key).await.unwrap().value, json!(2));
    settings.set(&entry(3)).await.unwrap();
    let Some(Ok(Update::Event(event))) = changes.next().await else { panic!("no event") };
    assert_eq!((event.payload.value, event.payload.previous), (json!(3), Some(json!(2))));
}

#[tokio::test]
#[ignore = "needs a Main"]
async fn a_sidecar_has_one_session_and_nothing_after_it() {
    let peer = Peer::connect(variable("WEIR_PEERS"), options()).await.unwrap();
    let connection = settings_sidecar::runtime::Connection::new(peer);
    let settings = settings_sidecar::Client::new(&connection).of("settings");
    let mut changes = settings.subscribe_changed_at("settings.changed.rust-sidecar").await.unwrap();
    let entry = settings_sidecar::Entry { key: "rust-sidecar".to_owned(), value: json!("on") };
    settings.set(&entry).await.unwrap();
    assert_eq!(changes.next().await.unwrap().unwrap().payload.value, json!("on"));

    ready();
    assert!(changes.next().await.is_none());
    let key = settings_sidecar::Key { key: "rust-sidecar".to_owned() };
    assert_eq!(settings.get(&key).await, Err(Error::PeerGone));
}
