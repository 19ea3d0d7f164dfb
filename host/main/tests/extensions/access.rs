//! Main refuses what was not granted, by name.

use weir_host::Service;

use super::support::{builder, puppet, puppet_with, start, tell};

fn denied(what: &str) -> Result<String, String> {
    Err(format!("Error::PermissionDenied({what:?})"))
}

#[tokio::test]
async fn a_sender_is_who_main_says_whatever_the_message_claims() {
    let who = Service::new("who@1".parse().unwrap())
        .on("sends".parse().unwrap(), async |request| Ok(request.sender.into()));
    let puppet = puppet_with("a", |a| a.wants = vec!["who@1".parse().unwrap()]);
    let main = builder(vec![puppet]).serve(who).start().await.unwrap();
    assert_eq!(tell(&main, "a", "call who@1 sends {\"sender\":\"b\"}").await.unwrap(), "a");
    assert_eq!(main.client().call("who@1", "sends", "").await.unwrap(), "main");
}

#[tokio::test]
async fn another_extensions_request_cannot_be_answered() {
    let main = start(vec![puppet("a"), puppet("b")]).await;
    let timeout = weir_host::CallOptions::default().timeout(std::time::Duration::from_secs(1));
    let call = main.client().call_with("a@1", "run", "forget", timeout);
    let theft = async {
        // That message is the first of all, and still in hand.
        tell(&main, "a", "echo").await.unwrap();
        tell(&main, "b", "respond 1").await
    };
    let (call, theft) = tokio::join!(call, theft);
    let refused = "request 1 is not in hand: never received, or answered already";
    assert_eq!(theft, Err(format!("Error::Invalid({refused:?})")));
    assert_eq!(call, Err(weir_host::Error::Timeout));
}

#[tokio::test]
async fn a_contract_in_neither_requires_nor_wants_is_not_called() {
    let main = start(vec![puppet("a"), puppet("b")]).await;
    assert_eq!(
        tell(&main, "a", "call b@1 run echo").await,
        denied("`a` may not call `b@1`; `requires` or `wants` would grant it")
    );
    assert_eq!(
        tell(&main, "a", "send b@1 run echo").await,
        denied("`a` may not call `b@1`; `requires` or `wants` would grant it")
    );
}

#[tokio::test]
async fn a_contract_not_in_fulfills_is_not_served() {
    let main = start(vec![puppet("a"), puppet("b")]).await;
    assert_eq!(
        tell(&main, "a", "serve b@1").await,
        denied("`a` may not serve `b@1`; `fulfills` would grant it")
    );
}

#[tokio::test]
async fn topics_outside_the_grant_are_neither_published_nor_subscribed_to() {
    let puppet = puppet_with("a", |a| {
        a.publishes = vec!["mine.*".parse().unwrap()];
        a.subscribes = vec!["news.>".parse().unwrap()];
    });
    let main = start(vec![puppet]).await;
    assert!(tell(&main, "a", "publish mine.x 1").await.is_ok());
    assert_eq!(
        tell(&main, "a", "publish settings.changed 1").await,
        denied("`a` may not publish `settings.changed`; `publishes` would grant it")
    );
    assert_eq!(
        tell(&main, "a", "publish-to b settings.changed 1").await,
        denied("`a` may not publish `settings.changed`; `publishes` would grant it")
    );
    assert!(tell(&main, "a", "subscribe news.*").await.is_ok());
    assert_eq!(
        tell(&main, "a", "subscribe >").await,
        denied("`a` may not subscribe to `>`; `subscribes` would grant it")
    );
}

#[tokio::test]
async fn an_extension_knows_itself_and_those_it_hears_from_by_name() {
    let a = puppet_with("a", |a| a.wants = vec!["b@1".parse().unwrap()]);
    let main = start(vec![a, puppet("b")]).await;
    assert_eq!(tell(&main, "b", "own-name").await.unwrap(), "b");
    for (number, name) in [(0, "Some(\"main\")"), (1, "None"), (2, "Some(\"b\")"), (u32::MAX, "None")] {
        assert_eq!(tell(&main, "b", &format!("name-of {number}")).await.unwrap(), name);
    }
    tell(&main, "a", "call b@1 run echo").await.unwrap();
    assert_eq!(tell(&main, "b", "name-of 1").await.unwrap(), "Some(\"a\")");
}
