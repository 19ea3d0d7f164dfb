//! Main without async code: in plain loops, beside async code, never inside it.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use weir_host::{
    Builder, CallOptions, Client, Error, Main, Service,
    blocking::{BlockingError, wait, wait_for},
    control::ControlError,
    limits::LimitValue,
};

use super::support::{PATIENCE, config, puppet};

fn start(services: Vec<Service>) -> Main {
    let builder = Main::builder(config(vec![puppet("a")]));
    wait(services.into_iter().fold(builder, Builder::serve).start()).unwrap()
}

fn echo(client: &Client, text: &str) -> Result<bytes::Bytes, BlockingError<Error>> {
    wait(client.call("a@1", "run", format!("echo {text}")))
}

#[test]
fn a_plain_loop_calls_ten_thousand_times() {
    let main = start(Vec::new());
    let client = main.client().clone();
    for number in 0..10_000 {
        let text = number.to_string();
        assert_eq!(echo(&client, &text).unwrap(), text);
    }
    main.shutdown_blocking().unwrap();
    assert!(matches!(echo(&client, ""), Err(BlockingError::Call(Error::Ended))));
}

#[test]
fn limits_are_reported_without_a_runtime() {
    let main = start(Vec::new());
    let control = main.control();
    let (all, one) =
        (wait_for(Duration::MAX, control.limits()).unwrap().unwrap(), wait(control.limits_of("a")).unwrap());
    assert_eq!(all.extensions.len(), 1);
    assert!(all.fuel_per_ms.is_some_and(|fuel| fuel > 0), "{all:?}");
    let ready = one.extensions[0].limits.iter().find(|limit| limit.key == "ready-timeout").unwrap();
    assert_ne!(ready.used, Some(LimitValue::Time(Duration::ZERO)), "it has started");
    let unknown = wait(control.limits_of("nobody"));
    assert!(matches!(unknown, Err(BlockingError::Call(ControlError::Unknown(_)))), "{unknown:?}");
}

#[test]
fn many_threads_call_at_once() {
    let main = start(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let client = main.client().clone();
            scope.spawn(move || {
                for number in 0..200 {
                    let text = format!("{thread} {number}");
                    assert_eq!(echo(&client, &text).unwrap(), text);
                }
            });
        }
    });
}

#[test]
fn it_works_on_a_blocking_thread_of_an_async_runtime() {
    let main = start(Vec::new());
    let client = main.client().clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let answer = runtime.block_on(async { tokio::task::spawn_blocking(move || echo(&client, "1")).await });
    assert_eq!(answer.unwrap().unwrap(), "1");
}

#[test]
fn inside_an_async_task_it_is_an_error_that_says_what_to_do() {
    let main = start(Vec::new());
    let (client, control) = (main.client().clone(), main.control().clone());
    let assert_refused = move || {
        let error = echo(&client, "1").unwrap_err();
        assert!(matches!(error, BlockingError::InAsync));
        assert_eq!(
            error.to_string(),
            "blocking call from inside an async task; use the async form, or move the call to a thread of its own"
        );
        assert!(matches!(wait(control.stop("a")), Err(BlockingError::InAsync)));
        let mut subscriber = client.subscribe("t").unwrap();
        let next = wait_for(Duration::from_secs(1), subscriber.next());
        assert!(matches!(next, Err(BlockingError::InAsync)));
    };
    for mut builder in
        [tokio::runtime::Builder::new_current_thread(), tokio::runtime::Builder::new_multi_thread()]
    {
        let runtime = builder.build().unwrap();
        runtime.block_on(async { assert_refused() });
        let task = assert_refused.clone();
        runtime.block_on(async { tokio::spawn(async move { task() }).await }).unwrap();
    }
    assert_eq!(echo(main.client(), "still").unwrap(), "still");
}

#[test]
fn a_shutdown_inside_an_async_task_is_an_error_and_main_ends_by_itself() {
    let main = start(Vec::new());
    let control = main.control().clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert!(matches!(main.shutdown_blocking(), Err(BlockingError::InAsync)));
        control.ended().await;
    });
}

#[test]
fn main_dropped_on_its_own_worker_ends_without_waiting_for_itself() {
    let slot = Arc::new(Mutex::new(None::<Main>));
    let in_handler = slot.clone();
    let service = Service::new("service@1".parse().unwrap()).on("drop".parse().unwrap(), move |_| {
        drop(in_handler.lock().unwrap().take());
        async { Ok("dropped".into()) }
    });
    let main = start(vec![service]);
    let (client, control) = (main.client().clone(), main.control().clone());
    *slot.lock().unwrap() = Some(main);
    assert_eq!(wait(client.call("service@1", "drop", "")).unwrap(), "dropped");
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(control.ended());
}

#[test]
fn inside_a_handler_on_the_worker_it_is_an_error_and_on_the_pool_it_works() {
    let client = Arc::new(OnceLock::<Client>::new());
    let (on_worker, on_pool) = (client.clone(), client.clone());
    let service = Service::new("service@1".parse().unwrap())
        .on("worker".parse().unwrap(), move |_| {
            let refused = matches!(echo(on_worker.get().unwrap(), "1"), Err(BlockingError::InAsync));
            async move { Ok(refused.to_string().into()) }
        })
        .on_blocking("pool".parse().unwrap(), move |_| {
            Ok(echo(on_pool.get().unwrap(), "from the pool").unwrap())
        });
    let main = start(vec![service]);
    client.set(main.client().clone()).unwrap();
    assert_eq!(wait(main.client().call("service@1", "worker", "")).unwrap(), "true");
    assert_eq!(wait(main.client().call("service@1", "pool", "")).unwrap(), "from the pool");
}

#[test]
fn a_call_ends_at_its_deadline_while_its_handler_keeps_the_worker() {
    let lock = Arc::new(Mutex::new(()));
    let wanted = lock.clone();
    let service = Service::new("service@1".parse().unwrap()).on("wait".parse().unwrap(), move |_| {
        drop(wanted.lock().unwrap());
        async { Ok("".into()) }
    });
    let main = start(vec![service]);
    let soon = CallOptions::default().timeout(Duration::from_millis(50));
    // The handler waits for the lock that its caller has.
    let held = lock.lock().unwrap();
    let call = || main.client().call_with("service@1", "wait", "", soon.clone());
    assert_eq!(wait_for(PATIENCE, call()).unwrap(), Some(Err(Error::Timeout)));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let answer = runtime.block_on(async { tokio::time::timeout(PATIENCE, call()).await });
    assert_eq!(answer.unwrap(), Err(Error::Timeout));
    drop(held);
    assert_eq!(echo(main.client(), "1").unwrap(), "1");
}

#[test]
fn a_subscriber_waits_for_as_long_as_it_is_told() {
    let main = start(Vec::new());
    let mut subscriber = main.client().subscribe("t").unwrap();
    assert_eq!(wait_for(Duration::from_millis(1), subscriber.next()).unwrap(), None);
    wait(main.client().publish("t", "1")).unwrap();
    let event = wait_for(Duration::from_secs(60), subscriber.next()).unwrap();
    assert_eq!(event.flatten().unwrap().payload, "1");
}
