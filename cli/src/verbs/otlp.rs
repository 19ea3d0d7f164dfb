//! `weir otlp`: asks Main for its new spans, and sends them to a collector.
//!
//! This module decides when to ask, how long to try again, and what to say of it. The crate `weir-otlp` knows what
//! spans and answers mean.

mod collector;
mod settings;
mod teller;

use std::{fs, path::Path, time::Duration};

use bytes::Bytes;
use hyper::Method;
use tokio::time::{Instant, sleep, timeout};
use weir_otlp::{Export, Resource, Retry};

use self::{
    collector::{Collector, Sent},
    settings::Settings,
    teller::Teller,
};
use crate::{
    args::Target,
    client::{Client, Patience, Route, Signals},
    exit,
    output::counted,
};

/// The most spans of one batch.
const BATCH: &str = "512";

/// How long `--once` tries again while the collector is away.
const ONCE: Duration = Duration::from_secs(30);

/// How long spans are still sent after a signal.
const FAREWELL: Duration = Duration::from_secs(5);

/// A batch is given up after so many refusals by a collector that is there: the batch may be the reason.
const MOST_REFUSALS: u32 = 16;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
docs/tracing.md says what a span has, and how a collector is set up. Main keeps its latest spans; this command
asks for new ones and sends them on as OTLP over HTTP, in protobuf. While the collector is away, Main's ring is
the buffer; spans that it drops meanwhile are counted on stderr. There is no TLS: run a collector on this machine.

Environment, where an option is not given: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT (used as it is),
OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS,
OTEL_EXPORTER_OTLP_TRACES_TIMEOUT and OTEL_EXPORTER_OTLP_TIMEOUT (milliseconds).

Examples:
  weir otlp
  weir otlp --endpoint http://127.0.0.1:4318 --interval 1s
  weir otlp --once --header authorization='Bearer TOKEN'")]
pub(crate) struct Args {
    /// The collector, `http://127.0.0.1:4318` by default; spans go to /v1/traces below it
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Time between two questions to Main
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = some_time)]
    interval: Duration,
    /// Add this header to each request; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE")]
    headers: Vec<String>,
    /// Time for one request to the collector, `10s` by default
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    timeout: Option<Duration>,
    /// `service.namespace` of all spans
    #[arg(long, value_name = "NAME", default_value = "weir")]
    service_namespace: String,
    /// Export what is there, and end
    #[arg(long, conflicts_with = "interval")]
    once: bool,
    #[command(flatten)]
    target: Target,
}

/// Reads a time that is more than zero and at most a day.
fn some_time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() || time > Duration::from_secs(86_400) {
        return Err("it must be more than nothing, and at most a day".to_owned());
    }
    Ok(time)
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let settings = Settings::from(&args)?;
    let socket = args.target.socket()?;
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|host| host.trim().to_owned());
    let host = host.filter(|host| !host.is_empty());
    let resource = Resource { namespace: args.service_namespace, host };
    let mut exporter = Exporter {
        socket: socket.into(),
        export: Export::new(resource),
        teller: Teller::new(settings.endpoint.to_string()),
        collector: Collector { settings },
    };
    if args.once {
        return exporter.once().await;
    }
    let mut signals = Signals::new()?;
    tokio::select! {
        () = exporter.run(args.interval) => {}
        _ = signals.next() => {}
    }
    exporter.say_farewell().await;
    Ok(())
}

/// How long a pass may try again while the collector is away.
#[derive(Clone, Copy)]
enum Tries {
    /// Without end. Giving up the batch in hand would lose its spans and gain nothing, since Main holds the later ones.
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

    /// Sends once more the batch in hand, and what Main has. A batch that was being sent may arrive twice.
    async fn say_farewell(&mut self) {
        // Main or the collector may be gone, too. That was said already, or is no news at the end.
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

    /// Sends the batch in hand until the collector takes it, refuses it for good, or has put it off too often. Fails if
    /// `tries` allows no further attempt.
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
                        let endpoint = &self.teller.endpoint;
                        anyhow::bail!("the collector at `{endpoint}` does not take spans: {why}");
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
