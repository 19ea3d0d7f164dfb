//! Requests for hooks that take long, are abandoned, or get large answers.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::{task::JoinSet, time::timeout};
use weir_host::{
    Client, Config, ExtensionConfig, Main, Service,
    hooks::{HookDirConfig, HooksConfig},
};

use super::support::*;

const SHORT: Duration = Duration::from_secs(15);

/// More than Main's handlers.
const MANY: usize = 300;

async fn main_with(dir: HookDirConfig) -> Main {
    let mut main = main_config();
    main.request_timeout = PATIENCE;
    let mut config = Config::new(main, Vec::new());
    config.set_section(HooksConfig::from_iter([("it".parse().unwrap(), dir)]));
    let service = Service::new("test@1".parse().unwrap())
        .on("ping".parse().unwrap(), |_| std::future::ready(Ok("pong".into())));
    Main::builder(config).serve(service).start().await.unwrap()
}

fn ask(client: &Client, task: &str) -> impl Future<Output = Result<bytes::Bytes, weir_host::Error>> + use<> {
    let (client, payload) = (client.clone(), json!({"hooks": "it", "params": {"DO": task}}).to_string());
    async move { client.call("hooks@1", "run", payload).await }
}

/// As an extension that cancels or dies.
#[tokio::test]
async fn a_hook_ends_with_the_request_that_asked_for_it() {
    let files = dir(&["10-a"]);
    let mut config = config(&files);
    config.at_once = 1;
    let main = main_with(config).await;
    ask(main.client(), "ok").await.unwrap();
    let gone = timeout(Duration::from_secs(1), ask(main.client(), "sleep 3600")).await;
    assert!(gone.is_err());
    let next = main.hooks().get("it").unwrap();
    let next = next.run(weir_host::hooks::HookCall::new().param("DO", "ok").timeout(SHORT)).await;
    assert!(next.as_ref().is_ok_and(weir_host::hooks::HookReport::is_success), "its place is free: {next:?}");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn main_serves_other_contracts_while_many_wait_for_their_hooks() {
    let files = dir(&["10-a"]);
    let main = main_with(config(&files)).await;
    let mut asked = JoinSet::new();
    for _ in 0..MANY {
        asked.spawn(ask(main.client(), "sleep 3600"));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pong = timeout(SHORT, main.client().call("test@1", "ping", "")).await;
    assert!(matches!(pong, Ok(Ok(_))), "{pong:?}");
    asked.abort_all();
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_asker_that_takes_small_messages_hears_how_the_hooks_ended() {
    let files = dir(&["10-a"]);
    let mut puppet = ExtensionConfig::new("a".parse().unwrap(), test_guests::path("puppet"));
    puppet.fulfills = vec!["a@1".parse().unwrap()];
    puppet.config.insert("contract".to_owned(), "a@1".to_owned());
    puppet.runs = vec!["it".parse().unwrap()];
    puppet.limits.ready_timeout = PATIENCE;
    puppet.limits.message_size = 4096;
    let mut config = Config::new(main_config(), vec![puppet]);
    config.main.request_timeout = PATIENCE;
    config.set_section(HooksConfig::from_iter([("it".parse().unwrap(), self::config(&files))]));
    let main = Main::builder(config).start().await.unwrap();
    let payload = json!({"hooks": "it", "params": {"DO": "flood"}}).to_string();
    let answer = main.client().call("a@1", "run", format!("call hooks@1 run {payload}")).await;
    let answer = answer.map(|bytes| serde_json::from_slice::<Value>(&bytes).unwrap());
    assert_eq!(answer.map(|report| report["outcome"].clone()), Ok(json!("limit-exceeded")));
    main.shutdown().await.unwrap();
}
