//! One run of one extension: the task that owns its Store, from instantiation to exit.

use std::{
    any::Any,
    future::poll_fn,
    panic::{self, AssertUnwindSafe},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
    time::{Duration, SystemTime},
};

use futures_util::{FutureExt, task::AtomicWaker};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};
use wasmtime::{Store, Trap};
use wasmtime_wasi::{I32Exit, WasiCtx};
use weir_bus::{Bus, Error, MessageId, Peer, PeerId};
use weir_config::{ExtensionConfig, LimitHit, LimitKey, LimitName, Limits, NetGrant};
use weir_metrics::{Usage, nanoseconds};
use weir_names::harmless;
use weir_schedule::{Activity, InTurn, SharedShare, Turns};

use super::{
    limit, meter,
    openings::Openings,
    output::Output,
    program::Program,
    sandbox::{self, Guest, Sandbox},
    state::State,
    wasi::{self, Dirs},
};

/// What an instance tells its supervisor while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    Ready,
    Interrupted(String),
}

/// A notice, and who gave it: it counts only while that run goes on.
#[derive(Debug)]
pub struct Noted {
    pub peer: PeerId,
    pub run: u64,
    pub notice: Notice,
}

/// What passes between a running instance and its supervisor, beside messages.
#[derive(Debug)]
pub struct Signals {
    peer: PeerId,
    run: u64,
    notices: async_channel::Sender<Noted>,
    /// Another version is kept until it is ready.
    is_on_trial: bool,
    ready: Notify,
    stop: Stop,
}

/// That an instance is to finish, for the one task that runs it.
#[derive(Debug, Default)]
struct Stop {
    is_asked: AtomicBool,
    task: AtomicWaker,
}

impl Signals {
    /// For the `run`th run of a peer.
    pub fn new(peer: PeerId, run: u64, notices: async_channel::Sender<Noted>, is_on_trial: bool) -> Self {
        Self { peer, run, notices, is_on_trial, ready: Notify::new(), stop: Stop::default() }
    }

    pub fn run(&self) -> u64 {
        self.run
    }

    /// The instance is to finish within its stop deadline; its inbox says so to the guest.
    pub fn stop(&self) {
        self.stop.is_asked.store(true, Ordering::Release);
        self.stop.task.wake();
    }

    /// Waits until it is to finish.
    pub fn stopped(&self) -> impl Future<Output = ()> {
        // Looked at each time that the instance does anything, and nearly always for nothing.
        let mut known: Option<Waker> = None;
        poll_fn(move |context| {
            if !known.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
                self.stop.task.register(context.waker());
                known = Some(context.waker().clone());
            }
            if self.stop.is_asked.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
    }

    pub(super) async fn notify(&self, notice: Notice) {
        // Either way it has started; but a trial ends with what serves.
        if notice == Notice::Ready || !self.is_on_trial {
            self.ready.notify_one();
        }
        // It fails only as Main ends, and nobody listens any more.
        let _main_ends = self.notices.send(Noted { peer: self.peer, run: self.run, notice }).await;
    }
}

/// What wasmtime says of a guest that traps on purpose.
const GAVE_UP: &str = "wasm `unreachable` instruction executed";

/// Why an instance ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exit {
    /// `main` returned.
    #[error("finished")]
    Finished,
    /// `main` returned an error, or the guest exited with a code other than 0.
    #[error("{}", .0.as_deref().unwrap_or("`main` returned an error"))]
    Failed(Option<String>),
    /// It cannot be started.
    #[error("cannot start: {reason}")]
    Start {
        /// Why.
        reason: String,
        /// The limit that it hit.
        limit: Option<LimitHit>,
    },
    /// It cannot be started as long as a file system hangs, which is not its fault.
    #[error("cannot start: {reason}")]
    Hindered {
        /// Why.
        reason: String,
        /// The limit that it hit.
        limit: Option<LimitHit>,
    },
    /// It trapped.
    #[error("trapped: {cause}")]
    Trapped {
        /// The trap, in words.
        cause: String,
        /// The limit that it hit.
        limit: Option<LimitHit>,
        /// Function names, innermost first.
        trace: Vec<String>,
    },
    /// It used up its fuel.
    #[error("`{limit}` of {allowed} used up")]
    OutOfFuel {
        /// The limit that the fuel came from.
        limit: LimitName,
        /// What there was of it.
        allowed: u64,
        /// Function names, innermost first.
        trace: Vec<String>,
    },
    /// It was not ready in time.
    #[error("not ready within `ready-timeout` of {}", humantime::format_duration(*.0))]
    NotReady(Duration),
    /// It did not finish in time after it was asked to stop.
    #[error("did not stop within `stop-timeout` of {}", humantime::format_duration(*.0))]
    StopOverdue(Duration),
    /// The host failed under it.
    #[error("internal error: {0}")]
    Panicked(String),
}

/// The message that an instance was at when it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handling {
    /// None of an event.
    pub message: Option<MessageId>,
    /// Of an event.
    pub sequence: Option<u64>,
    pub sender: PeerId,
    pub operation: String,
}

/// All that one instance needs.
#[derive(Debug)]
pub struct Instance {
    pub bus: Arc<Bus>,
    pub peer: Arc<Peer>,
    pub config: Arc<ExtensionConfig>,
    pub output: Output,
    pub turns: Arc<Turns>,
    pub openings: Arc<Openings>,
    pub share: Arc<SharedShare>,
    pub signals: Arc<Signals>,
    pub usage: Arc<Usage>,
}

impl Instance {
    /// Runs the program to its end, its deadlines included; says when that was, before all that the
    /// guest had is given back.
    pub async fn run(self: Box<Self>, program: Arc<Program>) -> (Exit, Option<Handling>, SystemTime) {
        let (activity, started) = (Arc::new(Activity::new()), Instant::now());
        let opened = tokio::select! {
            biased;
            opened = self.surroundings() => opened.map_err(|error| cannot_start(&error, None)),
            () = self.signals.stopped() => Err(Exit::Finished),
            () = sleep_until(started + self.config.limits.ready_timeout) => Err(self.opens_late()),
        };
        let store = opened.and_then(|(wasi, net)| {
            let store = self.store(&program, wasi, net, activity.clone());
            store.map_err(|error| cannot_start(&error, None))
        });
        let mut store = match store {
            Ok(store) => store,
            Err(exit) => return (exit, None, SystemTime::now()),
        };
        // What the guest had is given back after a panic of the host's, too.
        let exit = AssertUnwindSafe(self.watch(&program, &mut store, activity, started)).catch_unwind().await;
        let exit = exit.unwrap_or_else(|panic| Exit::panicked(&*panic));
        let ended = SystemTime::now();
        meter::finish(&store);
        self.output.report_dropped();
        let state = store.data_mut();
        let exit = match (exit, state.fault.take()) {
            (Exit::Finished | Exit::Failed(_), Some(fault)) => Exit::Failed(Some(fault)),
            (exit, _) => exit.in_sandbox(&state.sandbox),
        };
        let handling = state.in_hand.handling(&state.jobs);
        let ended_itself = matches!(exit, Exit::Finished | Exit::Failed(_));
        let (unreached, lost) =
            state.in_hand.end(if ended_itself { &Error::PeerGone } else { &Error::Trapped });
        self.peer.give_back(unreached, &lost);
        state.jobs.end();
        // Its last words are written, which may panic, too.
        let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(store)));
        let exit = dropped.map_or_else(|panic| Exit::panicked(&*panic), |()| exit);
        (exit, handling, ended)
    }

    /// Drives the guest until it ends by itself or a deadline ends it.
    async fn watch(
        &self,
        program: &Program,
        store: &mut Store<State>,
        activity: Arc<Activity>,
        started: Instant,
    ) -> Exit {
        let limits = &self.config.limits;
        let ready_by = started + limits.ready_timeout;
        let mut stop_by = None;
        let mut is_ready = false;
        let guest = guest(program, store);
        let mut guest =
            InTurn::new(guest, self.turns.clone(), self.share.clone(), activity, self.usage.clone());
        loop {
            tokio::select! {
                biased;
                result = &mut guest => {
                    self.note_stop(stop_by);
                    return exit(result, limits);
                }
                () = self.signals.ready.notified(), if !is_ready => {
                    is_ready = true;
                    self.usage.ready.set(nanoseconds(started.elapsed()));
                }
                () = self.signals.stopped(), if stop_by.is_none() => {
                    stop_by = Some(Instant::now() + limits.stop_timeout);
                }
                () = sleep_until(stop_by.unwrap_or(ready_by)), if !is_ready || stop_by.is_some() => {
                    if stop_by.is_none() {
                        return Exit::NotReady(limits.ready_timeout);
                    }
                    self.note_stop(stop_by);
                    return Exit::StopOverdue(limits.stop_timeout);
                }
            }
        }
    }

    /// Notes down how long the stop took, if there was one.
    fn note_stop(&self, stop_by: Option<Instant>) {
        if let Some(stop_by) = stop_by {
            let took = (Instant::now() + self.config.limits.stop_timeout).saturating_duration_since(stop_by);
            self.usage.stop.set(nanoseconds(took));
        }
    }

    /// What the guest sees of the machine. Directories are opened off the worker, and for as long as it takes: a
    /// dead network file system would hold it up.
    async fn surroundings(&self) -> wasmtime::Result<(WasiCtx, Arc<[NetGrant]>)> {
        let net: Arc<[_]> = self.config.grants.net.clone().into();
        let dirs = match &self.config.grants.dirs {
            none if none.is_empty() => Dirs::default(),
            dirs => {
                let paths = dirs.iter().map(|dir| dir.host.clone()).collect();
                let config = self.config.clone();
                self.openings.open(paths, move || Dirs::open(&config.grants.dirs, false)).await??
            }
        };
        Ok((wasi::context(&self.config, &net, &self.output, dirs), net))
    }

    /// It cannot be ready in time, since what it is granted is not there yet.
    fn opens_late(&self) -> Exit {
        let late = Exit::NotReady(self.config.limits.ready_timeout);
        let reason = format!("its granted directories could not be opened: {late}");
        Exit::Hindered { reason, limit: late.limit() }
    }

    fn store(
        &self,
        program: &Program,
        wasi: WasiCtx,
        net: Arc<[NetGrant]>,
        activity: Arc<Activity>,
    ) -> wasmtime::Result<Store<State>> {
        let limits = &self.config.limits;
        let sandbox = Sandbox::new(limits, net, wasi, &self.usage, activity);
        let state = State::new(
            self.bus.clone(),
            self.peer.clone(),
            self.signals.clone(),
            sandbox,
            self.output.clone(),
            self.usage.clone(),
            self.config.clone(),
        );
        sandbox::store(program.pre.engine(), state, limits)
    }
}

/// How a guest ended, from what wasmtime says. That of the memory that it was refused is its sandbox's to add, and so
/// is the fuel that it had.
pub(super) fn exit(result: wasmtime::Result<Result<(), ()>>, limits: &Limits) -> Exit {
    let error = match result {
        Ok(Ok(())) => return Exit::Finished,
        Ok(Err(())) => return Exit::Failed(None),
        Err(error) => error,
    };
    if let Some(I32Exit(code)) = error.downcast_ref() {
        return match code {
            0 => Exit::Finished,
            code => Exit::Failed(Some(format!("exited with code {code}"))),
        };
    }
    if error.is::<NotInstantiated>() {
        return cannot_start(&error, limit::counted(&error, limits));
    }
    let trace = trace(&error);
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => {
            // The sandbox knows which, and how much there was.
            let limit = LimitKey::FUEL_PER_MESSAGE.into();
            Exit::OutOfFuel { limit, allowed: 0, trace }
        }
        Some(trap) => {
            let text = trap.to_string();
            let cause = text.strip_prefix("wasm trap: ").unwrap_or(&text);
            let limit = (*trap == Trap::StackOverflow).then(|| {
                let stack = limits.stack;
                LimitHit::new(LimitKey::STACK, stack, stack)
            });
            Exit::Trapped { cause: cause.to_owned(), limit, trace }
        }
        None => {
            let cause = harmless(&error.root_cause().to_string(), 1024);
            Exit::Trapped { cause, limit: limit::hit(&error, limits), trace }
        }
    }
}

impl Exit {
    /// The host panicked under it.
    pub fn panicked(panic: &(dyn Any + Send)) -> Self {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        Self::Panicked(harmless(text.unwrap_or("panic"), 1024))
    }

    /// With what the guest's sandbox knows of it: the fuel that there was, the memory that it was refused.
    pub(super) fn in_sandbox(self, sandbox: &Sandbox) -> Self {
        match self {
            Self::OutOfFuel { trace, .. } => {
                let (limit, allowed) = sandbox.meter.budget();
                Self::OutOfFuel { limit: limit.into(), allowed, trace }
            }
            // So do most programs give up when they get no memory.
            Self::Trapped { cause, limit: None, trace } if cause.contains(GAVE_UP) => {
                Self::Trapped { cause, limit: sandbox.memory.refused(), trace }
            }
            Self::Start { reason, limit: None } => Self::Start { reason, limit: sandbox.memory.refused() },
            exit => exit,
        }
    }

    /// The limit that it hit, where that is why it ended.
    pub fn limit(&self) -> Option<LimitHit> {
        let hit = |limit: LimitName, used, allowed| Some(LimitHit::new(limit, used, allowed));
        match self {
            Self::Trapped { limit, .. } | Self::Start { limit, .. } | Self::Hindered { limit, .. } => {
                limit.clone()
            }
            Self::OutOfFuel { limit, allowed, .. } => hit(*limit, *allowed, *allowed),
            Self::NotReady(allowed) => {
                hit(LimitKey::READY_TIMEOUT.into(), nanoseconds(*allowed), nanoseconds(*allowed))
            }
            Self::StopOverdue(allowed) => {
                hit(LimitKey::STOP_TIMEOUT.into(), nanoseconds(*allowed), nanoseconds(*allowed))
            }
            Self::Finished | Self::Failed(_) | Self::Panicked(_) => None,
        }
    }
}

/// Runs a guest from its instantiation to the end of its `main`.
pub(super) async fn guest<G: Guest>(
    program: &Program<G>,
    store: &mut Store<G>,
) -> wasmtime::Result<Result<(), ()>> {
    // Boxed, or what that takes would be kept for as long as the guest runs.
    let command = Box::pin(program.pre.instantiate_async(&mut *store))
        .await
        .map_err(|error| if error.is::<Trap>() { error } else { error.context(NotInstantiated) })?;
    command.wasi_cli_run().call_run(store).await
}

fn cannot_start(error: &wasmtime::Error, limit: Option<LimitHit>) -> Exit {
    Exit::Start { reason: said(error), limit }
}

/// What wasmtime says, in one harmless line.
pub(super) fn said(error: &wasmtime::Error) -> String {
    harmless(&format!("{error:#}"), 1024)
}

/// Marks an error that came before the guest ran at all.
#[derive(Debug, thiserror::Error)]
#[error("cannot be instantiated")]
struct NotInstantiated;

/// Names of the functions that were running, innermost first.
fn trace(error: &wasmtime::Error) -> Vec<String> {
    let frames = error.downcast_ref::<wasmtime::WasmBacktrace>().map(wasmtime::WasmBacktrace::frames);
    let name = |frame: &wasmtime::FrameInfo| match frame.func_name() {
        Some(name) => harmless(&format!("{:#}", rustc_demangle::demangle(name)), 256),
        None => format!("function {}", frame.func_index()),
    };
    frames.unwrap_or_default().iter().take(32).map(name).collect()
}
