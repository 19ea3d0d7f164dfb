//! The embedder's and operator's hand on extensions: start, stop, states, failures and log lines.

mod audit;

use std::sync::Arc;

use tokio::sync::{broadcast, oneshot};
use weir_bus::{Bus, Error, MessageId};
use weir_config::Config;
pub use weir_guest::BeingCompiled;
use weir_guest::{Compilations, fuel_per_ms};
use weir_logs::{LogLine, Logs};
use weir_names::ExtensionId;
pub use weir_supervisor::{
    ControlError, ExtensionState, ExtensionStatus, FailureRecord, HandledMessage, HistoryEntry, HistoryEvent,
    NotReloaded, ReloadReport,
};
use weir_supervisor::{MainEvent, MainEvents, Order, OrderReplyTo, Roster, Unit, UntilEnded};

use self::audit::Audit;
pub use crate::plan::{PlannedChange, ReloadPlan, TakesEffect};
use crate::{
    limits::LimitsReport,
    load,
    logs::LogLines,
    plan,
    traffic::{self, JobStatus, QueueStatus, TopicsReport},
};

/// Starts, stops and reloads extensions and says how they are. Cheap to clone; usable from any thread.
#[derive(Clone, Debug)]
pub struct Control {
    bus: Arc<Bus>,
    roster: Arc<Roster>,
    commands: async_channel::Sender<Order>,
    events: broadcast::Sender<Arc<MainEvent>>,
    logs: Arc<Logs>,
    compilations: Arc<Compilations>,
    /// Who is named for what is asked through it.
    by: Arc<str>,
    /// Closed when the worker thread has ended. Nothing is ever sent.
    ended: async_channel::Receiver<()>,
}

impl Control {
    pub(crate) fn new(
        bus: Arc<Bus>,
        roster: Arc<Roster>,
        commands: async_channel::Sender<Order>,
        events: broadcast::Sender<Arc<MainEvent>>,
        logs: Arc<Logs>,
        compilations: Arc<Compilations>,
        ended: async_channel::Receiver<()>,
    ) -> Self {
        Self { bus, roster, commands, events, logs, compilations, by: "main".into(), ended }
    }

    /// The same for what somebody else asks for: the log and [`history`](Self::history) name them. Without it, they
    /// name `main`.
    #[must_use]
    pub fn by(&self, asker: impl Into<Arc<str>>) -> Self {
        Self { by: asker.into(), ..self.clone() }
    }

    /// Every extension, in the order of the configuration.
    #[must_use]
    pub fn extensions(&self) -> Vec<ExtensionStatus> {
        self.roster.listed().iter().map(|unit| self.status_of(unit)).collect()
    }

    /// Whether the configuration is being reloaded, as between [`MainEvent::Reloading`](MainEvent) and
    /// `Reloaded`: for whoever has missed events.
    #[must_use]
    pub fn is_reloading(&self) -> bool {
        self.roster.is_reloading()
    }

    /// One extension.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub fn status(&self, id: &str) -> Result<ExtensionStatus, ControlError> {
        self.unit(id).map(|unit| self.status_of(&unit))
    }

    fn status_of(&self, unit: &Unit) -> ExtensionStatus {
        let mut status = unit.status();
        if status.state == ExtensionState::Starting {
            status.compiling = self.compilations.of(status.id.as_str());
        }
        status
    }

    /// What happened to an extension, oldest first: the last 100 events.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub fn history(&self, id: &str) -> Result<Vec<HistoryEntry>, ControlError> {
        self.unit(id).map(|unit| unit.history())
    }

    /// The limits of every extension, in the order of the configuration, with where each comes from and
    /// what is used of it. The first time this measures what fuel takes in time on this machine, for
    /// some ten milliseconds on a thread of its own.
    pub async fn limits(&self) -> LimitsReport {
        self.limits_now(fuel_per_ms().await, None)
    }

    /// [`limits`](Self::limits) of one extension alone.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub async fn limits_of(&self, id: &str) -> Result<LimitsReport, ControlError> {
        self.unit(id)?;
        Ok(self.limits_now(fuel_per_ms().await, Some(id)))
    }

    /// The limits of all extensions or one, at once, with what [`fuel_per_ms`] has measured. With
    /// thousands of extensions this takes milliseconds: call it off the worker thread.
    #[must_use]
    pub fn limits_now(&self, fuel_per_ms: Option<u64>, id: Option<&str>) -> LimitsReport {
        let wanted = |other: &ExtensionId| id.is_none_or(|id| other.as_str() == id);
        let beside = self.roster.memory_beside_extensions();
        LimitsReport::running(&self.roster.listed(), &self.roster.main(), fuel_per_ms, beside, wanted)
    }

    /// Starts an extension, after what it requires; ends when it is ready. One that runs already is
    /// left as it is.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotStarted`] with the reason if it does not become ready, or is quarantined.
    pub async fn start(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "start", Order::Start).await
    }

    /// Asks an extension to stop; ends when it has ended, its stop deadline included.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub async fn stop(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "stop", Order::Stop).await
    }

    /// Stops an extension if it runs, and starts it with its component read anew and nothing held
    /// against it: neither its failures nor that it is quarantined; ends when it is ready.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub async fn restart(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "restart", Order::Restart).await
    }

    /// Loads an extension's component anew while it serves, and exchanges its instance in the way of its
    /// [`ReloadMode`](crate::config::ReloadMode); ends when the new one is ready, and with
    /// [`Overlap`](crate::config::ReloadMode::Overlap) the old one has ended. Requests wait meanwhile. One that
    /// does not run is started with the new component the next time; one that waits for its restart, or
    /// has failed, is started now. What is held against it stays: one that is quarantined is not started.
    /// To say that it is interrupted is not to be ready, where the version before was. One that never was is ended
    /// first in either mode, since it serves nobody.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotReloaded`] with the reason if the new one does not come up: then the version
    /// before serves on, or is started again if it was ready before, also if it waited for its restart;
    /// after one that never was, or has failed for good, the new one stays. [`ControlError::Reloading`]
    /// if it is being reloaded already.
    pub async fn reload_extension(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "reload", Order::Reload).await
    }

    /// Reads the configuration again from the file that Main was started with, and applies what has
    /// changed, in it or in the components that it names, and nothing else. First ends what it no longer
    /// names, then starts what is new, then exchanges what has changed as
    /// [`reload_extension`](Self::reload_extension) does; ends when all that is done.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotConfigured`] if something is wrong with what was read: nothing is applied then.
    /// [`ControlError::NoFile`] if the configuration was made in Rust: see
    /// [`reload_with`](Self::reload_with). That an extension does not come up is no error: the report
    /// says so.
    pub async fn reload(&self) -> Result<ReloadReport, ControlError> {
        self.configure(None).await
    }

    /// What [`reload`](Self::reload) would do now, of all extensions or of this one, and touches nothing. That a
    /// component compiles is not known before. Reads files: call it off the worker thread.
    ///
    /// # Errors
    ///
    /// [`ControlError::NoFile`] if the configuration was made in Rust, and [`ControlError::Unknown`] if no extension
    /// has this id, neither in Main nor in the file. That something is wrong with the file is no error: the plan says so.
    pub fn plan(&self, id: Option<&str>) -> Result<ReloadPlan, ControlError> {
        plan::plan(&self.roster, id)
    }

    /// [`reload`](Self::reload) with a configuration at hand.
    ///
    /// # Errors
    ///
    /// As [`reload`](Self::reload).
    pub async fn reload_with(&self, mut config: Config) -> Result<ReloadReport, ControlError> {
        load::complete(&mut config);
        self.configure(Some(Box::new(config))).await
    }

    async fn configure(&self, config: Option<Box<Config>>) -> Result<ReloadReport, ControlError> {
        let mut audit = Audit::new(&self.by, "reload of the configuration");
        let by = self.by.clone();
        let report = self.ask(|reply| Order::Configure(config, by, reply)).await.flatten();
        audit.end(&report, |report| {
            let ReloadReport { added, removed, changed, failed, .. } = report;
            let [added, removed, changed] = [added, removed, changed].map(Vec::len);
            format!("{added} added, {removed} removed, {changed} changed, {} failed", failed.len())
        });
        report
    }

    /// Ends when the supervisor, on the worker thread, has answered: as long as extensions are looked
    /// after, be it to stop them. So it says whether Main is live, to a watchdog for one.
    ///
    /// # Errors
    ///
    /// [`ControlError::ShuttingDown`] when Main has ended.
    pub async fn ping(&self) -> Result<(), ControlError> {
        self.ask(Order::Ping).await
    }

    /// Every topic that is known and every subscription, with rates, lags and losses.
    #[must_use]
    pub fn topics(&self) -> TopicsReport {
        traffic::topics(&self.bus)
    }

    /// Every shared queue, with rates, depths and losses, by name.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueStatus> {
        traffic::queues(&self.bus)
    }

    /// The jobs that wait in a queue, first to last, at most so many.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if no such queue is configured.
    pub fn queue_jobs(&self, queue: &str, max: usize) -> Result<Vec<JobStatus>, Error> {
        traffic::jobs(&self.bus, queue, max)
    }

    /// Puts dead letters that wait in this queue back into the queues where they died, to be delivered as
    /// if they were new: the one with this id, or all. Says how many those were.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if there is no such queue, or no such dead letter in it. [`Error::Overloaded`]
    /// if there is no room for one, and [`Error::NoProvider`] if the queue where it died is no longer
    /// configured: those that cannot go back stay, and all others are back. Of several reasons, the first
    /// is given.
    pub fn requeue(&self, queue: &str, id: Option<MessageId>) -> Result<u64, Error> {
        let queue = self.bus.queue(queue)?;
        let requeued = self.bus.requeue(&queue, id);
        Audit::new(&self.by, format!("requeue of `{}`", queue.name()))
            .end(&requeued, |number| format!("{number} jobs are back"));
        requeued
    }

    /// What happens from now on.
    #[must_use]
    pub fn events(&self) -> MainEvents {
        MainEvents(UntilEnded::new(self.events.subscribe(), self.ended.clone()))
    }

    /// The last log lines of all extensions, oldest first: up to 256 KiB of them. When there would be
    /// more, the extension that has most of it loses its oldest line first; what Main says about an
    /// extension is counted apart from what the extension says itself.
    #[must_use]
    pub fn logs(&self) -> Vec<Arc<LogLine>> {
        self.logs.follow().0
    }

    /// The last log lines, and those that follow them, with none missed between.
    #[must_use]
    pub fn follow_logs(&self) -> (Vec<Arc<LogLine>>, LogLines) {
        let (kept, next) = self.logs.follow();
        (kept, LogLines::new(UntilEnded::new(next, self.ended.clone())))
    }

    /// Asks Main to stop every extension and end; ends when it was asked, not when it has ended.
    pub async fn begin_shutdown(&self) {
        let asked = self.shut_down().await;
        Audit::new(&self.by, "shutdown").end(&asked, |()| "begun".to_owned());
    }

    pub(crate) async fn shut_down(&self) -> Result<(), ControlError> {
        self.commands.send(Order::Shutdown).await.map_err(|_| ControlError::ShuttingDown)
    }

    /// Waits until Main has ended.
    pub async fn ended(&self) {
        // Nothing is sent: it fails when the worker lets go of its end.
        let _ended = self.ended.recv().await;
    }

    pub(crate) fn begin_shutdown_now(&self) {
        // With the queue closed, the supervisor reads what is left and then shuts down.
        self.commands.close();
    }

    fn unit(&self, id: &str) -> Result<Arc<Unit>, ControlError> {
        self.roster.find(id).ok_or_else(|| ControlError::Unknown(id.to_owned()))
    }

    async fn command(
        &self,
        id: &str,
        order: &'static str,
        command: impl Fn(ExtensionId, OrderReplyTo<()>) -> Order,
    ) -> Result<(), ControlError> {
        let unit = self.unit(id)?;
        let mut audit = Audit::of(&self.by, order, &self.logs, unit.id());
        // Those that are several take turns, so that some serve at any moment.
        let mut outcome = Ok(());
        for unit in self.roster.instances(id) {
            unit.asked(order, &self.by);
            let done = self.ask(|reply| command(unit.id().clone(), reply)).await.flatten();
            outcome = outcome.and(done);
        }
        audit.end(&outcome, |()| "done".to_owned());
        outcome
    }

    async fn ask<T>(&self, command: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, ControlError> {
        let (reply, mut answer) = oneshot::channel();
        self.commands.send(command(reply)).await.map_err(|_| ControlError::ShuttingDown)?;
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer.ok(),
            // A command that came as the supervisor ended is read by nobody, and dropped by nobody.
            () = self.ended() => answer.try_recv().ok(),
        };
        answer.ok_or(ControlError::ShuttingDown)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use weir_bus::{InboxLimits, PeerLimits};

    #[tokio::test]
    async fn a_command_that_nobody_reads_any_more_is_answered_at_the_end() {
        let (commands, _unread) = async_channel::bounded(1);
        let (ending, ended) = async_channel::bounded(1);
        let (events, _) = broadcast::channel(1);
        let limits = PeerLimits {
            message_size: 1024,
            inbox: InboxLimits { messages: 1, bytes: 1024 },
            when_full: weir_names::RequestPolicy::Reject,
            request_timeout: Duration::from_secs(1),
            subscriptions: 1,
        };
        let control = Control::new(
            Arc::new(Bus::new(limits, Box::new(|_, _| {}))),
            Arc::new(Roster::new(Arc::default(), Vec::new(), Config::default(), None)),
            commands,
            events,
            Arc::default(),
            Arc::default(),
            ended,
        );
        let reload = tokio::spawn(async move { control.reload().await });
        tokio::task::yield_now().await;
        drop(ending);
        assert_eq!(reload.await.unwrap(), Err(ControlError::ShuttingDown));
    }
}
