//! Control of extensions: start, stop, reload, state, failures and log lines.

mod audit;
mod reload;
mod versions;

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use tokio::sync::{broadcast, oneshot};
use weir_bus::{Bus, Error, MessageId, RecordedSpans};
use weir_guest::{Admission, Compilations, fuel_per_ms};
pub use weir_hooks::HookCount;
use weir_hooks::HookCounts;
use weir_logs::{LogLine, Logs};
pub use weir_metrics::DurationsSnapshot;
use weir_names::{ExtensionId, MAIN, TraceId};
use weir_openrpc::{Descriptions, Document};
pub use weir_reports::{
    BeingCompiled, DataSnapshot, DataStatus, ExtensionState, ExtensionStatus, FailureRecord, HandledMessage,
    HttpAnswers, HttpServerStatus, OperationStatus, ServingVersion, Standing, VersionChange, VersionFigures,
    VersionStatus, VersionsStatus,
};
use weir_supervisor::{Change, MainEvent, MainEvents, Order, Roster, Unit, UntilEnded};
pub use weir_supervisor::{ControlError, HistoryEntry, HistoryEvent, Holds, NotReloaded, ReloadReport};
pub use weir_versions::VersionError;
use weir_versions::Versions;

use self::audit::Audit;
pub use crate::{
    contracts::DescribedContract,
    parts::{PartState, PartStatus},
    plan::{PlannedChange, PlannedFault, PlannedInstead, PlannedStage, ReloadPlan, TakesEffect},
};
use crate::{
    contracts::{self, Provider},
    limits::LimitsReport,
    logs::LogLines,
    parts::Parts,
    peers::{Registry, Session},
    stores::Stores,
    traffic::{JobStatus, QueueStatus, TopicsReport},
};

/// Starts, stops, reloads and inspects extensions. Cheap to clone; works on any thread.
#[derive(Clone, Debug)]
pub struct Control {
    pub(crate) bus: Arc<Bus>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) peers: Arc<Registry>,
    pub(crate) commands: async_channel::Sender<Order>,
    pub(crate) events: broadcast::Sender<Arc<MainEvent>>,
    pub(crate) logs: Arc<Logs>,
    pub(crate) compilations: Arc<Compilations>,
    pub(crate) stores: Stores,
    /// What the program itself describes of the contracts that it serves.
    pub(crate) described: Arc<[Provider]>,
    pub(crate) versions: Arc<Versions>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) hooks: HookCounts,
    pub(crate) parts: Parts,
    /// The asker that the log and the history name.
    pub(crate) by: Arc<str>,
    /// Closes when the worker thread has ended. Nothing is ever sent.
    pub(crate) ended: async_channel::Receiver<()>,
}

impl Control {
    /// Acts for another asker: the log and [`history`](Self::history) name `asker` instead of `main`.
    #[must_use]
    pub fn by(&self, asker: impl Into<Arc<str>>) -> Self {
        Self { by: asker.into(), ..self.clone() }
    }

    /// The status of every extension, in the order of the configuration.
    #[must_use]
    pub fn extensions(&self) -> Vec<ExtensionStatus> {
        self.roster.listed().iter().map(|unit| self.status_of(unit)).collect()
    }

    /// The failure that ended a request, by the number that [`Call::id`](crate::client::Call::id) told. The last 16
    /// failures of each extension are kept.
    #[must_use]
    pub fn failure_of(&self, message: MessageId) -> Option<FailureRecord> {
        self.roster.failure_of(message)
    }

    /// The parts of Main that serve, such as the gateway, in alphabetical order. They are started again when they end.
    #[must_use]
    pub fn parts(&self) -> Vec<PartStatus> {
        self.parts.list()
    }

    /// Whether the configuration is being reloaded, as between [`MainEvent::Reloading`](MainEvent) and `Reloaded`.
    /// For listeners that missed events.
    #[must_use]
    pub fn is_reloading(&self) -> bool {
        self.roster.is_reloading()
    }

    /// The status of one extension.
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

    /// How often the hooks of configured directories have ended, and how.
    #[must_use]
    pub fn hook_counts(&self) -> Vec<HookCount> {
        self.hooks.all()
    }

    /// The last 100 events of an extension, oldest first.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub fn history(&self, id: &str) -> Result<Vec<HistoryEntry>, ControlError> {
        self.unit(id).map(|unit| unit.history())
    }

    /// What became of the requests for each operation, by provider, contract and operation. Operations that nobody asked
    /// for are left out, and so are those of extensions that are configured no more. For thousands of operations this
    /// takes milliseconds: call it off the worker thread.
    #[must_use]
    pub fn operations(&self) -> Vec<OperationStatus> {
        let listed = self.roster.listed();
        let extensions: HashSet<&str> = listed.iter().map(|unit| unit.id().as_str()).collect();
        let is_there =
            |provider: &str| provider == MAIN || provider.contains(':') || extensions.contains(provider);
        let all = self.bus.operations().into_iter().filter(|status| is_there(&status.provider));
        // An extension that was removed and added again has two entries: the later one counts.
        let name = |status: &OperationStatus| {
            (status.provider.clone(), status.contract.clone(), status.operation.clone())
        };
        all.map(|status| (name(&status), status)).collect::<BTreeMap<_, _>>().into_values().collect()
    }

    /// Up to `max` spans of sampled messages, after the one with this number, of one trace or all. Main keeps the last
    /// ones, `main.trace-spans` of them.
    #[must_use]
    pub fn spans(&self, after: u64, trace: Option<TraceId>, max: usize) -> RecordedSpans {
        self.bus.spans(after, trace, max)
    }

    /// How many spans were recorded so far, and how many of these were dropped to make room.
    #[must_use]
    pub fn span_counts(&self) -> (u64, u64) {
        self.bus.span_counts()
    }

    /// The limits of every extension, in the order of the configuration, with the source and use of each. The first
    /// call measures fuel against time, for some ten milliseconds on a thread of its own.
    pub async fn limits(&self) -> LimitsReport {
        self.limits_now(fuel_per_ms().await, None)
    }

    /// The limits of one extension, with the source and use of each. The first call takes as long as that of
    /// [`limits`](Self::limits).
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub async fn limits_of(&self, id: &str) -> Result<LimitsReport, ControlError> {
        self.unit(id)?;
        Ok(self.limits_now(fuel_per_ms().await, Some(id)))
    }

    /// The limits of all extensions or one, without waiting for the measure of [`fuel_per_ms`]. None for an unknown
    /// `id`. For thousands of extensions this takes milliseconds: call it off the worker thread.
    #[must_use]
    pub fn limits_now(&self, fuel_per_ms: Option<u64>, id: Option<&str>) -> LimitsReport {
        let wanted = |other: &ExtensionId| id.is_none_or(|id| other.as_str() == id);
        let beside = self.roster.memory_beside_extensions();
        LimitsReport::running(&self.roster.listed(), &self.roster.main(), fuel_per_ms, beside, wanted)
    }

    /// Starts an extension and what it requires, and waits until it is ready or interrupted. A running extension is
    /// left as it is.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotStarted`] with the reason if it is quarantined or does not come up,
    /// [`ControlError::Unknown`] if no extension has this id, and [`ControlError::ShuttingDown`].
    pub async fn start(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "start", Change::Start).await
    }

    /// Stops an extension, and waits until it has ended, at the latest at its stop deadline.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id, and [`ControlError::ShuttingDown`].
    pub async fn stop(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "stop", Change::Stop).await
    }

    /// Starts an extension anew from its component as it is now, and waits until it is ready or interrupted. A ready
    /// instance serves on until the component is loaded. Forgets the extension's failures and lifts its quarantine.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotStarted`], [`ControlError::Unknown`] or [`ControlError::ShuttingDown`], as for
    /// [`start`](Self::start).
    pub async fn restart(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "restart", Change::Restart).await
    }

    /// Loads an extension's component anew while it serves, then replaces the instance as its
    /// [`ReloadMode`](crate::config::ReloadMode) says. Waits until the new instance is ready and, with
    /// [`Overlap`](crate::config::ReloadMode::Overlap), the old one has ended. Requests wait meanwhile.
    ///
    /// An extension that backs off or has failed starts now. One that is stopped or quarantined gets the new
    /// component at its next start. Failures still count. An instance that was never ready is ended first in either
    /// mode. After a version that was ready, the new one must become ready too: interrupted does not count.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotReloaded`] with the reason if the new version does not come up. A version that was ready
    /// before serves on or starts again, even if it was backing off. If it was never ready or had failed for good, the
    /// new version stays. [`ControlError::Reloading`] if a reload of it is under way. [`ControlError::Unknown`] if no
    /// extension has this id, and [`ControlError::ShuttingDown`].
    pub async fn reload_extension(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "reload", Change::Reload).await
    }

    /// Reloads an extension as [`reload_extension`](Self::reload_extension) does, without probation: the version may
    /// be one that was refused, and is proven as soon as it is ready.
    ///
    /// # Errors
    ///
    /// The errors of [`reload_extension`](Self::reload_extension).
    pub async fn reload_extension_now(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, "reload", Change::ReloadNow).await
    }

    /// Waits for an answer of the supervisor: a sign of life, for a watchdog. It comes even while Main shuts down.
    ///
    /// # Errors
    ///
    /// [`ControlError::ShuttingDown`] when Main has ended.
    pub async fn ping(&self) -> Result<(), ControlError> {
        self.ask(Order::Ping).await
    }

    /// All known topics and all subscriptions, with rates, lags and losses.
    #[must_use]
    pub fn topics(&self) -> TopicsReport {
        TopicsReport { topics: self.bus.topics(), subscriptions: self.bus.subscriptions() }
    }

    /// Every shared queue, with rates, depths and losses, by name.
    #[must_use]
    pub fn queues(&self) -> Vec<QueueStatus> {
        self.bus.queues()
    }

    /// The first `max` jobs waiting in a queue.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if no such queue is configured.
    pub fn queue_jobs(&self, queue: &str, max: usize) -> Result<Vec<JobStatus>, Error> {
        let jobs = self.bus.queue(queue)?.jobs(max);
        Ok(jobs.into_iter().map(|job| JobStatus::new(&self.bus, job)).collect())
    }

    /// Puts dead letters of this queue, all or the one with this id, back into the queues where they died, as new
    /// jobs. Returns how many.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if there is no such queue or dead letter, [`Error::Overloaded`] if a queue has no room,
    /// [`Error::NoProvider`] if a queue is no longer configured. Dead letters without a way back stay, all others are
    /// back; the first error is returned.
    pub fn requeue(&self, queue: &str, id: Option<MessageId>) -> Result<u64, Error> {
        let queue = self.bus.queue(queue)?;
        let requeued = self.bus.requeue(&queue, id);
        Audit::new(&self.by, format!("requeue of `{}`", queue.name()))
            .end(&requeued, |number| format!("{number} jobs are back"));
        requeued
    }

    /// The stores, in the order of their names.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn stores(&self) -> Vec<Arc<weir_store::Store>> {
        self.stores.all.all()
    }

    /// A store by its name. `None` if there is no such store.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn store(&self, name: &str) -> Option<Arc<weir_store::Store>> {
        self.stores.all.get(name)
    }

    /// A store as an extension or a directory of hooks sees it: see [`Row::owner`](crate::store::Row::owner). `None` if
    /// there is no such store.
    #[cfg(feature = "store")]
    #[must_use]
    pub fn bucket(&self, store: &str, owner: &str) -> Option<weir_store::Bucket> {
        self.stores.all.bucket_of(owner, store, true)
    }

    /// The contracts that extensions describe and serve, in the order of the configuration, then those of peers, then
    /// `store@1` if Main has stores, and services that are [described](crate::Service::described). An extension that was
    /// never started is not there, nor one that describes nothing. Parses the descriptions, of at most 64 KiB for each
    /// component, session and service: call it off the worker thread.
    #[must_use]
    pub fn contracts(&self) -> Vec<DescribedContract> {
        let all = contracts::providers(self, |_, _| true);
        all.into_iter().flat_map(Provider::contracts).collect()
    }

    /// What the first provider of a contract, or the named one, describes. `None` if there is no such description.
    #[must_use]
    pub fn descriptions(&self, contract: &str, provider: Option<&str>) -> Option<Arc<Descriptions>> {
        contracts::of_call(self, contract, provider)
    }

    /// The parts of [`contracts`](Self::contracts) that a program outside Main may reach now: operations that it may
    /// call, topics that it may subscribe to, queues that it may put into or take from, and their types.
    #[must_use]
    pub fn contracts_for(&self, session: &Session) -> Vec<Document> {
        let callable = session.callable().into_iter();
        let callable = callable.map(|(contract, operation)| (contract, operation.to_string())).collect();
        let described = self.contracts().into_iter();
        described.filter_map(|contract| contracts::reachable(contract.document, session, &callable)).collect()
    }

    /// A stream of events from now on.
    #[must_use]
    pub fn events(&self) -> MainEvents {
        MainEvents::new(self.events.subscribe(), self.ended.clone())
    }

    /// The last log lines of all extensions, oldest first, up to 256 KiB. Beyond that, the extension with the most
    /// text loses its oldest line first. Lines of Main about an extension count apart from its own.
    #[must_use]
    pub fn logs(&self) -> Vec<Arc<LogLine>> {
        self.logs.follow().0
    }

    /// The last log lines, and a stream of those that follow, without a gap.
    #[must_use]
    pub fn follow_logs(&self) -> (Vec<Arc<LogLine>>, LogLines) {
        let (kept, next) = self.logs.follow();
        (kept, LogLines(UntilEnded::new(next, self.ended.clone())))
    }

    /// Asks Main to stop every extension and end. Returns when Main was asked, before it ends.
    pub async fn begin_shutdown(&self) {
        let asked = self.shut_down().await;
        Audit::new(&self.by, "shutdown").end(&asked, |()| "begun".to_owned());
    }

    pub(crate) async fn shut_down(&self) -> Result<(), ControlError> {
        self.commands.send(Order::Shutdown).await.map_err(|_| ControlError::ShuttingDown)
    }

    /// Waits until Main has ended.
    pub async fn ended(&self) {
        // Nothing is sent: this fails when the worker drops its end.
        let _ended = self.ended.recv().await;
    }

    pub(crate) fn begin_shutdown_now(&self) {
        // The supervisor reads the orders left in the closed channel, then shuts down.
        self.commands.close();
    }

    fn unit(&self, id: &str) -> Result<Arc<Unit>, ControlError> {
        self.roster.find(id).ok_or_else(|| ControlError::Unknown(id.to_owned()))
    }

    async fn command(&self, id: &str, order: &'static str, change: Change) -> Result<(), ControlError> {
        let unit = self.unit(id)?;
        let mut audit = Audit::of(&self.by, order, &self.logs, unit.id());
        // Instances of one extension take turns, so that some serve at any moment.
        let mut outcome = Ok(());
        // These are about the versions of all instances.
        let of_all = matches!(change, Change::Accept | Change::RollBack(_));
        let instances = if of_all { vec![unit] } else { self.roster.instances(id) };
        for unit in instances {
            unit.asked(order, &self.by);
            let done = self.ask(|reply| Order::Change(change, unit.id().clone(), reply)).await.flatten();
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
            // An order that arrives as the supervisor ends is neither read nor dropped.
            () = self.ended() => answer.try_recv().ok(),
        };
        answer.ok_or(ControlError::ShuttingDown)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use weir_config::Config;

    use super::*;

    #[tokio::test]
    async fn a_command_that_nobody_reads_any_more_is_answered_at_the_end() {
        let (commands, _unread) = async_channel::bounded(1);
        let (ending, ended) = async_channel::bounded(1);
        let (events, _) = broadcast::channel(1);
        let bus = crate::test_bus::bus();
        let stores = Stores::new(&Config::default(), None, tokio::runtime::Handle::current(), &bus);
        let control = Control {
            peers: Registry::new(bus.clone(), Duration::MAX),
            bus,
            roster: Arc::new(Roster::new(Arc::default(), Vec::new(), Config::default(), None)),
            commands,
            events,
            logs: Arc::default(),
            compilations: Arc::default(),
            stores,
            described: Arc::default(),
            versions: Arc::default(),
            admission: Arc::default(),
            hooks: HookCounts::default(),
            parts: Parts::default(),
            by: "main".into(),
            ended,
        };
        let reload = tokio::spawn(async move { control.reload().await });
        tokio::task::yield_now().await;
        drop(ending);
        assert_eq!(reload.await.unwrap(), Err(ControlError::ShuttingDown));
    }
}
