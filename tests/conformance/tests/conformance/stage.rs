//! Main with the guest, with `other@1`, an extension that does as it is told, and with `tester@1`, served by Main.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::sync::Semaphore;
use weir_host::{
    Builder, CallOptions, Config, Error, ExtensionConfig, HandlerError, Main, Service,
    client::{ReceivedEvent, Subscriber},
    component::Compilation,
    config::RestartPolicy,
    control::ExtensionState,
    events::MainEvent,
    traffic::QueueStatus,
};

use crate::language::Language;

/// The guest's id.
pub(crate) const GUEST: &str = "conformance";

/// The argument with which this program compiles a component.
pub(crate) const HELPER: &str = "compile-helper";

/// Enough on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes of a message of the guest: less than the default, for languages whose instances have little memory left.
pub(crate) const MESSAGE_SIZE: u64 = 64 << 10;

pub(crate) struct Stage {
    pub(crate) main: Main,
    pub(crate) gate: Gate,
    /// The guest's `/data`.
    pub(crate) dir: TempDir,
    published: Subscriber,
}

impl Stage {
    pub(crate) async fn new(language: &Language) -> Self {
        Self::with(language, |_| {}).await
    }

    /// With a changed configuration.
    pub(crate) async fn with(language: &Language, change: impl FnOnce(&mut Config)) -> Self {
        let (dir, gate) = (TempDir::new().unwrap(), Gate::default());
        let mut config = config(language, dir.path(), &cache());
        change(&mut config);
        let main = builder(config, &gate).start().await.unwrap();
        let published = main.client().subscribe("conformance.out.>").unwrap();
        Self { main, gate, dir, published }
    }

    /// Calls the guest.
    pub(crate) async fn ask(&self, operation: &str, payload: impl Into<Bytes>) -> Result<Bytes, Error> {
        self.main.client().call("conformance@1", operation, payload).await
    }

    /// Calls the guest with a time limit.
    pub(crate) async fn ask_within(
        &self,
        time: Duration,
        operation: &str,
        payload: &str,
    ) -> Result<String, Error> {
        let options = CallOptions::default().timeout(time);
        let answer = self.main.client().call_with("conformance@1", operation, payload.to_owned(), options);
        answer.await.map(text)
    }

    /// The answer of the guest, which must be one.
    pub(crate) async fn told(&self, operation: &str, payload: &str) -> String {
        match self.ask(operation, payload.to_owned()).await {
            Ok(answer) => text(answer),
            Err(error) => panic!("`{operation} {payload}`: {error}\n{}", self.failure().await),
        }
    }

    /// The guest's own error with this code.
    pub(crate) async fn refused(&self, operation: &str, payload: &str, code: &str) -> HandlerError {
        match self.ask(operation, payload.to_owned()).await {
            Err(Error::Handler(error)) if error.code == code => error,
            other => panic!("`{operation} {payload}`: {other:?} and not `{code}`\n{}", self.failure().await),
        }
    }

    /// The outcome of a call that the guest makes.
    pub(crate) async fn calls(&self, line: &str) -> String {
        self.told("call", line).await
    }

    /// Tells `other@1` to do something.
    pub(crate) async fn other(&self, command: &str) -> Result<String, Error> {
        self.main.client().call("other@1", "run", command.to_owned()).await.map(text)
    }

    /// The next event that the guest publishes under `conformance.out.` and this.
    pub(crate) async fn published(&mut self, topic: &str) -> ReceivedEvent {
        loop {
            let event = self.published.next().await.unwrap();
            if event.topic.as_str() == format!("conformance.out.{topic}") {
                return event;
            }
        }
    }

    /// The text of the next event, as [`published`](Self::published).
    pub(crate) async fn heard(&mut self, topic: &str) -> String {
        text(self.published(topic).await.payload)
    }

    pub(crate) fn queue(&self, name: &str) -> QueueStatus {
        self.main.control().queues().into_iter().find(|queue| queue.queue.as_str() == name).unwrap()
    }

    pub(crate) async fn put(&self, queue: &str, job: &str) {
        self.main.client().queue(queue).unwrap().put(job.to_owned()).await.unwrap();
    }

    /// Waits for a state of the guest, however short; returns its reason.
    pub(crate) async fn reached(&self, state: ExtensionState) -> Option<String> {
        let mut events = self.main.control().events();
        loop {
            let status = self.main.control().status(GUEST).unwrap();
            if status.state == state {
                return status.reason;
            }
            // The next event may be that of a state which has passed by now.
            if let MainEvent::State { extension, to, reason, .. } = events.next().await.unwrap()
                && (extension.as_str(), to) == (GUEST, state)
            {
                return reason;
            }
        }
    }

    /// The same, with a failure that has just been told to its caller.
    async fn failure(&self) -> String {
        let failed = || !self.main.control().status(GUEST).unwrap().failures.is_empty();
        // Without one, the answer was wrong.
        drop(tokio::time::timeout(Duration::from_secs(1), until(failed)).await);
        self.account()
    }

    /// All that the guest logged, with fields, and the traces of its failures.
    pub(crate) fn account(&self) -> String {
        let lines = self.main.control().logs();
        let own = lines.iter().filter(|line| &*line.extension == GUEST);
        let mut account: String =
            own.map(|line| format!("{:?} {} {:?}\n", line.level, line.message, line.fields)).collect();
        for failure in self.main.control().status(GUEST).unwrap().failures {
            account += &format!("{} {:?}\n", failure.cause, failure.trace);
        }
        account
    }
}

pub(crate) fn text(bytes: Bytes) -> String {
    String::from_utf8(bytes.into()).unwrap()
}

/// Waits for what no event announces.
pub(crate) async fn until(is: impl Fn() -> bool) {
    let mut tick = tokio::time::interval(Duration::from_millis(5));
    while !is() {
        tick.tick().await;
    }
}

/// Main as the command `weir` has it: each component is compiled in a process of its own.
pub(crate) fn builder(config: Config, gate: &Gate) -> Builder {
    let helper = Compilation::Child { program: "/proc/self/exe".into(), arguments: vec![HELPER.into()] };
    Main::builder(config).compilation(helper).serve(gate.service())
}

/// One for all tests, so that each component is compiled once.
fn cache() -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance/cache")
}

/// What the operator writes for the guest.
pub(crate) fn config(language: &Language, data: &Path, cache: &Path) -> Config {
    let Language { component, stanza, .. } = language;
    let (component, cache, data) = (component.display(), cache.display(), data.display());
    let puppet = test_guests::path("puppet");
    let puppet = puppet.display();
    let text = format!(
        r#"
[main]
cache-dir = '{cache}'
plugin-dir = "/"
serves = ["tester@1"]
request-timeout = "60 s"

[[extension]]
id = "conformance"
path = '{component}'
fulfills = ["conformance@1"]
requires = ["tester@1"]
wants = ["other@1", "nobody@1"]
publishes = ["conformance.out.>"]
subscribes = [
    {{ topic = "conformance.in.>", policy = "drop-oldest", messages = 3 }},
    "conformance.numbers",
    "conformance.more.>",
]
puts = ["conformance-out"]
takes = ["conformance-jobs", "conformance-more"]
grants.dirs = [{{ host = '{data}', guest = "/data", mode = "rw" }}]
grants.env = {{ CONFORMANCE = "of the operator" }}
config = {{ key = "of the operator" }}
restart.policy = "never"
{stanza}

[[extension]]
id = "other"
path = '{puppet}'
fulfills = ["other@1"]
wants = ["tester@1", "conformance@1"]
subscribes = [{{ topic = "conformance.out.full", policy = "block", messages = 1 }}]
config = {{ contract = "other@1" }}
restart.policy = "never"
limits.message-size = "4 KiB"

[queue.conformance-jobs]
max-deliveries = 2
dead-letter = "conformance-dead"

[queue.conformance-more]

[queue.conformance-out]
messages = 1
when-full = "reject"

[topic."conformance.in.kept"]
retain = true
"#
    );
    let mut config =
        weir_host::parse(&text, "conformance", Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    for extension in &mut config.extensions {
        extension.limits.ready_timeout = PATIENCE;
        extension.limits.stop_timeout = PATIENCE;
        extension.limits.compile_timeout = PATIENCE * 5;
    }
    guest(&mut config).limits.message_size = MESSAGE_SIZE;
    config
}

pub(crate) fn guest(config: &mut Config) -> &mut ExtensionConfig {
    config.extensions.iter_mut().find(|extension| extension.id.as_str() == GUEST).unwrap()
}

/// It starts again at once, as often as it fails.
pub(crate) fn restart(config: &mut Config) {
    let restart = &mut guest(config).restart;
    restart.policy = RestartPolicy::OnFailure;
    restart.backoff = Duration::from_millis(1);
    restart.max_backoff = Duration::from_millis(1);
    restart.failures = 1000;
}

/// What Main serves: `pass` answers when the test allows.
#[derive(Default)]
pub(crate) struct Gate(Arc<Passing>);

struct Passing {
    permits: Semaphore,
    arrived: AtomicUsize,
    left: AtomicUsize,
}

impl Default for Passing {
    fn default() -> Self {
        Self { permits: Semaphore::new(0), arrived: AtomicUsize::new(0), left: AtomicUsize::new(0) }
    }
}

/// Counts a request that is over: answered, or given up by its sender.
struct Leaving<'a>(&'a Passing);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.left.fetch_add(1, Ordering::Relaxed);
    }
}

impl Gate {
    pub(crate) fn service(&self) -> Service {
        let passing = self.0.clone();
        Service::new("tester@1".parse().unwrap())
            .on("pass".parse().unwrap(), move |request| {
                let passing = passing.clone();
                async move {
                    passing.arrived.fetch_add(1, Ordering::Relaxed);
                    let _leaving = Leaving(&passing);
                    passing.permits.acquire().await.unwrap().forget();
                    Ok(request.payload)
                }
            })
            .on("add".parse().unwrap(), async |request| {
                let numbers: serde_json::Value = serde_json::from_slice(&request.payload).unwrap();
                let [left, right] = ["left", "right"].map(|field| numbers[field].as_i64().unwrap());
                let answer =
                    if left == 13 { r#""x""#.to_owned() } else { format!(r#"{{"sum":{}}}"#, left + right) };
                Ok(answer.into())
            })
            .on("remaining".parse().unwrap(), async |request| {
                Ok(request.remaining().as_millis().to_string().into())
            })
    }

    /// Lets so many requests pass.
    pub(crate) fn open(&self, passes: usize) {
        self.0.permits.add_permits(passes);
    }

    /// Waits until so many requests have come.
    pub(crate) async fn arrived(&self, requests: usize) {
        until(|| self.0.arrived.load(Ordering::Relaxed) >= requests).await;
    }

    /// Waits until so many requests are over.
    pub(crate) async fn left(&self, requests: usize) {
        until(|| self.0.left.load(Ordering::Relaxed) >= requests).await;
    }
}
