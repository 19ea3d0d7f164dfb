//! The embedder's and operator's hand on extensions: start, stop, states, failures and log lines.

use std::sync::Arc;

use tokio::sync::{broadcast, oneshot};

use crate::{
    events::{MainEvent, MainEvents},
    logs::{LogLine, Logs},
    names::ExtensionId,
    roster::{ExtensionStatus, Unit},
    supervisor::{Command, ControlError},
};

/// Starts and stops extensions and says how they are. Cheap to clone; usable from any thread.
#[derive(Clone, Debug)]
pub struct Control {
    units: Arc<[Arc<Unit>]>,
    commands: async_channel::Sender<Command>,
    events: broadcast::Sender<MainEvent>,
    logs: Arc<Logs>,
    /// Closed when the worker thread has ended. Nothing is ever sent.
    ended: async_channel::Receiver<()>,
}

impl Control {
    pub(crate) fn new(
        units: Arc<[Arc<Unit>]>,
        commands: async_channel::Sender<Command>,
        events: broadcast::Sender<MainEvent>,
        logs: Arc<Logs>,
        ended: async_channel::Receiver<()>,
    ) -> Self {
        Self { units, commands, events, logs, ended }
    }

    /// Every extension, in the order of the configuration.
    #[must_use]
    pub fn extensions(&self) -> Vec<ExtensionStatus> {
        self.units.iter().map(|unit| unit.status()).collect()
    }

    /// One extension.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub fn status(&self, id: &str) -> Result<ExtensionStatus, ControlError> {
        self.units
            .iter()
            .find(|unit| unit.id().as_str() == id)
            .map(|unit| unit.status())
            .ok_or_else(|| ControlError::Unknown(id.to_owned()))
    }

    /// Starts an extension, after what it requires; ends when it is ready. One that runs already is
    /// left as it is.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotStarted`] with the reason if it does not become ready.
    pub async fn start(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, Command::Start).await
    }

    /// Asks an extension to stop; ends when it has ended, its stop deadline included.
    ///
    /// # Errors
    ///
    /// [`ControlError::Unknown`] if no extension has this id.
    pub async fn stop(&self, id: &str) -> Result<(), ControlError> {
        self.command(id, Command::Stop).await
    }

    /// What happens from now on.
    #[must_use]
    pub fn events(&self) -> MainEvents {
        MainEvents(self.events.subscribe())
    }

    /// The last log lines of all extensions, oldest first, at most 1000.
    #[must_use]
    pub fn logs(&self) -> Vec<Arc<LogLine>> {
        self.logs.follow().0
    }

    /// The last log lines, and those that follow them, with none missed between.
    #[must_use]
    pub fn follow_logs(&self) -> (Vec<Arc<LogLine>>, LogLines) {
        let (kept, next) = self.logs.follow();
        (kept, LogLines(next))
    }

    /// Asks Main to stop every extension and end; ends when it was asked, not when it has ended.
    pub async fn begin_shutdown(&self) {
        // It fails only if Main has ended already.
        let _ended = self.commands.send(Command::Shutdown).await;
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

    async fn command(
        &self,
        id: &str,
        command: impl FnOnce(ExtensionId, oneshot::Sender<Result<(), ControlError>>) -> Command,
    ) -> Result<(), ControlError> {
        let id: ExtensionId = id.parse().map_err(|_| ControlError::Unknown(id.to_owned()))?;
        let (reply, answer) = oneshot::channel();
        self.commands.send(command(id, reply)).await.map_err(|_| ControlError::ShuttingDown)?;
        answer.await.unwrap_or(Err(ControlError::ShuttingDown))
    }
}

/// Log lines as they come.
#[derive(Debug)]
pub struct LogLines(broadcast::Receiver<Arc<LogLine>>);

/// What a follower of log lines gets.
#[derive(Clone, Debug)]
pub enum NextLine {
    /// A line.
    Line(Arc<LogLine>),
    /// The follower was too slow: as many lines passed unseen.
    Missed(u64),
}

impl LogLines {
    /// The next line; none once Main has ended.
    pub async fn next(&mut self) -> Option<NextLine> {
        match self.0.recv().await {
            Ok(line) => Some(NextLine::Line(line)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(NextLine::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
