//! What is counted: a Main, and one task on its worker thread that does the same again and again.

use std::{
    fs, iter,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use clap::ValueEnum;
use weir_host::{
    CallOptions, Client, Config, ExtensionConfig, HandlerError, Main, MainConfig, Service,
    client::{PutOptions, Subscriber},
    config::{Limits, QueueConfig},
};

/// Far longer than any case takes under valgrind.
const PATIENCE: Duration = Duration::from_secs(300);

/// Jobs that are put before one waits for them, and the most that an extension takes at once.
const BATCH: u32 = 64;

/// Operations that are done before what is counted, divided by a case's weight.
const BEFORE: u32 = 200;

/// Fuel that outlasts every case.
const MUCH_FUEL: u64 = 1_000_000_000_000_000;

/// What is done again and again, and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Case {
    /// A request of 16 bytes from Main to Main.
    BusRequest,
    /// An event of 16 bytes to one subscriber.
    BusEvent,
    /// An event of 16 bytes to 64 subscribers.
    #[value(name = "bus-event-64")]
    BusEvent64,
    /// A job of 16 bytes put, taken and done.
    BusJob,
    /// A job of 16 bytes put by Main and taken by an extension, one by one.
    JobOneByOne,
    /// A job of 16 bytes put by Main and taken by an extension, which takes and finishes up to 64 at once.
    JobInBatch,
    /// A request of 16 bytes from Main to an extension, and its answer.
    #[value(name = "round-trip-16")]
    RoundTrip16,
    /// A request of 1 KiB from Main to an extension, and its answer.
    #[value(name = "round-trip-1024")]
    RoundTrip1024,
    /// A request of 1 KiB from one extension to another, of another component, and its answer.
    #[value(name = "relay-1024")]
    Relay1024,
}

impl Case {
    /// About how many operations of another case one operation of this case costs.
    pub(crate) fn weight(self) -> u32 {
        if self == Self::BusEvent64 { 20 } else { 1 }
    }

    /// The name of the case among the kept numbers.
    pub(crate) fn name(self) -> String {
        // No case is hidden, so each has a name.
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// The extensions as signed artifacts, and the key to trust. They are compiled beforehand, since a program that
/// compiles has more code, and so other numbers.
///
/// They run on any processor of this architecture. Valgrind's processor lacks features that this machine's may have,
/// and the numbers are to be the same on all machines.
#[derive(Debug)]
pub(crate) struct Artifacts(PathBuf);

impl Artifacts {
    /// The artifacts that are in a directory.
    pub(crate) fn in_dir(dir: PathBuf) -> Self {
        Self(dir)
    }

    pub(crate) fn dir(&self) -> &std::path::Path {
        &self.0
    }

    fn echo(&self) -> PathBuf {
        self.0.join("echo.cwasm")
    }

    fn caller(&self) -> PathBuf {
        self.0.join("caller.cwasm")
    }

    fn key(&self) -> PathBuf {
        self.0.join("key")
    }
}

/// Does the work of a case so many times, in a Main of its own.
pub(crate) fn work(case: Case, operations: u32, artifacts: &Artifacts) -> Result<()> {
    // A handler is there before Main's client is.
    let client = Arc::new(OnceLock::<Client>::new());
    let for_handler = client.clone();
    let worker = Service::new("worker@1".parse()?).on("work".parse()?, move |_| {
        let client = for_handler.get().cloned();
        async move {
            let done = async { counted(case, operations, client.context("Main has not started yet")?).await };
            done.await.map(|()| Bytes::new()).map_err(|error| HandlerError::new("work", format!("{error:#}")))
        }
    });
    let itself = Service::new("itself@1".parse()?).on("echo".parse()?, async |request| Ok(request.payload));
    let builder = Main::builder(config(case, artifacts)?).serve(worker).serve(itself);
    tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
        let main = builder.start().await?;
        client.get_or_init(|| main.client().clone());
        let options = CallOptions::default().timeout(PATIENCE);
        main.client().call_with("worker@1", "work", "", options).await?;
        main.shutdown().await?;
        Ok(())
    })
}

fn config(case: Case, artifacts: &Artifacts) -> Result<Config> {
    let mut main = MainConfig::default();
    main.request_timeout = PATIENCE;
    main.trusted_keys = vec![fs::read_to_string(artifacts.key())?.parse()?];
    let mut echo = ExtensionConfig::new("echo".parse()?, artifacts.echo());
    // The echo may use the worker thread all the time: under valgrind it would soon be over any share.
    echo.limits = Limits::max();
    echo.fulfills = vec!["echo@1".parse()?];
    let mut caller = ExtensionConfig::new("caller".parse()?, artifacts.caller());
    caller.limits = Limits::max();
    caller.limits.fuel_per_message = MUCH_FUEL;
    let settings = [("kind", "caller"), ("serves", "relay@1"), ("calls", "echo@1")];
    caller.config.extend(settings.map(|(key, value)| (key.to_owned(), value.to_owned())));
    caller.fulfills = vec!["relay@1".parse()?];
    caller.wants = vec!["echo@1".parse()?];
    let mut extensions = vec![echo, caller];
    if matches!(case, Case::JobOneByOne | Case::JobInBatch) {
        extensions.push(reader(artifacts)?);
    }
    let mut config = Config::new(main, extensions);
    config.queues.insert("jobs".parse()?, QueueConfig::default());
    Ok(config)
}

fn reader(artifacts: &Artifacts) -> Result<ExtensionConfig> {
    let mut reader = ExtensionConfig::new("reader".parse()?, artifacts.caller());
    reader.limits = Limits::max();
    reader.limits.fuel_per_message = MUCH_FUEL;
    let settings = [("kind", "reader"), ("contract", "reader@1")];
    reader.config.extend(settings.map(|(key, value)| (key.to_owned(), value.to_owned())));
    reader.fulfills = vec!["reader@1".parse()?];
    reader.takes = vec!["jobs".parse()?];
    reader.publishes = vec!["last".parse()?];
    Ok(reader)
}

/// Does what is counted between two marks, after a little of the same, which fills what is kept.
async fn counted(case: Case, operations: u32, client: Client) -> Result<()> {
    repeat(case, operations.min(BEFORE / case.weight()), &client).await?;
    weir_count_mark();
    repeat(case, operations, &client).await?;
    weir_count_mark();
    Ok(())
}

/// A function that callgrind finds by its name.
#[expect(unsafe_code, reason = "its name must be as it is written")]
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn weir_count_mark() {
    std::hint::black_box(());
}

async fn repeat(case: Case, operations: u32, client: &Client) -> Result<()> {
    match case {
        Case::BusRequest => calls(client, "itself@1", 16, operations).await,
        Case::BusEvent => events(client, 1, operations).await,
        Case::BusEvent64 => events(client, 64, operations).await,
        Case::BusJob => jobs(client, operations).await,
        Case::JobOneByOne => jobs_for_extension(client, 1, operations).await,
        Case::JobInBatch => jobs_for_extension(client, BATCH, operations).await,
        Case::RoundTrip16 => calls(client, "echo@1", 16, operations).await,
        Case::RoundTrip1024 => calls(client, "echo@1", 1024, operations).await,
        Case::Relay1024 => relayed(client, 1024, operations).await,
    }
}

/// Tells the caller once how often it is to call the echo.
async fn relayed(client: &Client, bytes: u32, operations: u32) -> Result<()> {
    let arguments: Bytes = [operations, bytes].into_iter().flat_map(u32::to_le_bytes).collect();
    let options = CallOptions::default().timeout(PATIENCE);
    client.call_with("relay@1", "go", arguments, options).await?;
    Ok(())
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

/// Puts jobs 64 at a time, and waits each time until they are done. The extension takes `at_once`.
async fn jobs_for_extension(client: &Client, at_once: u32, operations: u32) -> Result<()> {
    let arguments: Bytes = [at_once, operations, 16].into_iter().flat_map(u32::to_le_bytes).collect();
    client.call("reader@1", "prepare", arguments).await?;
    let queue = client.queue("jobs")?;
    // A job has its number, and zeros that say that it is not the last.
    let job = |number: u32| Bytes::copy_from_slice([number, 0, 0, 0].map(u32::to_le_bytes).as_flattened());
    for first in (0..operations).step_by(usize::try_from(BATCH)?) {
        let last = (first + BATCH).min(operations) - 1;
        for number in first..last {
            queue.put(job(number)).await?;
        }
        queue.put_until_done(job(last), PutOptions::default()).await?;
    }
    Ok(())
}

async fn jobs(client: &Client, operations: u32) -> Result<()> {
    let mut queue = client.queue("jobs")?;
    for _ in 0..operations {
        queue.put(Bytes::copy_from_slice(&[7; 16])).await?;
        let job = queue.take().await.context("the queue has ended")?;
        ensure!(job.payload() == &[7; 16][..], "another job came");
        job.done();
    }
    Ok(())
}
