//! What all connections of the gateway share.

use std::sync::Arc;

use tokio::sync::watch;
use weir_connection::Strangers;
use weir_host::{
    Control,
    attached::{Attached, Part},
    peers::{Peers, Session},
};

use crate::{GatewayConfig, PART, hub::Hub, outbox::Outbox, post::Rates, tickets::Tickets};

#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: GatewayConfig,
    pub(crate) peers: Peers,
    pub(crate) control: Control,
    #[cfg(feature = "servers")]
    pub(crate) servers: weir_host::http::HttpServers,
    /// Counts and logs what is refused.
    pub(crate) part: Part,
    pub(crate) hub: Arc<Hub>,
    pub(crate) tickets: Tickets,
    pub(crate) rates: Rates,
    pub(crate) strangers: Arc<Strangers>,
    /// The ticks at which all WebSockets send a ping: one timer makes them for all.
    pings: watch::Sender<()>,
    /// Why all connections end, once they do.
    ending: watch::Sender<Option<Ending>>,
}

/// Why the gateway ends all connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Main has stopped everything else.
    Main,
    /// A part of the gateway has failed, and all of it starts again.
    Restart,
}

impl Ending {
    /// The word and the text that an app gets.
    pub(crate) fn said(self) -> (&'static str, &'static str) {
        match self {
            Self::Main => ("stopping", "main ends"),
            Self::Restart => ("restarting", "the gateway starts again"),
        }
    }
}

impl Shared {
    pub(crate) fn new(config: GatewayConfig, attached: &Attached, hub: Arc<Hub>) -> Arc<Self> {
        let (part, attached) = (attached.part(PART), attached.clone());
        #[cfg(feature = "servers")]
        let servers = attached.http;
        let Attached { peers, control, .. } = attached;
        let (tickets, rates, strangers) = (Tickets::default(), Rates::default(), Arc::default());
        let (pings, ending) = (watch::Sender::new(()), watch::Sender::new(None));
        Arc::new(Self {
            config,
            peers,
            control,
            #[cfg(feature = "servers")]
            servers,
            part,
            hub,
            tickets,
            rates,
            strangers,
            pings,
            ending,
        })
    }

    /// Ends all connections.
    pub(crate) fn end(&self, why: Ending) {
        self.ending.send_replace(Some(why));
    }

    /// Waits until the gateway ends all connections, and returns why.
    pub(crate) fn ending(&self) -> impl Future<Output = Ending> + use<> {
        let mut ending = self.ending.subscribe();
        async move {
            let why = ending.wait_for(Option::is_some).await.ok().and_then(|why| *why);
            // The sender is in `Shared`: if it is gone, the gateway is, too.
            why.unwrap_or(Ending::Restart)
        }
    }

    /// Makes the place where events of a session's connection wait.
    pub(crate) fn outbox(&self, session: &Session) -> Arc<Outbox> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (buffer, payload) = (size(self.config.buffer), size(session.limits().message_size));
        Outbox::new(session.name().clone(), self.config.when_slow, buffer, payload)
    }

    /// The ticks at which a WebSocket sends a ping. `None` if the operator wants no pings.
    pub(crate) fn pings(&self) -> Option<watch::Receiver<()>> {
        self.config.ping_interval.map(|_| self.pings.subscribe())
    }

    /// Makes the ticks of [`pings`](Self::pings). Never returns.
    pub(crate) async fn tick(&self) {
        let Some(interval) = self.config.ping_interval else { return std::future::pending().await };
        loop {
            tokio::time::sleep(interval).await;
            self.pings.send_replace(());
        }
    }
}
