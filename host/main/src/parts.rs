//! Parts of Main that serve, such as the gateway: started again when they end, shown, and counted.
//!
//! Owns what is known of each part. Knows nothing of what a part does.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::Duration,
};

use futures_util::FutureExt;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::{
    runtime,
    sync::oneshot,
    time::{Instant, sleep, sleep_until},
};
use weir_names::harmless;

use crate::attached::Closed;

/// The pause before a part first starts again. Each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// After a part has served for this long, its next pause is [`FIRST_PAUSE`] again.
const WELL: Duration = Duration::from_secs(60);

/// Bytes of a reason that are kept and shown.
const REASON_SHOWN: usize = 512;

/// Lines of refusals for one reason in each [`TERM`]. Further refusals are only counted.
const LINES: u32 = 4;

const TERM: Duration = Duration::from_secs(60);

/// Bytes of a line about a refusal, before the escapes of what strangers sent.
const LINE_SHOWN: usize = 512;

/// A part of Main that serves.
#[derive(Clone, Debug)]
pub struct Part {
    name: &'static str,
    parts: Parts,
}

/// A part of Main at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct PartStatus {
    /// Its name, as in `gateway`.
    pub name: Cow<'static, str>,
    /// Whether it serves.
    pub state: PartState,
    /// Starts after the first.
    pub restarts: u64,
    /// Why it ended last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What it refused since Main started, by reason.
    pub refused: BTreeMap<Cow<'static, str>, u64>,
}

/// Whether a part serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PartState {
    /// It serves.
    #[default]
    Serving,
    /// It has ended, and starts again after a pause.
    BackingOff,
    /// An unknown word in the answer of another version of Main.
    #[serde(other)]
    Other,
}

impl PartState {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Serving => "serving",
            Self::BackingOff => "backing-off",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for PartState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// All parts of one Main. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts(Arc<Mutex<BTreeMap<&'static str, Known>>>);

#[derive(Debug, Default)]
struct Known {
    state: PartState,
    restarts: u64,
    reason: Option<String>,
    refused: BTreeMap<&'static str, Refused>,
}

/// Refusals for one reason.
#[derive(Debug, Default)]
struct Refused {
    count: u64,
    /// When the present [`TERM`] ends, in which refusals share [`LINES`] lines.
    term: Option<Instant>,
    lines: u32,
    left_out: u64,
}

/// What the log says of a refusal.
#[derive(Debug, PartialEq, Eq)]
enum Say {
    /// Log the refusal, and how many were left out before it without a line that says so.
    It(u64),
    /// Log nothing now. At this moment, log how many were left out.
    Later(Instant),
    /// Log nothing: a later line says how many were left out.
    Nothing,
}

impl Parts {
    pub(crate) fn part(&self, name: &'static str) -> Part {
        self.0.lock().entry(name).or_default();
        Part { name, parts: self.clone() }
    }

    pub(crate) fn list(&self) -> Vec<PartStatus> {
        let of = |(name, known): (&&'static str, &Known)| PartStatus {
            name: (*name).into(),
            state: known.state,
            restarts: known.restarts,
            reason: known.reason.clone(),
            refused: known
                .refused
                .iter()
                .map(|(reason, refused)| ((*reason).into(), refused.count))
                .collect(),
        };
        self.0.lock().iter().map(of).collect()
    }
}

impl Part {
    /// Counts a refusal for this reason, and logs `text`, which may have strangers' words. Of the refusals for one reason
    /// 4 a minute have a line; a further line then says how many were left out.
    pub fn refused(&self, reason: &'static str, text: impl FnOnce() -> String) {
        let say = self.with(|known| {
            let refused = known.refused.entry(reason).or_default();
            refused.count += 1;
            refused.say(Instant::now())
        });
        match say {
            Say::It(left_out) => {
                let (left_out, text) = ((left_out > 0).then_some(left_out), harmless(text(), LINE_SHOWN));
                tracing::warn!(
                    part = self.name,
                    reason,
                    left_out,
                    "a request or connection was refused: {text}"
                );
            }
            Say::Later(then) => {
                // Waits for the end of the term. If the part's runtime ends before, the next line says how many.
                if let Ok(runtime) = runtime::Handle::try_current() {
                    drop(runtime.spawn(self.clone().say_left_out(reason, then)));
                }
            }
            Say::Nothing => {}
        }
    }

    async fn say_left_out(self, reason: &'static str, then: Instant) {
        sleep_until(then).await;
        let left_out =
            self.with(|known| std::mem::take(&mut known.refused.entry(reason).or_default().left_out));
        if left_out > 0 {
            let part = self.name;
            tracing::warn!(
                part,
                reason,
                left_out,
                "more was refused in the last minute, without a line for each"
            );
        }
    }

    /// Counts a refusal that is logged elsewhere.
    pub fn count_refused(&self, reason: &'static str) {
        self.with(|known| known.refused.entry(reason).or_default().count += 1);
    }

    /// Runs `work` again and again, with a pause after each end, until Main has stopped everything else. What it returns,
    /// or the text of its panic, is the reason that is shown.
    pub(crate) async fn keep<W>(&self, mut closed: Closed, mut work: impl FnMut() -> W)
    where
        W: Future<Output = Result<(), String>>,
    {
        let mut pause = FIRST_PAUSE;
        loop {
            let began = Instant::now();
            // Called inside the future, so that a panic of the call itself is caught, too.
            let ended = AssertUnwindSafe(async { work().await }).catch_unwind().await;
            if closed.is_closed() {
                return;
            }
            if began.elapsed() >= WELL {
                pause = FIRST_PAUSE;
            }
            let failure = outcome(ended).err();
            self.ended(failure.as_deref().unwrap_or("it has returned"));
            tokio::select! {
                () = sleep(pause) => {}
                () = closed.wait() => return,
            }
            self.restarted();
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    fn ended(&self, why: &str) {
        let why = harmless(why, REASON_SHOWN);
        tracing::error!(part = self.name, "a part of Main has ended, and starts again soon: {why}");
        self.with(|known| (known.state, known.reason) = (PartState::BackingOff, Some(why)));
    }

    fn restarted(&self) {
        let restarts = self.with(|known| {
            known.state = PartState::Serving;
            known.restarts += 1;
            known.restarts
        });
        tracing::info!(part = self.name, restarts, "a part of Main starts again");
    }

    /// Notes that the part has ended, and that its work has begun again at once.
    #[cfg(feature = "http")]
    pub(crate) fn began_again(&self, why: &str) {
        self.ended(why);
        self.restarted();
    }

    fn with<T>(&self, act: impl FnOnce(&mut Known) -> T) -> T {
        act(self.parts.0.lock().entry(self.name).or_default())
    }
}

impl Refused {
    fn say(&mut self, now: Instant) -> Say {
        let mut before = 0;
        let term = match self.term.filter(|ends| *ends > now) {
            Some(term) => term,
            None => {
                (self.lines, before) = (0, std::mem::take(&mut self.left_out));
                *self.term.insert(now + TERM)
            }
        };
        if self.lines < LINES {
            self.lines += 1;
            return Say::It(before);
        }
        self.left_out += 1;
        if self.left_out == 1 { Say::Later(term) } else { Say::Nothing }
    }
}

/// Runs `work` to its end on a thread of its own, which has a runtime with sockets and timers.
///
/// # Errors
///
/// Says in words that there is no thread or no runtime, that `work` failed, or that it has panicked.
pub async fn on_thread<W>(name: &'static str, work: impl FnOnce() -> W + Send + 'static) -> Result<(), String>
where
    W: Future<Output = Result<(), String>>,
{
    on_thread_with(name, runtime::Builder::enable_all, work).await
}

/// [`on_thread`], with a runtime that has what `enable` enables.
pub(crate) async fn on_thread_with<W>(
    name: &'static str,
    enable: fn(&mut runtime::Builder) -> &mut runtime::Builder,
    work: impl FnOnce() -> W + Send + 'static,
) -> Result<(), String>
where
    W: Future<Output = Result<(), String>>,
{
    let (ended, end) = oneshot::channel();
    let run = move || {
        let runtime = enable(&mut runtime::Builder::new_current_thread()).build();
        runtime.map_err(|error| format!("it has no runtime: {error}"))?.block_on(work())
    };
    let body = move || {
        // Fails only if Main waits no longer.
        let _main = ended.send(outcome(catch_unwind(AssertUnwindSafe(run))));
    };
    thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
        .map_err(|error| format!("it has no thread: {error}"))?;
    end.await.unwrap_or_else(|_gone| Err("its thread has gone".to_owned()))
}

/// What work returned, or the text of its panic as an error.
fn outcome(ended: thread::Result<Result<(), String>>) -> Result<(), String> {
    ended.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Err(format!("it has panicked: {}", text.unwrap_or("without a text")))
    })
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::*;

    fn open() -> (watch::Sender<bool>, Closed) {
        let (closing, closed) = watch::channel(false);
        (closing, Closed(closed))
    }

    #[tokio::test(start_paused = true)]
    async fn a_part_that_ends_fails_or_panics_starts_again_after_longer_and_longer_pauses() {
        let (parts, (closing, closed)) = (Parts::default(), open());
        let part = parts.part("test");
        let (mut starts, began) = (Vec::new(), Instant::now());
        part.keep(closed, || {
            starts.push(began.elapsed());
            let run = starts.len();
            assert_ne!(run, 3, "on purpose");
            let closing = closing.clone();
            async move {
                match run {
                    1 => Ok(()),
                    2 => Err("failed\n".to_owned()),
                    12 => {
                        sleep(WELL).await;
                        Ok(())
                    }
                    13 => {
                        closing.send_replace(true);
                        Ok(())
                    }
                    _ => panic!("in the {run}th run"),
                }
            }
        })
        .await;
        let pauses: Vec<_> = starts.windows(2).map(|two| (two[1] - two[0]).as_millis()).collect();
        let longest = [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000, 10_000, 10_000, 60_100];
        // The clock of the runtime counts in milliseconds.
        assert!(pauses.iter().zip(longest).all(|(pause, until)| pause.abs_diff(until) <= 2), "{pauses:?}");
        let [status] = &parts.list()[..] else { panic!() };
        let reason = status.reason.as_deref();
        assert_eq!(
            (status.state, status.restarts, reason),
            (PartState::Serving, 12, Some("it has returned"))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn the_reason_of_a_part_that_waits_is_shown_and_the_end_of_main_ends_the_wait() {
        let (parts, (closing, closed)) = (Parts::default(), open());
        let part = parts.part("test");
        let fails: fn() -> Result<(), String> = || panic!("line one\nline two");
        let kept = part.keep(closed, || async move { fails() });
        let look = async {
            tokio::task::yield_now().await;
            let [status] = &parts.list()[..] else { panic!() };
            assert_eq!(status.state, PartState::BackingOff);
            assert_eq!(status.reason.as_deref(), Some("it has panicked: line one\\nline two"));
            drop(closing);
        };
        let began = Instant::now();
        tokio::join!(biased; kept, look);
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_thread_says_how_it_ended() {
        assert_eq!(on_thread("test", || async { Ok(()) }).await, Ok(()));
        assert_eq!(on_thread("test", || async { Err("no".to_owned()) }).await, Err("no".to_owned()));
        let fails: fn() -> Result<(), String> = || panic!("on purpose");
        let panicked = on_thread("test", move || async move { fails() }).await;
        assert_eq!(panicked, Err("it has panicked: on purpose".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn four_refusals_a_minute_have_lines_and_the_others_are_counted() {
        let mut refused = Refused::default();
        let began = Instant::now();
        let said: Vec<_> = (0..7).map(|_| refused.say(Instant::now())).collect();
        assert_eq!(said[..4], [Say::It(0), Say::It(0), Say::It(0), Say::It(0)]);
        assert_eq!(said[4..], [Say::Later(began + TERM), Say::Nothing, Say::Nothing]);
        assert_eq!(refused.left_out, 3);
        tokio::time::advance(TERM).await;
        assert_eq!(refused.say(Instant::now()), Say::It(3));
    }
}
