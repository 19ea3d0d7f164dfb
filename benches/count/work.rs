//! The counted work: a Main, with one task on its worker thread that repeats an operation.

use std::{
    fs, iter,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::ValueEnum;
use weir_host::{
    CallOptions, Client, Config, ExtensionConfig, HandlerError, Main, MainConfig, Service,
    client::Subscriber,
    component::{self, Compilation, SigningKey},
    config::{Limits, QueueConfig, Traces},
};

/// Far longer than any case takes under valgrind.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// A request of 16 bytes from Main to Main.
    BusRequest,
    /// An event of 16 bytes to one subscriber.
    BusEvent,
    /// The same to 64 subscribers.
    #[value(name = "bus-event-64")]
    BusEvent64,
    /// A job of 16 bytes put, taken and done.
    BusJob,
    /// A request of 16 bytes from Main to an extension, and its answer.
    #[value(name = "round-trip-16")]
    RoundTrip16,
    /// The same with 1 KiB.
    #[value(name = "round-trip-1024")]
    RoundTrip1024,
}

impl Case {
    /// About how many bus requests one operation is worth.
    pub(crate) fn weight(self) -> u32 {
        if self == Self::BusEvent64 { 20 } else { 1 }
    }

    pub(crate) fn name(self) -> String {
        // None of them is hidden.
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The extension, compiled before counting.
///
/// For any processor of this architecture: valgrind's differs from this machine's, and the numbers must be
/// the same on all.
#[derive(Debug)]
pub(crate) struct Artifacts(PathBuf);

impl Artifacts {
    pub(crate) fn in_dir(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub(crate) fn make(guests: &Path, dir: PathBuf) -> Result<Self> {
        let artifacts = Self(dir);
        let key = SigningKey::generate()?;
        let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let (echo, limits) = (guests.join("echo-raw.wasm"), Limits::max());
        let echo = component::compile(
            &echo,
            Some(&target),
            &limits,
            Traces::default(),
            &Compilation::InProcess,
            &key,
        )?;
        fs::write(artifacts.echo(), echo)?;
        fs::write(artifacts.key(), key.trusted_key().to_string())?;
        Ok(artifacts)
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.0
    }

    fn echo(&self) -> PathBuf {
        self.0.join("echo.cwasm")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key")
    }
}

pub(crate) fn work(case: Case, operations: u32, artifacts: &Artifacts) -> Result<()> {
    // A handler is registered before Main's client exists.
    let client = Arc::new(OnceLock::<Client>::new());
    let for_handler = client.clone();
    let worker = Service::new("worker@1".parse()?).on("work".parse()?, move |_| {
        let client = for_handler.get().cloned();
        async move {
            let done = async { repeat(case, operations, client.context("Main has not started yet")?).await };
            done.await.map(|()| Bytes::new()).map_err(|error| HandlerError::new("work", format!("{error:#}")))
        }
    });
    let itself = Service::new("itself@1".parse()?).on("echo".parse()?, async |request| Ok(request.payload));
    let builder = Main::builder(config(artifacts)?).serve(worker).serve(itself);
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let main = builder.start().await?;
        client.get_or_init(|| main.client().clone());
        let options = CallOptions::default().timeout(PATIENCE);
        main.client().call_with("worker@1", "work", "", options).await?;
        main.shutdown().await?;
        Ok(())
    })
}

fn config(artifacts: &Artifacts) -> Result<Config> {
    let mut main = MainConfig::default();
    main.trusted_keys = vec![fs::read_to_string(artifacts.key())?.parse()?];
    let mut echo = ExtensionConfig::new("echo".parse()?, artifacts.echo());
    // With all of the worker thread: under valgrind it would exceed a smaller share.
    echo.limits = Limits::max();
    echo.fulfills = vec!["echo@1".parse()?];
    let mut config = Config::new(main, vec![echo]);
    config.queues.insert("jobs".parse()?, QueueConfig::default());
    Ok(config)
}

async fn repeat(case: Case, operations: u32, client: Client) -> Result<()> {
    match case {
        Case::BusRequest => calls(&client, "itself@1", 16, operations).await,
        Case::BusEvent => events(&client, 1, operations).await,
        Case::BusEvent64 => events(&client, 64, operations).await,
        Case::BusJob => jobs(&client, operations).await,
        Case::RoundTrip16 => calls(&client, "echo@1", 16, operations).await,
        Case::RoundTrip1024 => calls(&client, "echo@1", 1024, operations).await,
    }
}

async fn calls(client: &Client, contract: &str, bytes: usize, operations: u32) -> Result<()> {
    let payload = vec![7; bytes];
    let echo = client.operation(contract, "echo")?;
    for _ in 0..operations {
        let answer = echo.call(Bytes::copy_from_slice(&payload)).await?;
        ensure!(answer == payload, "the echo answered otherwise");
    }
    Ok(())
}

async fn events(client: &Client, subscribers: usize, operations: u32) -> Result<()> {
    let subscribe = iter::repeat_with(|| client.subscribe("counted"));
    let mut subscribers: Vec<Subscriber> = subscribe.take(subscribers).collect::<Result<_, _>>()?;
    for _ in 0..operations {
        client.publish("counted", Bytes::copy_from_slice(&[7; 16])).await?;
        for subscriber in &mut subscribers {
            let event = subscriber.next().await.context("Main has ended")?;
            ensure!(event.payload == [7; 16][..] && event.lost == 0, "another event came");
        }
    }
    Ok(())
}

async fn jobs(client: &Client, operations: u32) -> Result<()> {
    let mut queue = client.queue("jobs")?;
    for _ in 0..operations {
        queue.put(Bytes::copy_from_slice(&[7; 16])).await?;
        let job = queue.take().await.context("the queue has ended")?;
        ensure!(job.payload == [7; 16][..], "another job came");
        job.done();
    }
    Ok(())
}
