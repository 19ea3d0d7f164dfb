//! `store@1`: the same stores by requests, within the sender's grants.

use serde_json::{Value, json};
use weir_host::{
    Error, Main,
    client::SubscribeOptions,
    config::{DirMode, Policy},
};

use super::support::*;

async fn ask(main: &Main, operation: &str, arguments: Value) -> Result<Value, Error> {
    let answer = main.client().call("store@1", operation, arguments.to_string()).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

async fn tell(main: &Main, id: &str, operation: &str, arguments: Value) -> Result<Value, String> {
    let command = format!("call store@1 {operation} {arguments}");
    match main.client().call(&format!("{id}@1"), "run", command).await {
        Ok(answer) => Ok(serde_json::from_slice(&answer).unwrap()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test]
async fn each_operation_answers_in_json_and_values_that_are_no_text_come_in_base64() {
    let dir = tempfile::tempdir().unwrap();
    let main = start(dir.path(), Vec::new(), &[("s", shared())]).await;
    let key = |key: &str| json!({"store": "s", "key": key});
    let with = |key: &str, more: Value| {
        let mut all = json!({"store": "s", "key": key});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let ask = async |operation: &str, arguments: Value| ask(&main, operation, arguments).await.unwrap();
    assert_eq!(ask("get", key("a")).await, json!({"value": null}));
    assert_eq!(ask("set", with("a", json!({"value": "ä"}))).await, json!({"existed": false}));
    assert_eq!(ask("set", with("b", json!({"base64": "/wA="}))).await, json!({"existed": false}));
    assert_eq!(ask("get", key("a")).await, json!({"value": "ä"}));
    assert_eq!(ask("get", key("b")).await, json!({"value": null, "base64": "/wA="}));
    assert_eq!(ask("exists", key("b")).await, json!({"exists": true}));
    let list = json!({"store": "s", "prefix": "", "limit": 1});
    assert_eq!(ask("list", list).await, json!({"keys": ["a"], "next": "a"}));
    assert_eq!(ask("list", json!({"store": "s", "after": "a"})).await, json!({"keys": ["b"], "next": null}));
    assert_eq!(ask("increment", with("n", json!({"by": -3}))).await, json!({"value": -3}));
    assert_eq!(ask("increment", key("n")).await, json!({"value": -2}));
    let swap = with("a", json!({"expected": "x", "value": "y"}));
    assert_eq!(ask("compare-and-set", swap).await, json!({"swapped": false, "value": "ä"}));
    let swap = with("a", json!({"expected": "ä"}));
    assert_eq!(ask("compare-and-set", swap).await, json!({"swapped": true}));
    assert_eq!(ask("delete", key("a")).await, json!({"existed": false}));
    assert_eq!(ask("delete", key("b")).await, json!({"existed": true}));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn mistakes_have_a_code_and_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mut small = shared();
    (small.bytes, small.value_size) = (262_144, 1024);
    let main = start(dir.path(), Vec::new(), &[("s", small)]).await;
    let code = async |operation: &str, arguments: Value| match ask(&main, operation, arguments).await {
        Err(Error::Handler(error)) => error.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(code("get", json!({"store": "t", "key": "a"})).await, "unknown");
    assert_eq!(code("get", json!({"store": "s"})).await, "invalid");
    assert_eq!(code("get", json!({"store": "s", "key": ""})).await, "invalid");
    assert_eq!(code("get", json!({"store": "s", "key": "a", "kye": 1})).await, "invalid");
    assert_eq!(code("set", json!({"store": "s", "key": "a"})).await, "invalid");
    assert_eq!(code("set", json!({"store": "s", "key": "a", "value": "", "base64": ""})).await, "invalid");
    assert_eq!(code("set", json!({"store": "s", "key": "a", "base64": "?"})).await, "invalid");
    let large = json!({"store": "s", "key": "a", "value": "x".repeat(1025)});
    assert_eq!(code("set", large).await, "too-large");
    // Each counts its key and 128 bytes more.
    for number in 0..227 {
        let fits = json!({"store": "s", "key": number.to_string(), "value": "x".repeat(1020)});
        ask(&main, "set", fits).await.unwrap();
    }
    let full = json!({"store": "s", "key": "last", "value": "x".repeat(1024)});
    assert_eq!(code("set", full.clone()).await, "full");
    assert_eq!(code("increment", json!({"store": "s", "key": "0"})).await, "not-a-number");
    let exists = json!({"store": "s", "key": "last"});
    assert_eq!(ask(&main, "exists", exists).await.unwrap(), json!({"exists": false}));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn grants_and_keys_are_those_of_the_sender() {
    let dir = tempfile::tempdir().unwrap();
    let mut reader = puppet("reader", &["s"]);
    reader.grants.stores[0].mode = DirMode::Ro;
    let extensions = vec![puppet("a", &["s"]), puppet("b", &["s", "t"]), puppet("none", &[]), reader];
    let main = start(dir.path(), extensions, &[("s", store()), ("t", store())]).await;
    let set = |owner: Option<&str>| json!({"store": "s", "key": "k", "value": "v", "owner": owner});
    let get = |store: &str| json!({"store": store, "key": "k"});
    tell(&main, "a", "set", set(None)).await.unwrap();
    assert_eq!(tell(&main, "a", "get", get("s")).await.unwrap(), json!({"value": "v"}));
    assert_eq!(tell(&main, "b", "get", get("s")).await.unwrap(), json!({"value": null}));
    assert_eq!(tell(&main, "reader", "get", get("s")).await.unwrap(), json!({"value": null}));
    for (id, operation, arguments, why) in [
        ("none", "get", get("s"), "PermissionDenied"),
        ("a", "get", get("t"), "`a` may not use the store `t`: its `grants.stores` lacks it"),
        ("a", "get", get("none"), "`a` may not use the store `none`"),
        ("b", "set", set(Some("a")), "`b` may not name another `owner`"),
        ("reader", "set", set(None), "granted for reading only"),
    ] {
        let refused = tell(&main, id, operation, arguments).await.unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    // Main names whose entries it means.
    let of_a = json!({"store": "s", "key": "k", "owner": "a"});
    assert_eq!(ask(&main, "get", of_a).await.unwrap(), json!({"value": "v"}));
    assert_eq!(ask(&main, "get", get("s")).await.unwrap(), json!({"value": null}));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn changes_are_events_where_the_operator_asks_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut told = store();
    told.events = true;
    let main =
        start(dir.path(), vec![puppet("a", &["told", "silent"])], &[("told", told), ("silent", store())])
            .await;
    let mut events = main.client().subscribe("store.changed.>").unwrap();
    for store in ["silent", "told"] {
        tell(&main, "a", "set", json!({"store": store, "key": "k", "value": "1"})).await.unwrap();
    }
    tell(&main, "a", "delete", json!({"store": "told", "key": "k"})).await.unwrap();
    for exists in [true, false] {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.unwrap().unwrap();
        assert_eq!(event.topic.as_str(), "store.changed.told");
        let payload: Value = serde_json::from_slice(&event.payload).unwrap();
        assert_eq!(payload, json!({"key": "k", "owner": "a", "exists": exists}));
    }
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn the_contract_describes_itself_where_there_are_stores() {
    let dir = tempfile::tempdir().unwrap();
    let main = start(dir.path(), Vec::new(), &[("s", store())]).await;
    let described = main.control().contracts();
    assert_eq!(described.len(), 1);
    assert_eq!((described[0].contract.as_str(), &*described[0].provider), ("store@1", "main"));
    let names: Vec<_> = described[0].document.methods.iter().map(|method| &*method.name).collect();
    assert_eq!(names, ["get", "set", "delete", "exists", "list", "increment", "compare-and-set"]);
    main.shutdown().await.unwrap();
    let main = start(dir.path(), Vec::new(), &[]).await;
    assert_eq!(main.control().contracts().len(), 0);
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn changes_without_room_are_counted_in_the_next_event() {
    // More than what waits to be published, and at a subscriber that holds its publishers back.
    const CHANGES: u64 = 4096 + 256 + 100;

    let dir = tempfile::tempdir().unwrap();
    let mut told = shared();
    (told.events, told.durable_within) = (true, Some(PATIENCE));
    let main = start(dir.path(), Vec::new(), &[("told", told)]).await;
    let slow = SubscribeOptions::default().policy(Policy::Block);
    let mut events = main.client().subscribe_with("store.changed.told", slow).unwrap();
    let set = async || ask(&main, "set", json!({"store": "told", "key": "k", "value": "1"})).await.unwrap();
    for _ in 0..CHANGES {
        set().await;
    }
    let (mut seen, mut lost) = (0, 0);
    let mut next = async || {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.unwrap().unwrap();
        (seen, lost) = (seen + 1, lost + event.lost);
        lost
    };
    for _ in 0..4096 {
        assert_eq!(next().await, 0);
    }
    // There is room again.
    set().await;
    while next().await == 0 {}
    assert_eq!(seen + lost, CHANGES + 1);
    main.shutdown().await.unwrap();
}
