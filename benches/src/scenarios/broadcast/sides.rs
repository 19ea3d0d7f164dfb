//! The subscribers: native ones, a task each on one thread, and extensions of a Main.

use std::{
    future::ready,
    time::{Duration, Instant},
};

use anyhow::{Result, anyhow, bail, ensure};
use bytes::Bytes;
use tokio::sync::broadcast;
use weir_host::{
    ExtensionConfig,
    blocking::wait,
    config::{Policy, SubscribeGrant},
};

use super::Side;
use crate::{
    process,
    scenarios::{
        Bench,
        calls::{CAPACITY, Worker},
        device::PATIENCE,
        embedder::{Embedder, builder, numbers, on_the_worker},
    },
};

/// Native subscribers, each with a bounded channel and a copy of its own.
#[derive(Debug)]
pub(super) struct Copies {
    worker: Worker,
    subscribers: Vec<async_channel::Sender<Message<Vec<u8>>>>,
}

/// Native subscribers that share one of tokio's channels, and the packet.
#[derive(Debug)]
pub(super) struct Broadcast {
    worker: Worker,
    sender: broadcast::Sender<Message<Bytes>>,
}

#[derive(Clone, Debug)]
enum Message<P> {
    Packet { at: Instant, bytes: P },
    Report(async_channel::Sender<Result<Vec<u32>, String>>),
}

#[derive(Debug, Default)]
struct Received {
    waits: Vec<u32>,
    wrong: Option<String>,
}

impl Copies {
    pub(super) fn start(subscribers: u32) -> Result<Self> {
        let worker = Worker::start()?;
        let subscribe = |_| {
            let (sender, receiver) = async_channel::bounded(CAPACITY);
            worker.spawn(async move {
                let mut received = Received::default();
                while let Ok(message) = receiver.recv().await {
                    received.take(message);
                }
            });
            sender
        };
        Ok(Self { subscribers: (0..subscribers).map(subscribe).collect(), worker })
    }
}

impl Side for Copies {
    fn publish(&mut self, packet: Bytes, _paced: bool) -> Result<()> {
        let at = Instant::now();
        for subscriber in &self.subscribers {
            subscriber.send_blocking(Message::Packet { at, bytes: packet.to_vec() })?;
        }
        Ok(())
    }

    fn used(&self) -> Result<Duration> {
        self.worker.used()
    }

    fn report(&mut self, _packets: u32) -> Result<Vec<Vec<u32>>> {
        let (report, reports) = async_channel::bounded(self.subscribers.len());
        for subscriber in &self.subscribers {
            subscriber.send_blocking(Message::Report(report.clone()))?;
        }
        drop(report);
        collect(&reports)
    }
}

impl Broadcast {
    pub(super) fn start(subscribers: u32) -> Result<Self> {
        let worker = Worker::start()?;
        let (sender, _) = broadcast::channel(CAPACITY);
        for _ in 0..subscribers {
            let mut receiver = sender.subscribe();
            worker.spawn(async move {
                let mut received = Received::default();
                loop {
                    match receiver.recv().await {
                        Ok(message) => received.take(message),
                        Err(broadcast::error::RecvError::Lagged(lost)) => received.lose(lost),
                        Err(broadcast::error::RecvError::Closed) => return,
                    }
                }
            });
        }
        Ok(Self { worker, sender })
    }
}

impl Side for Broadcast {
    fn publish(&mut self, packet: Bytes, paced: bool) -> Result<()> {
        if !paced {
            bail!("it makes nobody wait");
        }
        self.sender.send(Message::Packet { at: Instant::now(), bytes: packet })?;
        Ok(())
    }

    fn used(&self) -> Result<Duration> {
        self.worker.used()
    }

    fn report(&mut self, _packets: u32) -> Result<Vec<Vec<u32>>> {
        let (report, reports) = async_channel::bounded(self.sender.receiver_count());
        self.sender.send(Message::Report(report))?;
        collect(&reports)
    }
}

impl Received {
    fn take<P: AsRef<[u8]>>(&mut self, message: Message<P>) {
        match message {
            Message::Packet { at, bytes } => {
                let bytes = bytes.as_ref();
                let number = |place: usize| {
                    let bytes = bytes.as_chunks().0.get(place).copied();
                    bytes.and_then(|bytes| usize::try_from(u32::from_le_bytes(bytes)).ok())
                };
                let (came, wanted) = ([number(0), number(1)], [self.waits.len(), bytes.len()]);
                if came != wanted.map(Some) {
                    self.wrong.get_or_insert_with(|| format!("{came:?} came for {wanted:?}"));
                }
                self.waits.push(u32::try_from(at.elapsed().as_micros()).unwrap_or(u32::MAX));
            }
            Message::Report(report) => {
                let Self { waits, wrong } = std::mem::take(self);
                // There is room for all. It fails if nothing waits any more.
                let _reported = report.try_send(wrong.map_or(Ok(waits), Err));
            }
        }
    }

    fn lose(&mut self, packets: u64) {
        self.wrong.get_or_insert_with(|| format!("{packets} packets were lost"));
    }
}

fn collect(reports: &async_channel::Receiver<Result<Vec<u32>, String>>) -> Result<Vec<Vec<u32>>> {
    std::iter::from_fn(|| reports.recv_blocking().ok())
        .map(|report| report.map_err(|wrong| anyhow!("a native subscriber: {wrong}")))
        .collect()
}

/// Packets that may wait for a stalled subscriber.
const STALLED_CAPACITY: u32 = 64;

/// A Main with its subscribers, all running.
#[derive(Debug)]
pub(super) struct Weir {
    main: Embedder,
    subscribers: u32,
    receiving: u32,
    published: u64,
    /// Packets shed for the stalled subscriber.
    shed: u64,
}

impl Weir {
    /// Starts a Main with this many subscribers. The last may be `stalled`.
    pub(super) fn start(bench: &Bench, subscribers: u32, stalled: bool) -> Result<Self> {
        let receiving = subscribers - u32::from(stalled);
        let mut extensions =
            (0..receiving).map(|number| subscriber(bench, number)).collect::<Result<Vec<_>>>()?;
        if stalled {
            let mut stalled = bench.guests.small("stalled", "stalled")?;
            let mut grant: SubscribeGrant = "paced".parse()?;
            grant.messages = Some(STALLED_CAPACITY);
            stalled.subscribes = vec![grant];
            extensions.push(stalled);
        }
        let (clock, later) = on_the_worker(|(), _| ready(Ok(process::of_this_thread())))?;
        later.get_or_init(|| ());
        let main = Embedder::start(builder(extensions).serve(clock))?;
        Ok(Self { main, subscribers, receiving, published: 0, shed: 0 })
    }

    /// Fails unless the stalled subscriber has lost all packets beyond its room.
    pub(super) fn ensure_shed(&self) -> Result<()> {
        let expected = self.published.saturating_sub(STALLED_CAPACITY.into());
        ensure!(self.shed == expected, "{} packets were lost, and not {expected}", self.shed);
        Ok(())
    }
}

impl Side for Weir {
    fn publish(&mut self, packet: Bytes, paced: bool) -> Result<()> {
        let topic = if paced { "paced" } else { "unpaced" };
        let receipt = wait(self.main.client().publish_within(PATIENCE, topic, packet))?;
        let reached = if paced { self.subscribers } else { self.receiving };
        ensure!(receipt.delivered == reached && receipt.refused == 0, "{receipt:?}");
        let stalled = self.subscribers - self.receiving;
        ensure!(receipt.shed <= stalled, "{receipt:?}");
        self.published += u64::from(paced);
        self.shed += u64::from(receipt.shed);
        Ok(())
    }

    fn used(&self) -> Result<Duration> {
        self.main.timed(&[])
    }

    fn report(&mut self, packets: u32) -> Result<Vec<Vec<u32>>> {
        let report = |number| Ok(numbers(&self.main.ask(&contract(number), "report", &[packets])?));
        (0..self.receiving).map(report).collect()
    }
}

fn subscriber(bench: &Bench, number: u32) -> Result<ExtensionConfig> {
    let mut subscriber = bench.guests.small(&format!("subscriber-{number}"), "subscriber")?;
    let contract = contract(number);
    subscriber.fulfills = vec![contract.parse()?];
    subscriber.config.insert("contract".to_owned(), contract);
    let mut unpaced: SubscribeGrant = "unpaced".parse()?;
    unpaced.policy = Policy::Block;
    subscriber.subscribes = vec!["paced".parse()?, unpaced];
    Ok(subscriber)
}

fn contract(number: u32) -> String {
    format!("bench.subscriber-{number}@1")
}
