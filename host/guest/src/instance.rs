//! One run of one extension: the task that owns its Store, from instantiation to exit.

use std::{
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::SystemTime,
};

use futures_util::FutureExt;
use tokio::time::{Instant, sleep_until};
use wasmtime::Store;
use wasmtime_wasi::WasiCtx;
use weir_bus::{Bus, Error, Peer};
use weir_config::{ExtensionConfig, NetGrant};
use weir_metrics::{Usage, nanoseconds};
use weir_schedule::{Activity, InTurn, SharedShare, Turns};

use super::{
    delivery::Handling,
    exit::Exit,
    instance_state::InstanceState,
    meter,
    openings::Openings,
    output::Output,
    program::Program,
    sandbox::{self, Sandbox},
    signals::Signals,
    wasi::{self, Dirs},
};

/// All that one instance needs.
#[derive(Debug)]
pub struct Instance {
    /// What it sends by.
    pub bus: Arc<Bus>,
    /// The extension, as the bus knows it.
    pub peer: Arc<Peer>,
    /// What it may use and reach.
    pub config: Arc<ExtensionConfig>,
    /// Where its log lines go.
    pub output: Output,
    /// In which it runs while it is busy.
    pub turns: Arc<Turns>,
    /// By which its directories are opened.
    pub openings: Arc<Openings>,
    /// Its share of the worker thread, which no restart renews.
    pub share: Arc<SharedShare>,
    /// To and from its supervisor.
    pub signals: Arc<Signals>,
    /// Where what it uses is counted.
    pub usage: Arc<Usage>,
}

impl Instance {
    /// Runs the program to its end, its deadlines included; says when that was, before all that the
    /// guest had is given back.
    pub async fn run(self: Box<Self>, program: Arc<Program>) -> (Exit, Option<Handling>, SystemTime) {
        let (activity, started) = (Arc::new(Activity::new()), Instant::now());
        let opened = tokio::select! {
            biased;
            opened = self.surroundings() => opened.map_err(|error| Exit::cannot_start(&error, None)),
            () = self.signals.stopped() => Err(Exit::Finished),
            () = sleep_until(started + self.config.limits.ready_timeout) => Err(self.opens_late()),
        };
        let store = opened.and_then(|(wasi, net)| {
            let store = self.store(&program, wasi, net, activity.clone());
            store.map_err(|error| Exit::cannot_start(&error, None))
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
        let handling = state.delivery.handling();
        let ended_itself = matches!(exit, Exit::Finished | Exit::Failed(_));
        state.delivery.end(if ended_itself { &Error::PeerGone } else { &Error::Trapped });
        // Its last words are written, which may panic, too.
        let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(store)));
        let exit = dropped.map_or_else(|panic| Exit::panicked(&*panic), |()| exit);
        (exit, handling, ended)
    }

    /// Drives the guest until it ends by itself or a deadline ends it.
    async fn watch(
        &self,
        program: &Program,
        store: &mut Store<InstanceState>,
        activity: Arc<Activity>,
        started: Instant,
    ) -> Exit {
        let limits = &self.config.limits;
        let ready_by = started + limits.ready_timeout;
        let mut stop_by = None;
        let mut is_ready = false;
        let guest = program.run(store);
        let mut guest =
            InTurn::new(guest, self.turns.clone(), self.share.clone(), activity, self.usage.clone());
        loop {
            tokio::select! {
                biased;
                result = &mut guest => {
                    self.note_stop(stop_by);
                    return Exit::of(result, limits);
                }
                () = self.signals.became_ready(), if !is_ready => {
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
    ) -> wasmtime::Result<Store<InstanceState>> {
        let limits = &self.config.limits;
        let sandbox = Sandbox::new(limits, net, wasi, &self.usage, activity);
        let state = InstanceState::new(
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
