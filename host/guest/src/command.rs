//! Runs a WASI command to its end or until it is cut off. A command imports only WASI.

mod capture;
mod runs_on;

use std::{
    convert::Infallible,
    fmt,
    panic::{self, AssertUnwindSafe},
    sync::Arc,
    time::Instant,
};

use bytes::Bytes;
use futures_util::FutureExt;
use wasmtime::component::Linker;
use wasmtime_wasi::{I32Exit, WasiCtxView, WasiView, p2::pipe::MemoryInputPipe};
use weir_config::{Grants, LimitHit, Limits, NetGrant, StoreGrant};
use weir_metrics::Usage;
use weir_names::{chain, harmless};
use weir_schedule::Activity;

use crate::program::LoadError;

use self::capture::Capture;
pub use self::runs_on::{Cut, RunsOn};
use super::{
    exit::{Exit, said},
    fit::GuestKind,
    http::HttpOutlet,
    imports,
    keyvalue::KeyValue,
    memory::size,
    meter,
    output::GuestOutput,
    program::Program,
    quota::Quotas,
    sandbox::{self, Guest, Sandbox},
    wasi::{self, Dirs, Machine, Net},
};

/// How many commands may run at once in one engine. Its pools have room for as many.
pub const AT_ONCE: u32 = 64;

/// The input of one command.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// The command's arguments, its name first.
    pub args: Vec<String>,
    /// The environment variables. A later one replaces an earlier one of the same name.
    pub env: Vec<(String, String)>,
    /// The command's standard input.
    pub stdin: Bytes,
    /// How many bytes the command and the commands before it may write, to each of standard output and standard error.
    pub output: u64,
    /// How many bytes the commands before it have written to standard output, and to standard error.
    pub written: (usize, usize),
}

impl fmt::Debug for WasiCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasiCommand").finish_non_exhaustive()
    }
}

/// How a command ended.
#[derive(Debug)]
pub enum End {
    /// The command ended with this exit code. A code outside 0 to 255 is shown as 255.
    Code(u8),
    /// A limit ended the command, or kept it from being loaded.
    Limit(LimitHit),
    /// The command trapped, Main panicked while it ran, or it could not be loaded or started.
    System {
        /// What went wrong.
        reason: String,
        /// The names of the running functions, innermost first. Empty if no trap ended the command.
        trace: Vec<String>,
    },
    /// The command was cut off.
    Cut(Cut),
}

/// The outcome of a command.
#[derive(Debug)]
pub struct Ended {
    /// How the command ended.
    pub end: End,
    /// What the command wrote to standard output.
    pub stdout: Bytes,
    /// What the command wrote to standard error.
    pub stderr: Bytes,
    /// Units of fuel that the command used.
    pub fuel: u64,
    /// The most bytes of memory that the command had at once.
    pub memory: u64,
}

/// Reports what a command was refused, as the rest of a line.
pub type Say = Arc<dyn Fn(&str) + Send + Sync>;

/// A command that is about to run.
pub struct WasiCommand {
    outlet: HttpOutlet,
    machine: Machine,
    say: Say,
    stdout: Capture,
    stderr: Capture,
}

impl WasiCommand {
    /// Makes a command that may use these opened directories, reach these addresses, and send by HTTP what `outlet`
    /// allows. What it is refused is reported to `say`.
    pub fn new(
        limits: &Limits,
        dirs: Dirs,
        net: Arc<[NetGrant]>,
        outlet: HttpOutlet,
        surroundings: Surroundings,
        say: Say,
    ) -> Self {
        let capture = |before| Capture::new(before, size(surroundings.output));
        let (stdout, stderr) = (capture(surroundings.written.0), capture(surroundings.written.1));
        let said = say.clone();
        let net = Net::new(net, GuestKind::Command, move |text| said(text));
        let mut builder = wasi::granted(limits, &net);
        builder
            .args(&surroundings.args)
            .envs(&surroundings.env)
            .stdin(MemoryInputPipe::new(surroundings.stdin))
            .stdout(GuestOutput(stdout.clone()))
            .stderr(GuestOutput(stderr.clone()));
        Self { outlet, machine: dirs.in_context(&mut builder, net), say, stdout, stderr }
    }

    /// Adds the stores that `owner` is granted.
    #[must_use]
    pub fn with_stores(
        mut self,
        key_value: &KeyValue,
        owner: &str,
        grants: &[StoreGrant],
        limits: &Limits,
    ) -> Self {
        self.machine.stores = key_value.access(owner, grants, limits);
        self
    }

    /// Opens the granted directories, which may block. With `may_block`, file operations block the polling thread.
    pub fn open(grants: &Grants, may_block: bool, quotas: &Quotas) -> Result<Dirs, String> {
        Dirs::open(&grants.dirs, may_block, quotas, &Usage::default()).map_err(|error| said(&error))
    }

    /// Counts what is in the directories with a bounded size.
    pub async fn count(dirs: &Dirs) -> Result<(), String> {
        dirs.count().await.map_err(|error| said(&error))
    }

    /// Runs the command to its end, or until it is cut off.
    pub async fn run(
        self,
        program: &Program<Sandbox>,
        limits: &Limits,
        runs_on: &RunsOn,
        deadline: Instant,
        closing: &async_channel::Receiver<Infallible>,
    ) -> Ended {
        let Self { outlet, mut machine, say, stdout, stderr } = self;
        let (usage, activity) = (Arc::<Usage>::default(), Arc::new(Activity::new()));
        machine.http =
            program.sends_http.then(|| Box::new(outlet.access(limits, &usage, move |text| say(text))));
        let mut sandbox = Sandbox::new(limits, machine, &usage, activity.clone());
        sandbox.may_block = runs_on.may_block();
        let end = match sandbox::new_store(program.engine(), sandbox, limits) {
            Err(error) => End::System { reason: said(&error), trace: Vec::new() },
            Ok(mut store) => {
                let guest = program.run(&mut store);
                let guest = AssertUnwindSafe(runs_on.run(guest, activity, &usage)).catch_unwind();
                let ended = runs_on.until(deadline, closing, guest).await;
                meter::finish(&store);
                let end = match ended {
                    Err(cut) => End::Cut(cut),
                    Ok(Err(panic)) => End::from(Exit::panicked(&*panic)),
                    Ok(Ok(result)) => end(result, store.data(), limits),
                };
                let dropped = panic::catch_unwind(AssertUnwindSafe(|| drop(store)));
                dropped.map_or_else(|panic| End::from(Exit::panicked(&*panic)), |()| end)
            }
        };
        Ended {
            end,
            stdout: stdout.take(),
            stderr: stderr.take(),
            fuel: usage.fuel_to_start.peak(),
            memory: usage.memory.peak(),
        }
    }
}

/// Returns how a command ended that was not cut off, judged by wasmtime's result.
fn end(result: wasmtime::Result<Result<(), ()>>, sandbox: &Sandbox, limits: &Limits) -> End {
    let code = match &result {
        Ok(Ok(())) => Some(0),
        Ok(Err(())) => Some(1),
        Err(error) => error.downcast_ref::<I32Exit>().map(|exit| u8::try_from(exit.0).unwrap_or(u8::MAX)),
    };
    match code {
        Some(code) => End::Code(code),
        None => Exit::of(result, limits).in_sandbox(sandbox).into(),
    }
}

impl From<Exit> for End {
    fn from(exit: Exit) -> Self {
        let reason = exit.to_string();
        match (exit.limit(), exit) {
            (Some(limit), _) => Self::Limit(limit),
            (None, Exit::Trapped { trace, .. }) => Self::System { reason, trace },
            (None, _) => Self::System { reason, trace: Vec::new() },
        }
    }
}

impl WasiView for Sandbox {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi()
    }
}

impl Guest for Sandbox {
    const KIND: GuestKind = GuestKind::Command;

    fn add_to_linker(linker: &mut Linker<Self>) -> wasmtime::Result<()> {
        imports::add_command(linker)
    }

    #[inline(always)]
    fn sandbox(&self) -> &Sandbox {
        self
    }

    #[inline(always)]
    fn sandbox_mut(&mut self) -> &mut Sandbox {
        self
    }
}

impl From<LoadError> for End {
    fn from(error: LoadError) -> Self {
        match error.fault.limit() {
            Some(limit) => Self::Limit(limit),
            None => Self::System { reason: harmless(chain(&error), 4096), trace: Vec::new() },
        }
    }
}
