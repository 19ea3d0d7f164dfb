//! One run of one extension: the task of its instance, and how the supervisor knows it.

use std::{panic::AssertUnwindSafe, sync::Arc, time::SystemTime};

use futures_util::FutureExt;
use weir_guest::{Exit, Handling, Instance, LoadError, Loaded, Programs, Signals, chain};

use crate::roster::Version;

/// An instance that runs.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) version: Arc<Version>,
    pub(super) signals: Arc<Signals>,
}

impl Run {
    /// Tells the instance to finish, within its stop deadline.
    pub(super) fn stop(&self) {
        self.version.peer.stop();
        self.signals.stop();
    }
}

/// An instance that has ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) run: Run,
    pub(super) end: End,
}

/// How an instance ended, or could not begin.
#[derive(Debug)]
pub(super) struct End {
    pub(super) exit: Exit,
    pub(super) handling: Option<Handling>,
    /// Of the component, in hexadecimal.
    pub(super) hash: Option<String>,
    /// Another start could not do better.
    pub(super) is_hopeless: bool,
    /// When that was.
    pub(super) time: SystemTime,
}

/// One instance, from its file or the program that its version keeps to its end. A panic under it is its
/// end, not Main's.
pub(super) async fn run(run: Run, programs: Arc<Programs>, instance: Box<Instance>) -> Ended {
    // Held until nothing is left of the instance.
    let (loaded, _place) = match run.version.program().and_then(Loaded::for_one) {
        Some(loaded) => loaded,
        None => {
            let (wanted, is_brief) = ((&*run.version.config).into(), run.version.is_brief());
            // Boxed, or what a load takes would be kept for as long as the instance runs.
            let load = Box::pin(AssertUnwindSafe(programs.load_for_one(wanted, is_brief)).catch_unwind());
            let loaded = tokio::select! {
                loaded = load => loaded,
                () = run.signals.stopped() => return Ended { run, end: End::of(Exit::Finished) },
            };
            match loaded {
                Ok(Ok(loaded)) => loaded,
                Err(panic) => return Ended { run, end: End::of(Exit::panicked(&*panic)) },
                Ok(Err(error)) => return Ended { run, end: End::not_loaded(&error) },
            }
        }
    };
    let program = loaded.program.clone();
    run.version.keep(loaded);
    let exit = AssertUnwindSafe(instance.run(program.clone())).catch_unwind().await;
    let hash = Some(program.hash.to_string());
    let end = match exit {
        Ok((exit, handling, time)) => End { exit, handling, hash, is_hopeless: false, time },
        Err(panic) => End { hash, ..End::of(Exit::panicked(&*panic)) },
    };
    Ended { run, end }
}

impl End {
    /// Now, and nothing more is known of it.
    fn of(exit: Exit) -> Self {
        Self { exit, handling: None, hash: None, is_hopeless: false, time: SystemTime::now() }
    }

    pub(super) fn not_loaded(error: &LoadError) -> Self {
        let (reason, limit) = (chain(error), error.fault.limit());
        let exit = match error.fault.hinders() {
            true => Exit::Hindered { reason, limit },
            false => Exit::Start { reason, limit },
        };
        let hash = error.hash.map(|hash| hash.to_string());
        Self { hash, is_hopeless: !error.fault.may_pass(), ..Self::of(exit) }
    }
}
