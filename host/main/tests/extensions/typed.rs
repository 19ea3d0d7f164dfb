//! Typed calls, and operations looked up once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::sync::Barrier;
use weir_host::{CallOptions, Config, Contract, Error, Main, Operation, Service, names::codec};

use super::support::{PATIENCE, config};

const CONTRACT: Contract = Contract::new("sums@1");
const ADD: Operation<(u32, u32), u32> = CONTRACT.operation("add");
const NEVER: Operation<(), ()> = CONTRACT.operation("never");
const ECHO: Operation<Vec<u8>, Vec<u8>, codec::Bytes> = CONTRACT.bytes("echo");

async fn main() -> Main {
    let sums = Service::new("sums@1".parse().unwrap())
        .on("add".parse().unwrap(), async |request| {
            let (a, b): (u32, u32) = serde_json::from_slice(&request.payload).unwrap();
            Ok((a + b).to_string().into())
        })
        .on("echo".parse().unwrap(), async |request| Ok(request.payload))
        .on("never".parse().unwrap(), |_| std::future::pending());
    Main::builder(config(Vec::new())).serve(sums).start().await.unwrap()
}

#[tokio::test]
async fn a_typed_call_takes_and_gives_values() {
    let main = main().await;
    assert_eq!(main.client().call_typed(ADD, &(2, 3)).await, Ok(5));
    assert_eq!(main.client().call_typed(ECHO, &vec![0, 255]).await, Ok(vec![0, 255]));
    let within = CallOptions::default().timeout(Duration::from_millis(1));
    assert_eq!(main.client().call_typed_with(NEVER, &(), within).await, Err(Error::Timeout));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn values_that_do_not_fit_are_refused_with_the_name_of_the_operation() {
    /// A value that cannot be encoded.
    struct Unspeakable;

    impl Serialize for Unspeakable {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("unspeakable"))
        }
    }

    const NO_KEYS: Operation<Unspeakable, u32> = CONTRACT.operation("add");
    const NO_MAP: Operation<(u32, u32), BTreeMap<String, u32>> = CONTRACT.operation("add");

    let main = main().await;
    let said = |error: Error| {
        assert!(matches!(error, Error::Invalid(_)), "{error:?}");
        error.to_string()
    };
    insta::assert_snapshot!(
        said(main.client().call_typed(NO_KEYS, &Unspeakable).await.unwrap_err()),
        @"invalid: the arguments of `sums@1 add` cannot be encoded: json: unspeakable"
    );
    insta::assert_snapshot!(
        said(main.client().call_typed(NO_MAP, &(2, 3)).await.unwrap_err()),
        @"invalid: the answer of `sums@1 add` cannot be decoded: invalid type: integer `5`, expected a map at line 1 column 1"
    );
    main.shutdown().await.unwrap();
}

/// The handler answers only when both are there, so neither call waits for the other.
#[tokio::test]
async fn tasks_share_an_operation_that_was_looked_up_once() {
    let both = Arc::new(Barrier::new(2));
    let meet = Service::new("meet@1".parse().unwrap()).on("here".parse().unwrap(), move |request| {
        let both = both.clone();
        async move {
            both.wait().await;
            Ok(request.payload)
        }
    });
    let main = Main::builder(Config::default()).serve(meet).start().await.unwrap();
    let here = main.client().operation("meet@1", "here").unwrap();
    let (one, two) = tokio::join!(here.call_within(PATIENCE, "1"), here.call_within(PATIENCE, "2"));
    assert_eq!((one.unwrap(), two.unwrap()), ("1".into(), "2".into()));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn an_operation_that_was_looked_up_once_is_called_with_a_timeout() {
    let main = main().await;
    let never = main.client().operation("sums@1", "never").unwrap();
    assert_eq!(never.call_within(Duration::from_millis(1), "").await, Err(Error::Timeout));
    main.shutdown().await.unwrap();
}
