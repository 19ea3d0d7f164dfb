//! The bridge's sessions with Main, and what it serves there. Calls, events and jobs have a session each, so that none takes
//! the room of another.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result};
use tokio::{task::JoinSet, time};
use weir_peer::{Ended, Options, Peer, Request, Requests};

use crate::{
    secrets,
    shared::{Shared, tell},
};

/// The time until a contract that Main refused is offered again: the operator may have granted it.
const AGAIN: Duration = Duration::from_secs(5);

/// The bridge's sessions with Main. They end together.
#[derive(Debug)]
pub(crate) struct Sessions {
    pub(crate) shared: Arc<Shared>,
    pub(crate) calls: Peer,
    pub(crate) events: Option<Peer>,
    pub(crate) jobs: Option<Peer>,
    /// A random number, new with each session, because Main counts its messages anew when it starts.
    pub(crate) life: u64,
}

impl Sessions {
    /// Connects all sessions that the file needs.
    pub(crate) async fn begin(shared: &Arc<Shared>) -> Result<Self> {
        let config = &shared.config;
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
        let has_topics = !export.topics.is_empty() || !import.topics.is_empty();
        let events = if has_topics { Some(connect(0, limits.events.get()).await?) } else { None };
        let has_queues = !export.queues.is_empty() || !import.queues.is_empty();
        let jobs = if has_queues { Some(connect(limits.jobs.get(), 0).await?) } else { None };
        Ok(Self { shared: shared.clone(), calls, events, jobs, life: fastrand::u64(..) })
    }

    /// Waits until any session ends, and returns why.
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

    /// Ends all sessions, after what was sent is written.
    pub(crate) async fn leave(self) {
        for peer in [Some(self.calls), self.events, self.jobs].into_iter().flatten() {
            let _ended = peer.leave().await;
        }
    }
}

/// A contract that the bridge serves to its Main.
pub(crate) struct Served {
    pub(crate) shared: Arc<Shared>,
    pub(crate) peer: Peer,
    pub(crate) name: Box<str>,
    pub(crate) operations: Vec<String>,
    /// What the contract is for, as messages say it, such as "which is imported".
    pub(crate) what: &'static str,
}

impl Served {
    /// Offers Main to serve the contract. Returns `None` if Main refuses or the session has ended, and logs that.
    pub(crate) async fn offer(&self) -> Option<Requests> {
        let operations: Vec<_> = self.operations.iter().map(String::as_str).collect();
        let served = self.peer.serve(&self.name, &operations).await;
        let Self { name, what, .. } = self;
        let refused = |error: &_| {
            tell!(error, self.shared.times, ("serve {name}"), "cannot serve `{name}`, {what}: {error}");
        };
        served.inspect_err(refused).ok()
    }

    /// Serves the contract until the session ends, or until the bridge drains and nothing is in hand. As long as Main
    /// refuses it, offers it again.
    pub(crate) async fn run<H>(self, mut offered: Option<Requests>, handle: impl Fn(Request) -> H)
    where
        H: Future<Output = ()> + Send + 'static,
    {
        let mut requests = loop {
            match offered {
                Some(requests) => break requests,
                None => {
                    time::sleep(AGAIN).await;
                    offered = self.offer().await;
                }
            }
        };
        let mut draining = self.shared.draining();
        // Bounded by the limit of the session: Main sends no more requests at once.
        let mut in_hand = JoinSet::new();
        loop {
            tokio::select! {
                request = requests.next() => match request {
                    Some(request) => drop(in_hand.spawn(handle(request))),
                    None => return,
                },
                Some(_) = in_hand.join_next() => {}
                () = draining.wait(), if in_hand.is_empty() => return,
            }
        }
    }
}
