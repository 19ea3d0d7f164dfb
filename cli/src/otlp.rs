//! `weir otlp`: asks Main for its new spans, and sends them to a collector.
//!
//! It owns when to ask, how long to try again, and what to say of it. What spans and answers mean is `weir-otlp`'s.

mod collector;
mod settings;
mod teller;

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use hyper::Method;
use tokio::{
    signal::unix::{SignalKind, signal},
    time::{Instant, sleep, timeout},
};
use weir_otlp::{Export, Resource, Retry};

use self::{
    collector::{Collector, Sent},
    settings::Settings,
    teller::Teller,
};
use crate::{
    args::OtlpArgs,
    client::{Client, Patience, Route},
    exit, locate,
    output::counted,
};

/// Spans in one batch.
const BATCH: &str = "512";

/// How long `--once` tries again.
const ONCE: Duration = Duration::from_secs(30);

/// Time for what is there when a signal comes.
const FAREWELL: Duration = Duration::from_secs(5);

/// A collector that is there and refuses a batch so often gets the next one: this one may be the reason.
const MOST_REFUSALS: u32 = 16;

pub(crate) async fn otlp(args: OtlpArgs) -> anyhow::Result<()> {
    let settings = Settings::from(&args)?;
    let socket = locate::socket(&args.target)?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|host| host.trim().to_owned());
    let host = host.filter(|host| !host.is_empty());
    let resource = Resource { namespace: args.service_namespace, host };
    let mut exporter = Exporter {
        socket: socket.into(),
        export: Export::new(resource),
        teller: Teller::new(settings.endpoint.to_string()),
        collector: Collector::new(settings),
    };
    if args.once {
        return exporter.once().await;
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        () = exporter.run(args.interval) => {}
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    exporter.say_farewell().await;
    Ok(())
}

/// How long a pass may try again while the collector is away.
#[derive(Clone, Copy)]
enum Tries {
    /// The batch in hand is older than what is in Main's ring: nothing is gained by giving it up.
    Endless,
    Until(Instant),
    One,
}

impl Tries {
    fn allow(self, pause: Duration) -> bool {
        match self {
            Self::Endless => true,
            Self::Until(end) => Instant::now() + pause < end,
            Self::One => false,
        }
    }
}

struct Exporter {
    socket: Box<Path>,
    collector: Collector,
    export: Export,
    teller: Teller,
}

impl Exporter {
    async fn run(&mut self, interval: Duration) {
        loop {
            if let Err(error) = self.pass(Tries::Endless).await {
                self.teller.main_is_away(&exit::chain(&error));
            }
            sleep(interval).await;
        }
    }

    async fn once(&mut self) -> anyhow::Result<()> {
        let result = self.pass(Tries::Until(Instant::now() + ONCE)).await;
        let refused = self.teller.finish();
        result?;
        anyhow::ensure!(refused == 0, "the collector did not take {}", counted(refused, "span"));
        Ok(())
    }

    /// Once more what is in hand, and what Main has. A batch that was being sent may arrive twice.
    async fn say_farewell(&mut self) {
        // Main or the collector may be gone, too: this was said, or is no news at the end.
        let _ended = timeout(FAREWELL, self.pass(Tries::One)).await;
        self.teller.finish();
    }

    /// Exports all that Main has recorded when it is first asked.
    async fn pass(&mut self, tries: Tries) -> anyhow::Result<()> {
        self.deliver(tries).await?;
        let mut goal = None;
        loop {
            let answer = self.ask().await?;
            let taken = self.export.take(&answer)?;
            self.teller.main_is_there();
            self.teller.took(taken);
            if taken.restarted {
                goal = None;
                continue;
            }
            self.deliver(tries).await?;
            if self.export.after() >= *goal.get_or_insert(taken.recorded) || taken.is_empty {
                return Ok(());
            }
        }
    }

    async fn ask(&self) -> anyhow::Result<Bytes> {
        let after = self.export.after().to_string();
        let route = Route::new(&["spans"]).with("after", Some(&after)).with("limit", Some(BATCH));
        let mut client = Client::connect_to(&self.socket).await?;
        client.ask(Method::GET, &route, Bytes::new(), Patience::Query).await
    }

    /// Sends the batch in hand until the collector has it, or will not have it.
    async fn deliver(&mut self, tries: Tries) -> anyhow::Result<()> {
        let (mut retry, mut refusals) = (Retry::default(), 0);
        while let Some(batch) = self.export.hand() {
            let spans = batch.spans;
            match self.collector.send(batch.body.clone()).await {
                Sent::Delivered(partial) => {
                    self.export.settle();
                    self.teller.collector_is_there();
                    if let Some(partial) = partial {
                        self.teller.partly(&partial);
                    }
                }
                Sent::Refused(why) => {
                    self.export.settle();
                    self.teller.refused(spans, &why);
                }
                Sent::Later { why, pause, is_there } => {
                    let pause = pause.unwrap_or_else(|| retry.pause(fastrand::f64()));
                    if !tries.allow(pause) {
                        anyhow::bail!(
                            "the collector at `{}` does not take spans: {why}",
                            self.teller.endpoint()
                        );
                    }
                    refusals += u32::from(is_there);
                    if refusals >= MOST_REFUSALS {
                        self.export.settle();
                        self.teller.refused(spans, &why);
                        continue;
                    }
                    self.teller.collector_is_away(&why);
                    sleep(pause).await;
                }
            }
        }
        Ok(())
    }
}
