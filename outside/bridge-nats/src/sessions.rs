//! The bridge's sessions with Main. Calls, events and jobs have one each, so that none takes the room of another.

use anyhow::{Context, Result};
use weir_peer::{Ended, Options, Peer};

use crate::{config::Config, secrets};

/// The bridge's sessions with Main. They end together.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) calls: Peer,
    pub(crate) events: Option<Peer>,
    pub(crate) jobs: Option<Peer>,
    /// Another one with each session: Main counts its messages anew when it starts.
    pub(crate) life: u64,
}

impl Sessions {
    /// Connects.
    pub(crate) async fn begin(config: &Config) -> Result<Self> {
        let main = config.main.as_ref();
        let token = main.token_file.as_deref().map(secrets::word).transpose()?;
        let connect = async |requests: u32, events: u32| {
            let mut options = Options::new(config.peer()).requests(requests).events(events);
            if let Some(token) = &token {
                options = options.token(token);
            }
            let connected = Peer::connect(&main.socket, options).await;
            connected.with_context(|| format!("cannot use `{}`", main.socket.display()))
        };
        let (export, import, limits) = (&config.export, &config.import, &config.limits);
        let calls = connect(limits.calls.get(), 0).await?;
        let events = if export.topics.is_empty() && import.topics.is_empty() {
            None
        } else {
            Some(connect(0, limits.events.get()).await?)
        };
        let jobs = if export.queues.is_empty() && import.queues.is_empty() {
            None
        } else {
            Some(connect(limits.jobs.get(), 0).await?)
        };
        Ok(Self { calls, events, jobs, life: fastrand::u64(..) })
    }

    /// Waits for the end of any.
    pub(crate) async fn ended(&self) -> String {
        let of = async |peer: &Option<Peer>| match peer {
            Some(peer) => peer.closed().await,
            None => std::future::pending().await,
        };
        let ended: Ended = tokio::select! {
            ended = self.calls.closed() => ended,
            ended = of(&self.events) => ended,
            ended = of(&self.jobs) => ended,
        };
        ended.to_string()
    }

    /// Ends all, after what was sent is written.
    pub(crate) async fn leave(self) {
        for peer in [Some(self.calls), self.events, self.jobs].into_iter().flatten() {
            let _ended = peer.leave().await;
        }
    }
}
