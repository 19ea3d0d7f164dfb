//! One run of one extension: the task of its instance, and what the supervisor knows of the run.

use std::{panic::AssertUnwindSafe, sync::Arc, time::SystemTime};

use futures_util::FutureExt;
use weir_config::ExtensionConfig;
use weir_guest::{
    Exit, Handling, Instance, InstanceEnd, LoadError, LoadRequest, Programs, Signals, Unanswered,
};
use weir_names::chain;
use weir_versions::{Chosen, Versions};

use super::{data::EntryToData, versions::choose};
use crate::roster::Version;

#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) version: Arc<Version>,
    pub(super) signals: Arc<Signals>,
}

impl Run {
    /// Tells the instance to finish within its stop deadline.
    pub(super) fn stop(&self) {
        self.version.peer.stop();
        self.signals.stop();
    }
}

#[derive(Debug)]
pub(super) struct Ended {
    pub(super) run: Run,
    pub(super) end: End,
}

#[derive(Debug)]
pub(super) struct End {
    pub(super) exit: Exit,
    pub(super) handling: Option<Handling>,
    /// Dropped, and so answered, after the failure is on record.
    pub(super) unanswered: Option<Unanswered>,
    pub(super) hash: Option<String>,
    /// Whether another start would fail the same way.
    pub(super) is_hopeless: bool,
    pub(super) time: SystemTime,
    /// What is to run instead. Nothing ran.
    pub(super) instead: Option<Chosen>,
}

/// Runs one instance from load to end. A panic ends the instance, not Main.
///
/// With `configured`, the version to run is chosen first. If that is another one, the run ends at once. With `entry`, the
/// data of the extension is prepared before the instance runs.
pub(super) async fn run(
    run: Run,
    programs: Arc<Programs>,
    configured: Option<(Arc<ExtensionConfig>, Arc<Versions>)>,
    entry: Option<EntryToData>,
    instance: Box<Instance>,
) -> Ended {
    // `_place` is held until nothing is left of the instance.
    let config = run.version.config.clone();
    // What was revoked since it was loaded is loaded again, and refused.
    let kept = run.version.program().filter(|kept| programs.admits(LoadRequest::from(&*config), kept));
    let (loaded, _place) =
        match kept.and_then(|kept| kept.for_instances(LoadRequest::from(&*config).servers.unwrap_or(1))) {
            Some(loaded) => loaded,
            None => {
                let load = async {
                    let mut wanted = LoadRequest::from(&*config);
                    if let Some((configured, versions)) = configured.clone() {
                        let chosen = choose(&programs, versions, configured, false).await;
                        let chosen = chosen.map_err(|error| End::not_loaded(&error))?;
                        if *chosen.config != *run.version.config {
                            return Err(End { instead: Some(chosen), ..End::of(Exit::Finished) });
                        }
                        run.version.note_chosen(chosen.number, chosen.is_canary);
                        wanted.sha256 = chosen.hash.or(wanted.sha256);
                    }
                    let loaded = programs.load_for_one(wanted, run.version.is_brief()).await;
                    loaded.map_err(|error| End::not_loaded(&error))
                };
                // Boxed, because the task would keep the space of a load for as long as the instance runs.
                let load = Box::pin(AssertUnwindSafe(load).catch_unwind());
                let loaded = tokio::select! {
                    loaded = load => loaded,
                    () = run.signals.stopped() => return Ended { run, end: End::of(Exit::Finished) },
                };
                match loaded {
                    Ok(Ok(loaded)) => loaded,
                    Err(panic) => return Ended { run, end: End::of(Exit::panicked(&*panic)) },
                    Ok(Err(end)) => return Ended { run, end },
                }
            }
        };
    let program = loaded.program.clone();
    let entered = match entry {
        Some(entry) => {
            let entered = Box::pin(AssertUnwindSafe(entry.enter(&run, program.hash)).catch_unwind()).await;
            match entered {
                Ok(inside) => inside.map(Some),
                Err(panic) => Err(End::of(Exit::panicked(&*panic))),
            }
        }
        None => Ok(None),
    };
    // `_inside` is held until nothing is left of the instance.
    let _inside = match entered {
        Ok(inside) => inside,
        Err(mut end) => {
            run.version.forget_program();
            // Another version may run while this one is hindered.
            let is_hindered = matches!(end.exit, Exit::Hindered { .. }) && !end.is_hopeless;
            if let Some((configured, versions)) = configured.filter(|_| is_hindered) {
                let chosen = Box::pin(choose(&programs, versions, configured, false)).await;
                // The configured one would be one that is hindered, too, and comes after a delay.
                let is_another = |it: &Chosen| it.held_back.is_some() && *it.config != *run.version.config;
                end.instead = chosen.ok().filter(is_another);
            }
            return Ended { run, end };
        }
    };
    run.version.keep(loaded);
    let ended = AssertUnwindSafe(instance.run(program.clone())).catch_unwind().await;
    let hash = Some(program.hash.to_string());
    let end = match ended {
        Ok(InstanceEnd { exit, handling, time, unanswered }) => {
            End { handling, unanswered, hash, time, ..End::of(exit) }
        }
        Err(panic) => End { hash, ..End::of(Exit::panicked(&*panic)) },
    };
    Ended { run, end }
}

impl End {
    pub(super) fn of(exit: Exit) -> Self {
        let time = SystemTime::now();
        let (handling, unanswered, hash, instead) = (None, None, None, None);
        Self { exit, handling, unanswered, hash, is_hopeless: false, time, instead }
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
