//! Requests and events between extensions, Main and its client that fail or are given up.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use weir_host::{
    CallOptions, Client, Error, ExtensionConfig, Service, config::Policy, control::ExtensionState,
};

use super::support::{Gate, builder, puppet, puppet_with, reached, set, start, taken, tell, until};

fn caller(id: &str, wants: &[&str]) -> ExtensionConfig {
    puppet_with(id, |p| {
        p.wants = wants.iter().map(|name| name.parse().unwrap()).collect();
        p.publishes = vec![">".parse().unwrap()];
        p.subscribes = vec![">".parse().unwrap()];
    })
}

#[tokio::test]
async fn futures_that_are_dropped_leave_nobody_waiting() {
    let main = start(vec![puppet("a")]).await;
    for _ in 0..500 {
        let mut call = Box::pin(main.client().call("a@1", "run", "forget"));
        assert_eq!((&mut call).now_or_never(), None);
    }
    assert_eq!(main.client().waiters(), 0);
    assert_eq!(tell(&main, "a", "echo 1").await.unwrap(), "1");
}

#[tokio::test]
async fn a_handler_that_calls_without_end_lets_others_run() {
    let (client, is_over) = (Arc::new(OnceLock::<Client>::new()), Arc::new(AtomicBool::new(false)));
    let (of_caller, of_end, of_loop) = (client.clone(), is_over.clone(), is_over.clone());
    let service = Service::new("loop@1".parse().unwrap())
        .on("go".parse().unwrap(), move |_| {
            let (client, is_over) = (of_caller.clone(), of_loop.clone());
            async move {
                let mut calls = 0_u64;
                while !is_over.load(Ordering::Relaxed) {
                    let answer = client.get().unwrap().call("a@1", "run", "echo 1").await;
                    assert_eq!(answer, Ok("1".into()));
                    calls += 1;
                }
                Ok(calls.to_string().into())
            }
        })
        .on("end".parse().unwrap(), move |_| {
            of_end.store(true, Ordering::Relaxed);
            async { Ok("told".into()) }
        });
    let main = builder(vec![puppet("a")]).serve(service).start().await.unwrap();
    client.set(main.client().clone()).unwrap();
    let mut going = Box::pin(main.client().call("loop@1", "go", ""));
    assert_eq!((&mut going).now_or_never(), None);
    until(|| main.control().status("a").unwrap().received > 1000).await;
    let told = tokio::time::timeout(Duration::from_secs(60), main.client().call("loop@1", "end", "")).await;
    // Otherwise the test would wait for ever.
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(told, Ok(Ok("told".into())));
    assert!(going.await.unwrap() != "0");
}

#[tokio::test]
async fn more_unanswered_requests_than_can_be_in_hand_keep_no_later_one_out() {
    let main = start(vec![puppet("a")]).await;
    let forgotten = CallOptions::default().timeout(Duration::from_secs(3));
    let mut calls = Vec::new();
    // 1024 can be in hand; the rest stays in the inbox.
    for _ in 0..12 {
        for _ in 0..100 {
            let mut call = Box::pin(main.client().call_with("a@1", "run", "forget", forgotten.clone()));
            assert_eq!((&mut call).now_or_never(), None, "it is sent, and waits");
            calls.push(call);
        }
        let status = || main.control().status("a").unwrap();
        while status().inbox_messages > 0 && status().received < 1024 {
            tokio::task::yield_now().await;
        }
    }
    for outcome in join_all(calls).await {
        assert_eq!(outcome, Err(Error::Timeout));
    }
    assert_eq!(tell(&main, "a", "echo 1").await.unwrap(), "1");
}

#[tokio::test]
async fn giving_up_on_requests_makes_no_room_for_replies_without_end() {
    let hoarder = caller("a", &["b@1"]);
    let forgetful = puppet_with("b", |b| b.limits.inbox_messages = 2048);
    let main = start(vec![hoarder, forgetful]).await;
    assert_eq!(tell(&main, "a", "hoard b@1 run forget").await.unwrap(), "1024");
    // The puppet has received all since then.
    taken(&main, "a").await;
    assert_eq!(tell(&main, "a", "echo on").await.unwrap(), "on");
}

#[tokio::test]
async fn a_circle_of_blocking_calls_is_refused_and_names_who_waits() {
    let main = start(vec![caller("a", &["b@1", "a@1"]), caller("b", &["a@1"])]).await;
    let told = tell(&main, "a", "call b@1 run call a@1 run echo").await.unwrap_err();
    assert!(told.contains(r#"WouldDeadlock([\"b\", \"a\", \"b\"])"#), "{told}");
    let told = tell(&main, "a", "call a@1 run echo").await.unwrap_err();
    assert_eq!(told, r#"Error::WouldDeadlock(["a", "a"])"#);
}

#[tokio::test]
async fn two_full_block_topics_that_face_each_other_are_an_error_that_names_the_cycle() {
    let gate = Gate::new();
    let peers = [("a", "b"), ("b", "a")].map(|(id, other)| {
        puppet_with(id, |p| {
            p.wants = vec!["gate@1".parse().unwrap()];
            p.publishes = vec![format!("to.{other}").parse().unwrap()];
            p.subscribes = vec![format!("to.{id}").parse().unwrap()];
            p.subscribes[0].policy = Policy::Block;
            p.limits.inbox_messages = 1;
            set(p, "start", &format!("subscribe to.{id}"));
        })
    });
    let main = gate.start(peers.to_vec()).await;
    // Each waits for the gate, so that its inbox fills.
    let publish = |id, other| {
        let command = format!("all call gate@1 pass; publish to.{other} more");
        let main = &main;
        async move { tell(main, id, &command).await }
    };
    let (mut a, mut b) = (Box::pin(publish("a", "b")), Box::pin(publish("b", "a")));
    assert_eq!(((&mut a).now_or_never(), (&mut b).now_or_never()), (None, None));
    for id in ["a", "b"] {
        taken(&main, id).await;
        let receipt = main.client().publish(&format!("to.{id}"), "fills it").await.unwrap();
        assert_eq!(receipt.delivered, 1);
    }
    gate.open(2);
    // The first waits until the second, refused at once because it closes the circle, takes from its inbox again.
    let (a, b) = (a.await, b.await);
    let (who, refused, other) = if a.is_err() { (["a", "b", "a"], a, b) } else { (["b", "a", "b"], b, a) };
    assert_eq!(refused, Err(format!("Error::WouldDeadlock({who:?})")));
    assert!(other.unwrap().contains("delivered: 1"));
}

#[tokio::test]
async fn an_answer_that_is_too_large_can_be_given_otherwise() {
    let main = start(vec![puppet("a")]).await;
    let told = tell(&main, "a", "large 1048577").await.unwrap_err();
    assert!(told.contains("TooLarge") && told.contains("1048576"), "{told}");
    assert_eq!(tell(&main, "a", "large 1048576").await.unwrap().len(), 1 << 20);
    let too_large = vec![b'x'; (1 << 20) + 1];
    let refused = Error::TooLarge { bytes: 1_048_577, allowed: 1_048_576 };
    assert_eq!(main.client().call("a@1", "run", too_large).await, Err(refused));
}

#[tokio::test]
async fn a_named_provider_is_the_one_that_answers_or_none() {
    let main = start(vec![caller("a", &["b@1"]), puppet("b")]).await;
    assert_eq!(tell(&main, "a", "call b@1/b run own-name").await.unwrap(), "b");
    for name in ["a", "main", "nobody"] {
        let told = tell(&main, "a", &format!("call b@1/{name} run own-name")).await;
        let refused = format!("`{name}` does not fulfil `b@1`");
        assert_eq!(told, Err(format!("Error::NoProvider({refused:?})")));
    }
}

#[tokio::test]
async fn who_answers_does_not_depend_on_whom_one_asked_before() {
    let own = Service::new("b@1".parse().unwrap()).on("run".parse().unwrap(), async |_| Ok("main".into()));
    let main = builder(vec![caller("a", &["b@1"]), puppet("b")]).serve(own).start().await.unwrap();
    for (provider, answers) in [("/main", "main"), ("", "b"), ("/b", "b"), ("/main", "main"), ("", "b")] {
        assert_eq!(tell(&main, "a", &format!("call b@1{provider} run own-name")).await.unwrap(), answers);
    }
}

#[tokio::test]
async fn numbers_that_were_never_given_out_are_invalid() {
    let main = start(vec![puppet("a")]).await;
    for command in ["respond 0", "respond 18446744073709551615", "unsubscribe 7", "call b run x", "serve a@1"]
    {
        let told = tell(&main, "a", command).await.unwrap_err();
        assert!(
            told.starts_with("Error::Invalid(") || told.starts_with("Error::PermissionDenied("),
            "{told}"
        );
    }
}

#[tokio::test]
async fn a_response_comes_through_the_inbox_of_whoever_sent_without_waiting() {
    let main = start(vec![caller("a", &["b@1"]), puppet("b")]).await;
    tell(&main, "a", "send b@1 run echo hello").await.unwrap();
    tell(&main, "a", "send b@1 run trap").await.unwrap();
    reached(&main, "b", ExtensionState::Failed).await;
    let heard = tell(&main, "a", "heard").await.unwrap();
    assert_eq!(heard, "response: Ok(\"hello\")\nresponse: Err(Error::Trapped)");
    assert_eq!(main.client().waiters(), 0);
}

#[tokio::test]
async fn events_reach_extensions_and_main_with_their_sender_and_place() {
    let main = start(vec![caller("a", &[]), caller("b", &[])]).await;
    let mut all = main.client().subscribe("news.>").unwrap();
    tell(&main, "b", "subscribe news.*").await.unwrap();
    let receipt = tell(&main, "a", "publish news.today sunny").await.unwrap();
    assert_eq!(receipt, "Receipt { delivered: 2, shed: 0, refused: 0 }");
    main.client().publish_to("b", "news.today", "rainy").await.unwrap();
    taken(&main, "b").await;
    let heard = tell(&main, "b", "heard").await.unwrap();
    assert_eq!(heard, "event: news.today 1 0 sunny\nevent: news.today 0 0 rainy");
    let event = all.next().await.unwrap();
    assert_eq!((&*event.sender, event.topic.as_str(), &*event.payload), ("a", "news.today", &b"sunny"[..]));
    assert!(
        tell(&main, "a", "publish-to a news.today x").await.unwrap_err().starts_with("Error::NoProvider(")
    );
}

#[tokio::test]
async fn an_event_that_an_extension_died_with_is_a_gap_for_the_next_instance() {
    let main = start(vec![caller("a", &[])]).await;
    tell(&main, "a", "subscribe t").await.unwrap();
    for payload in ["1", "trap", "3"] {
        main.client().publish("t", payload).await.unwrap();
    }
    reached(&main, "a", ExtensionState::Failed).await;
    main.client().publish("t", "4").await.unwrap();
    main.control().start("a").await.unwrap();
    taken(&main, "a").await;
    assert_eq!(tell(&main, "a", "heard").await.unwrap(), "event:  3 1 3\nevent:  4 0 4");
}
