//! The general promise: Main stays up, the neighbour is served, and one line and one record tell what happened.

use std::{pin::pin, sync::Arc};

use futures_util::future::{Either, select};
use weir_host::{
    ExtensionConfig, Main, Service,
    control::{ExtensionState, FailureRecord},
    logs::{Level, LogLine, Source},
};

use super::support::{self, puppet};

/// Main with hostile extensions and a good one.
pub(crate) struct Stage {
    pub(crate) main: Main,
}

impl Stage {
    pub(crate) async fn start(extensions: Vec<ExtensionConfig>) -> Self {
        Self::with(extensions, None).await
    }

    pub(crate) async fn with(mut extensions: Vec<ExtensionConfig>, service: Option<Service>) -> Self {
        extensions.push(puppet("good"));
        let builder = support::builder(extensions);
        let main = service.into_iter().fold(builder, weir_host::Builder::serve).start().await.unwrap();
        Self { main }
    }

    /// Gives `hostile` a command; returns the outcome.
    pub(crate) async fn tell(&self, command: &str) -> Result<String, String> {
        support::tell(&self.main, "hostile", command).await
    }

    /// Has the neighbour work meanwhile; returns the result and the neighbour's answers.
    pub(crate) async fn beside<T>(&self, happens: impl Future<Output = T>) -> (T, u32) {
        let mut answers = 0;
        let mut happens = pin!(happens);
        loop {
            let echo = pin!(support::tell(&self.main, "good", "echo here"));
            match select(happens, echo).await {
                Either::Left((happened, echo)) => {
                    assert_eq!(echo.await, Ok("here".to_owned()), "the neighbour is served");
                    return (happened, answers + 1);
                }
                Either::Right((echoed, unfinished)) => {
                    assert_eq!(echoed, Ok("here".to_owned()), "the neighbour is served");
                    answers += 1;
                    happens = unfinished;
                }
            }
        }
    }

    /// Waits for a failure, and checks all reports of it.
    pub(crate) async fn failed(&self, id: &str, fault: &Fault<'_>) -> FailureRecord {
        support::reached(&self.main, id, ExtensionState::Failed).await;
        let status = self.main.control().status(id).unwrap();
        assert_eq!(status.failures.len(), 1, "{:?}", status.failures);
        let record = status.failures.into_iter().next().unwrap();
        assert_eq!(record.cause, fault.cause, "of `{id}`");
        assert_eq!(record.extension.as_str(), id);
        assert_eq!(record.hash.as_deref().map(str::len), (!fault.unread).then_some(64));
        if let Some(within) = fault.within {
            assert!(record.trace.iter().any(|name| name.contains(within)), "{:?}", record.trace);
        }
        let handling = record.handling.as_ref();
        assert_eq!(handling.map(|h| (&*h.operation, &*h.sender)), fault.handling);

        let limit = record.limit.as_ref();
        assert_eq!(limit.map(|hit| (hit.name.as_str(), hit.used, hit.allowed)), fault.limit, "of `{id}`");

        let mut lines = self.said_by_main(id);
        lines.retain(|line| line.message.starts_with("failed: "));
        let [line] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((line.level, &*line.message), (Level::Error, &*format!("failed: {}", fault.cause)));
        let field = |name| line.fields.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
        assert_eq!(field("handling"), fault.handling.map(|(operation, _)| operation));
        assert_eq!(field("sender"), fault.handling.map(|(_, sender)| sender));
        assert_eq!(field("message"), handling.and_then(|h| h.message).map(|id| id.to_string()).as_deref());
        assert_eq!(field("trace"), (!record.trace.is_empty()).then(|| record.trace.join(" < ")).as_deref());
        assert_eq!((field("then"), record.then), (Some("failed"), ExtensionState::Failed));
        assert_eq!(field("hash"), record.hash.as_deref());

        self.stands().await;
        record
    }

    pub(crate) async fn finished(&self, id: &str) {
        let mut events = self.main.control().events();
        loop {
            let status = self.status(id);
            assert_ne!(status.state, ExtensionState::Failed, "`{id}`: {:?}", status.reason);
            if status.state == ExtensionState::Stopped {
                return;
            }
            events.next().await.unwrap();
        }
    }

    pub(crate) async fn stands(&self) {
        assert_eq!(support::tell(&self.main, "good", "echo still here").await.unwrap(), "still here");
        assert_eq!(self.main.control().status("good").unwrap().failures, []);
    }

    pub(crate) fn said_by_main(&self, id: &str) -> Vec<Arc<LogLine>> {
        self.lines(id, Source::Main)
    }

    pub(crate) fn written_by(&self, id: &str, source: Source) -> Vec<String> {
        self.lines(id, source).iter().map(|line| line.message.clone()).collect()
    }

    fn lines(&self, id: &str, source: Source) -> Vec<Arc<LogLine>> {
        let mut lines = self.main.control().logs();
        lines.retain(|line| line.source == source && &*line.extension == id);
        lines
    }

    pub(crate) fn status(&self, id: &str) -> weir_host::control::ExtensionStatus {
        self.main.control().status(id).unwrap()
    }
}

/// What must be reported of a failure.
#[derive(Default)]
pub(crate) struct Fault<'a> {
    cause: &'a str,
    handling: Option<(&'a str, &'a str)>,
    within: Option<&'a str>,
    limit: Option<(&'a str, u64, u64)>,
    unread: bool,
}

impl<'a> Fault<'a> {
    pub(crate) fn new(cause: &'a str) -> Self {
        Self { cause, ..Self::default() }
    }

    /// The file was not read.
    pub(crate) fn unread(self) -> Self {
        Self { unread: true, ..self }
    }

    /// With a request of Main's client in hand.
    pub(crate) fn asked(self) -> Self {
        Self { handling: Some(("hostile@1 run", "main")), ..self }
    }

    pub(crate) fn limit(self, name: &'a str, used: u64, allowed: u64) -> Self {
        Self { limit: Some((name, used, allowed)), ..self }
    }

    /// In a function of this name.
    pub(crate) fn within(self, function: &'a str) -> Self {
        Self { within: Some(function), ..self }
    }
}

pub(crate) fn hostile() -> ExtensionConfig {
    let mut hostile = support::extension("hostile", "hostile");
    hostile.fulfills = vec!["hostile@1".parse().unwrap()];
    support::set(&mut hostile, "contract", "hostile@1");
    hostile
}

pub(crate) fn hostile_with(change: impl FnOnce(&mut ExtensionConfig)) -> ExtensionConfig {
    let mut hostile = hostile();
    change(&mut hostile);
    hostile
}
