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
    /// Counts what is refused.
    pub(crate) part: Part,
    pub(crate) hub: Arc<Hub>,
    pub(crate) tickets: Tickets,
    pub(crate) rates: Rates,
    pub(crate) strangers: Arc<Strangers>,
    /// One timer for the pings of all WebSockets.
    pings: watch::Sender<()>,
}

impl Shared {
    pub(crate) fn new(config: GatewayConfig, attached: &Attached, hub: Arc<Hub>) -> Arc<Self> {
        let (part, Attached { peers, control, .. }) = (attached.part(PART), attached.clone());
        let (tickets, rates, strangers) = (Tickets::default(), Rates::default(), Arc::default());
        let pings = watch::Sender::new(());
        Arc::new(Self { config, peers, control, part, hub, tickets, rates, strangers, pings })
    }

    /// The place for events of a connection.
    pub(crate) fn outbox(&self, session: &Session) -> Arc<Outbox> {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        let (buffer, payload) = (size(self.config.buffer), size(session.limits().message_size));
        Outbox::new(session.name().clone(), self.config.when_slow, buffer, payload)
    }

    /// The ticks at which a WebSocket sends a ping. None without pings.
    pub(crate) fn pings(&self) -> Option<watch::Receiver<()>> {
        self.config.ping_interval.map(|_| self.pings.subscribe())
    }

    /// Ticks for all WebSockets; for ever without pings.
    pub(crate) async fn tick(&self) {
        let Some(interval) = self.config.ping_interval else { return std::future::pending().await };
        loop {
            tokio::time::sleep(interval).await;
            self.pings.send_replace(());
        }
    }
}
