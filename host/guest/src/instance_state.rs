//! The data of an instance's Store: everything that ends with the instance.
//!
//! Owns what the guest asks of others. [`delivery`](super::delivery) owns the messages that the guest is given.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use wasmtime_wasi::{WasiCtxView, WasiView};
use weir_bus::{
    Bus, Carried, Error, Parent, Peer, PeerId, Putting, Sending, SentCall, Target, Term, ValueTypes,
};
use weir_config::ExtensionConfig;
use weir_schedule::note_wait;

use super::{
    abi, delivery::Delivery, instance::Instance, output::Output, sandbox::Sandbox, settings::Settings,
};

/// The state of one instance.
pub struct InstanceState {
    pub(super) bus: Arc<Bus>,
    pub(super) peer: Arc<Peer>,
    pub(super) config: Arc<ExtensionConfig>,
    pub(super) delivery: Delivery,
    pub(super) output: Output,
    /// The values that the guest reads through `wasi:config/store`.
    pub(super) settings: Arc<Settings>,
    /// The failure that the guest itself has announced last.
    pub(super) fault: Option<String>,
    pub(super) sandbox: Sandbox,
    /// The inbox's place among the guest's resources, once the guest has asked for a pollable of it.
    pub(super) inbox: Option<u32>,
    /// The operations that the guest has opened, by number.
    targets: Vec<Target>,
    /// Whether the host calls the guest for each request, and so the guest has no inbox.
    pub(super) is_server: bool,
    /// The request that the host calls the guest for.
    pub(super) exchange: Option<Exchange>,
}

/// What bounds the work for a request that the host calls the guest for.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// Until the answer begins.
    pub(super) head: Parent,
    pub(super) is_answered: Arc<AtomicBool>,
    /// When the work ends, also after the answer has begun.
    pub(super) end: Instant,
}

impl Exchange {
    /// What a message of the guest is part of now.
    pub(super) fn parent(&self) -> Parent {
        match self.is_answered.load(Ordering::Acquire) {
            true => Parent { deadline: Some(self.end), ..self.head.clone() },
            false => self.head.clone(),
        }
    }
}

impl InstanceState {
    pub(super) fn new(instance: &Instance, sandbox: Sandbox) -> Self {
        let Instance { bus, peer, config, settings, output, signals, usage, .. } = instance;
        let in_flight = config.limits.in_flight.into();
        Self {
            bus: bus.clone(),
            peer: peer.clone(),
            config: config.clone(),
            delivery: Delivery::new(peer.clone(), signals.clone(), usage.clone(), in_flight),
            output: output.clone(),
            settings: settings.clone(),
            fault: None,
            sandbox,
            inbox: None,
            targets: Vec::new(),
            is_server: config.serves_http.is_some() || !config.exports.is_empty(),
            exchange: None,
        }
    }

    /// Returns the name of a peer, if that is Main, the guest itself, or a peer that has sent the guest a request,
    /// event or job.
    pub(super) fn name_of(&self, peer: PeerId) -> Option<String> {
        let knows = peer == PeerId::MAIN || peer == self.peer.id() || self.delivery.met.contains(&peer);
        let peer = knows.then(|| self.bus.peer(peer))?;
        peer.map(|peer| peer.name().to_owned())
    }

    /// Opens an operation, and returns the guest's number for it. The same names give the same number. Fails if too
    /// many are open, or the bus does not allow it.
    pub(super) fn open(
        &mut self,
        contract: &str,
        operation: &str,
        provider: Option<&str>,
    ) -> Result<u32, Error> {
        if let Some(known) = self.targets.iter().position(|target| target.is(contract, operation, provider)) {
            return Ok(u32::try_from(known).unwrap_or(u32::MAX));
        }
        let (used, allowed) = (self.targets.len() as u64 + 1, self.sandbox.fixed.open_operations);
        if used > allowed {
            return Err(Error::LimitExceeded { name: "open-operations".into(), used, allowed });
        }
        let target = self.bus.open(&self.peer, contract, operation, provider)?;
        self.targets.push(target);
        Ok(u32::try_from(self.targets.len() - 1).unwrap_or(u32::MAX))
    }

    /// The types of the values that an operation takes in place of payloads, and the bytes that they may take.
    pub(super) fn value_types(&mut self, contract: &str, operation: &str) -> Option<(ValueTypes, u64)> {
        let place = self.open(contract, operation, None).ok()?;
        let target = self.targets.get_mut(usize::try_from(place).ok()?)?;
        let types = self.bus.value_types(&self.peer, target)?;
        Some((types, target.max_values().min(self.peer.limits().message_size)))
    }

    /// Sends a request whose answer the guest waits for in the same call.
    pub(super) fn call(
        &mut self,
        target: u32,
        carried: Carried,
        options: &abi::Options,
    ) -> Result<SentCall, Error> {
        self.send_to(target, options, |bus, peer, target, term| {
            note_wait(term.sent);
            bus.call(peer, target, carried, term, peer.stands_still())
        })
    }

    /// Sends a request, and returns its number. The reply comes through the inbox with this number. Fails if too many
    /// requests are under way.
    pub(super) fn send(
        &mut self,
        target: u32,
        payload: Bytes,
        options: &abi::Options,
    ) -> Result<(u64, Sending), Error> {
        if self.is_server {
            self.delivery.forget_replies();
        }
        self.delivery.check_under_way()?;
        let (waiter, sending) =
            self.send_to(target, options, |bus, peer, target, term| bus.send(peer, target, payload, term))?;
        Ok((self.delivery.sent(waiter), sending))
    }

    /// Opens a queue, and returns the guest's number for it. The same name gives the same number.
    pub(super) fn open_queue(&mut self, name: &str) -> Result<u32, Error> {
        let queue = self.bus.open_queue(&self.peer, name)?;
        self.delivery.jobs.open(queue, self.sandbox.fixed.open_operations)
    }

    pub(super) fn put(&self, queue: u32, payload: Bytes, options: &abi::Options) -> Result<Putting, Error> {
        let times = self.times(options)?;
        self.bus.put(&self.peer, self.delivery.jobs.queue(queue)?, payload, times)
    }

    /// Calls `send` with an opened operation, and with the deadline that the options give.
    fn send_to<T>(
        &mut self,
        number: u32,
        options: &abi::Options,
        send: impl FnOnce(&Bus, &Arc<Peer>, &mut Target, Term) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (timeout, parent) = self.times(options)?;
        let target = usize::try_from(number)
            .ok()
            .and_then(|place| self.targets.get_mut(place))
            .ok_or_else(|| Error::Invalid(format!("operation {number} was never opened")))?;
        let term = self.bus.term(target, timeout, parent);
        send(&self.bus, &self.peer, target, term)
    }

    /// Returns the timeout and the parent that the options name. Without a named parent, the parent is the event in
    /// hand, if that is sampled.
    pub(super) fn times(&self, options: &abi::Options) -> Result<(Option<Duration>, Parent), Error> {
        let timeout = match options.timeout_ms {
            Some(0) => return Err(Error::Invalid("a timeout of 0 ms".into())),
            timeout => timeout.map(|ms| Duration::from_millis(ms.into())),
        };
        let parent = match options.parent {
            None => self.exchange.as_ref().map_or_else(|| self.delivery.cause(), Exchange::parent),
            Some(id) => self.delivery.parent(id)?,
        };
        Ok((timeout, parent))
    }
}

impl fmt::Debug for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceState").field("peer", &self.peer.id()).finish_non_exhaustive()
    }
}

impl WasiView for InstanceState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.sandbox.wasi()
    }
}
