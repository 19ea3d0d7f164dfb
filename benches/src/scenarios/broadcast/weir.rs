//! Main, with subscribing extensions.

use std::{future::ready, time::Duration};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use weir_host::{
    CallOptions, Config, ExtensionConfig, Main, MainConfig, Service,
    blocking::wait,
    config::{Policy, SubscribeGrant},
};

use super::round::Side;
use crate::{
    scenarios::{
        Bench,
        client::{ensure_running, ensure_started},
        tasks::PATIENCE,
    },
    usage,
};

/// Packets that may wait for a stalled subscriber.
const STALLED_CAPACITY: u32 = 64;

/// A Main with its subscribers, all running.
#[derive(Debug)]
pub(super) struct Weir {
    main: Main,
    subscribers: u32,
    receiving: u32,
    published: u64,
    /// Packets shed for the stalled subscriber.
    shed: u64,
}

impl Weir {
    /// With this many subscribers. The last may be `stalled`.
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
        let clock = Service::new("clock@1".parse()?).on("used".parse()?, |_| {
            let used = u64::try_from(usage::of_this_thread().as_nanos()).unwrap_or(u64::MAX);
            ready(Ok(Bytes::from(used.to_le_bytes().to_vec())))
        });
        let builder = Main::builder(Config::new(MainConfig::default(), extensions)).serve(clock);
        let main = wait(builder.start())?;
        ensure_started(main.control())?;
        Ok(Self { main, subscribers, receiving, published: 0, shed: 0 })
    }

    /// The stalled subscriber must have lost all packets beyond its room.
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
        let used = wait(self.main.client().call("clock@1", "used", ""))?;
        let used = used.as_chunks().0.first().context("the worker did not answer")?;
        Ok(Duration::from_nanos(u64::from_le_bytes(*used)))
    }

    fn report(&mut self, packets: u32) -> Result<Vec<Vec<u32>>> {
        let client = self.main.client();
        (0..self.receiving)
            .map(|number| {
                let options = CallOptions::default().timeout(PATIENCE);
                let asked = Bytes::from(packets.to_le_bytes().to_vec());
                let report = wait(client.call_with(&contract(number), "report", asked, options));
                if report.is_err() {
                    // An extension's error explains more.
                    ensure_running(self.main.control())?;
                }
                Ok(report?.as_chunks().0.iter().copied().map(u32::from_le_bytes).collect())
            })
            .collect()
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
