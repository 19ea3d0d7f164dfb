//! A panic in a host function costs the calling extension, not Main. Alone in its process, because its `tracing`
//! subscriber, which gets every log line, panics.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "shared with the tests of extensions")]
#[path = "extensions/support.rs"]
mod support;

use std::fmt;

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use weir_host::{
    control::ExtensionState,
    limits::LimitValue,
    logs::{Level, Source},
};

use self::support::{puppet, puppet_with, reached, set, start, tell};

/// Lines that begin so panic the subscriber.
const FATAL: &str = "panic here";

struct Faulty;

impl Subscriber for Faulty {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Fatal);
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct Fatal;

impl Visit for Fatal {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let is_fatal = field.name() == "message" && format!("{value:?}").starts_with(FATAL);
        assert!(!is_fatal, "the subscriber's own fault");
    }
}

#[tokio::test]
async fn a_panic_in_a_host_function_costs_the_extension_that_called_it_and_not_main() {
    let _set_by_another_test = tracing::subscriber::set_global_default(Faulty);
    let caller = puppet_with("caller", |c| c.wants = vec!["faulty@1".parse().unwrap()]);
    let main = start(vec![puppet("faulty"), caller, puppet("other")]).await;
    // By each path of a line: `weir:iec/log` and WASI's streams.
    for command in ["log panic here", "print panic here\n", "eprint panic here\n"] {
        let others = async {
            for number in 0..100 {
                let text = number.to_string();
                assert_eq!(tell(&main, "other", &format!("echo {text}")).await.unwrap(), text);
            }
        };
        let call = format!("call faulty@1 run {command}");
        let (told, ()) = tokio::join!(tell(&main, "caller", &call), others);
        assert_eq!(told, Err("Error::Trapped".to_owned()), "{command:?}");
        let reason = reached(&main, "faulty", ExtensionState::Failed).await;
        assert_eq!(reason.as_deref(), Some("internal error: the subscriber's own fault"), "{command:?}");
        assert_eq!(main.client().waiters(), 0);
        let report = main.control().limits_of("faulty").await.unwrap();
        let in_flight = report.extensions.first().unwrap().limits.iter().find(|l| l.key == "in-flight");
        assert_eq!(in_flight.unwrap().used, Some(LimitValue::Count(0)));
        for id in ["caller", "other"] {
            assert_eq!(tell(&main, id, "echo still here").await.unwrap(), "still here");
        }
        main.control().start("faulty").await.unwrap();
        assert_eq!(tell(&main, "faulty", "echo again").await.unwrap(), "again");
    }
    let failures = main.control().status("faulty").unwrap().failures;
    assert_eq!(failures.len(), 3);
    for failure in &failures {
        assert_eq!(failure.cause, "internal error: the subscriber's own fault");
        let handling = failure.handling.as_ref().unwrap_or_else(|| panic!("{failures:?}"));
        assert_eq!((&*handling.operation, &*handling.sender), ("faulty@1 run", "caller"));
    }
    assert_eq!(failures.first().unwrap().hash.as_deref().map(str::len), Some(64));
    let mut lines = main.control().logs();
    lines.retain(|line| line.source == Source::Main && line.message.starts_with("failed: internal error"));
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line.level == Level::Error && &*line.extension == "faulty"));
}

#[tokio::test]
async fn a_panic_while_it_starts_is_the_end_of_that_start() {
    let mut late = puppet("late");
    set(&mut late, "start", "log panic here");
    let _set_by_another_test = tracing::subscriber::set_global_default(Faulty);
    let main = start(vec![late, puppet("other")]).await;
    let status = main.control().status("late").unwrap();
    assert_eq!(status.state, ExtensionState::Failed);
    assert_eq!(status.reason.as_deref(), Some("internal error: the subscriber's own fault"));
    assert_eq!(tell(&main, "other", "echo 1").await.unwrap(), "1");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_panic_over_the_last_words_of_one_that_ends_is_not_mains_end() {
    let _set_by_another_test = tracing::subscriber::set_global_default(Faulty);
    let main = start(vec![puppet("terse"), puppet("other")]).await;
    // Without a line feed: a line when the extension ends.
    assert_eq!(tell(&main, "terse", "print panic here").await.unwrap(), "");
    main.control().stop("terse").await.unwrap();
    let status = main.control().status("terse").unwrap();
    assert_eq!(status.state, ExtensionState::Stopped);
    assert_eq!(status.reason.as_deref(), Some("internal error: the subscriber's own fault"));
    assert_eq!(tell(&main, "other", "echo 1").await.unwrap(), "1");
}
