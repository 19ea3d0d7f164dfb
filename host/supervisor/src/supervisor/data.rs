//! The data of an extension, before its next instance runs: prepared while none of its instances runs.
//!
//! Each instance of an extension with stores goes in by a gate, which it holds until nothing is left of it. What is done
//! with the data needs the gate alone. [`weir_versions`] knows what is to be done.

use std::{io, sync::Arc, time::Duration};

use tokio::{
    sync::{Mutex, OwnedRwLockReadGuard, OwnedSemaphorePermit, RwLock, Semaphore, oneshot},
    time::timeout,
};
use weir_config::{ArtifactHash, ExtensionConfig};
use weir_guest::{Admission, Exit};
use weir_versions::{Crossing, DataHindrance, Versions};

use super::{
    Supervisor,
    run::{End, Run},
    versions::form_of,
};

/// How long an instance that is told to stop waits for what is done with its data. That goes on without it.
const STOPS_WITHIN: Duration = Duration::from_secs(10);

/// How long an instance waits for what is done with the data of other extensions.
const OTHERS_WITHIN: Duration = Duration::from_secs(600);

/// The way to the data of one extension.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    /// Held by each instance, and alone by what changes the data.
    inside: Arc<RwLock<()>>,
    /// Held by the instance that waits to change the data, so that others look anew before they wait for that.
    change: Arc<Mutex<()>>,
}

/// Only one extension at a time has its data changed, and one noted: each takes a thread, and may take a whole component
/// in memory.
#[derive(Clone, Debug)]
pub(super) struct Turns {
    change: Arc<Semaphore>,
    note: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        let [change, note] = [1, 1].map(|at_once| Arc::new(Semaphore::new(at_once)));
        Self { change, note }
    }
}

/// Held as long as an instance runs.
pub(super) type Inside = OwnedRwLockReadGuard<()>;

/// The way of one instance to its data.
#[derive(Debug)]
pub(super) struct EntryToData {
    gate: Gate,
    turns: Turns,
    versions: Arc<Versions>,
    /// Decides which components may be read for what they say of the data.
    admission: Arc<Admission>,
}

impl Supervisor {
    /// The way to the data for an instance with this configuration. None if it has no stores.
    pub(super) fn entry_to_data(&mut self, config: &ExtensionConfig) -> Option<EntryToData> {
        if config.grants.stores.is_empty() {
            return None;
        }
        let versions = &self.parts.versions;
        let id = config.copy_of.as_ref().unwrap_or(&config.id).clone();
        let gate = self.gates.entry(id).or_default().clone();
        let (turns, admission) = (self.turns.clone(), self.parts.programs.admission().clone());
        Some(EntryToData { gate, turns, versions: versions.clone(), admission })
    }

    /// Forgets that data was to be restored for a version that has not come back: another order is needed for that.
    /// Not yet, if other instances are on their way back.
    pub(super) fn stays(&mut self, index: usize) {
        let mut others = self.slots.sharing(index).into_iter().filter(|other| *other != index);
        if others.any(|other| self.slots.get(other).is_some_and(|slot| slot.reload.is_some())) {
            return;
        }
        if let Some((_, id, _)) = self.versioned(index)
            && self.parts.versions.stays(&id)
        {
            self.save(index, None);
        }
    }

    /// Says why a version does not take the place of the one that runs, if that is because of its data. A version that
    /// comes back by itself waits for the end of the one that was refused, which serves as well as it can.
    pub(super) fn against_its_data(
        &self,
        index: usize,
        config: &ExtensionConfig,
        number: Option<u64>,
    ) -> Option<String> {
        let slot = self.slots.get(index).filter(|slot| slot.life.is_there())?;
        let reload = slot.reload.as_ref()?;
        if !reload.is_asked_for() && !reload.is_of_itself() {
            return None;
        }
        let cannot = number.and_then(|number| self.parts.versions.cannot_read(config, number));
        if let Some(reason) = cannot {
            return Some(format!("{reason}; the version before serves on"));
        }
        // Where `update` was taken away, it may be only that.
        if !reload.is_asked_for() || number.is_none() {
            return None;
        }
        let runs = |other: &usize| self.slots.get(*other).is_some_and(|slot| slot.runs().next().is_some());
        let others = self.slots.sharing(index).into_iter().filter(|other| *other != index);
        let is_alone = others.filter(runs).count() == 0;
        let crossing = self.parts.versions.crossing(config, number, None);
        (!is_alone && crossing == Crossing::Alone).then(|| {
            let id = slot.config.copy_of.as_ref().unwrap_or(&slot.config.id);
            format!("its data changes, which all instances share: `weir stop {id}`, then `weir start {id}`")
        })
    }
}

impl EntryToData {
    /// Prepares the data for this run of a component with this hash, if there is something to do, and goes in.
    pub(super) async fn enter(self, run: &Run, hash: ArtifactHash) -> Result<Inside, End> {
        let Self { gate, turns, versions, admission } = self;
        let (config, number) = (&run.version.config, run.version.number());
        let crossing = || versions.crossing(config, number, Some(hash));
        loop {
            if crossing() != Crossing::Alone {
                let inside = run.waits(gate.inside.clone().read_owned()).await?;
                match crossing() {
                    Crossing::Nothing => return Ok(inside),
                    Crossing::Noted => {
                        let turn = run.turn(turns.note).await?;
                        return prepare(run, versions, admission, hash, (inside, turn))
                            .await
                            .map(|held| held.0);
                    }
                    // What another instance has begun comes first.
                    Crossing::Alone => drop(inside),
                }
            }
            let change = run.until_stopped(gate.change.clone().lock_owned()).await?;
            // Another instance may have done it meanwhile.
            if crossing() == Crossing::Alone {
                let alone = run.waits(gate.inside.clone().write_owned()).await?;
                let turn = run.turn(turns.change).await?;
                let (alone, ..) = prepare(run, versions, admission, hash, (alone, change, turn)).await?;
                return Ok(alone.downgrade());
            }
        }
    }
}

/// Prepares the data, on a thread of its own: the stores need those of the pool meanwhile. What is `held` is let go after
/// that, even if the instance has given up.
async fn prepare<T: Send + 'static>(
    run: &Run,
    versions: Arc<Versions>,
    admission: Arc<Admission>,
    hash: ArtifactHash,
    held: T,
) -> Result<T, End> {
    let (config, number) = (run.version.config.clone(), run.version.number());
    let (done, crossed) = oneshot::channel();
    let cross = move || {
        let crossed = versions.cross(&config, number, hash, &|it| form_of(it, &admission));
        // If the instance has given up, what it held goes here.
        let _given_up = done.send((held, crossed));
    };
    std::thread::Builder::new().name("weir-data".to_owned()).spawn(cross).map_err(no_thread)?;
    let lost = || hindered("its data is not prepared: see Main's log".to_owned(), false);
    let (held, crossed) = run.unless_stopped(crossed).await.and_then(Result::ok).ok_or_else(lost)?;
    crossed.map_err(|DataHindrance { reason, is_held }| hindered(reason, is_held))?;
    Ok(held)
}

impl Run {
    /// Waits for other instances, which may take their time to stop.
    async fn waits<T>(&self, ends: impl Future<Output = T>) -> Result<T, End> {
        let limits = &self.version.config.limits;
        let time = limits.ready_timeout + limits.stop_timeout;
        self.in_time(time, ends, "other instances of it still run, and its data is to change").await
    }

    /// Waits until no other extension has its data prepared.
    async fn turn(&self, turn: Arc<Semaphore>) -> Result<Option<OwnedSemaphorePermit>, End> {
        let hindrance = "the data of another extension is being prepared";
        let turn = self.in_time(OTHERS_WITHIN, turn.acquire_owned(), hindrance);
        // Fails only if the semaphore is closed, which nobody does.
        turn.await.map(Result::ok)
    }

    /// Waits until the instance is told to stop, or for this time. It is hindered then by what is said.
    async fn in_time<T>(
        &self,
        time: Duration,
        ends: impl Future<Output = T>,
        hindrance: &str,
    ) -> Result<T, End> {
        tokio::select! {
            ended = timeout(time, ends) => ended.map_err(|_| hindered(hindrance.to_owned(), false)),
            () = self.signals.stopped() => Err(End::of(Exit::Finished)),
        }
    }

    /// Waits for what is done with data, which takes the time that it takes, until the instance is told to stop.
    async fn until_stopped<T>(&self, ends: impl Future<Output = T>) -> Result<T, End> {
        tokio::select! {
            ended = ends => Ok(ended),
            () = self.signals.stopped() => Err(End::of(Exit::Finished)),
        }
    }

    /// Waits for this, and not for long once the instance is told to stop.
    async fn unless_stopped<T>(&self, ends: impl Future<Output = T>) -> Option<T> {
        tokio::pin!(ends);
        tokio::select! {
            done = &mut ends => Some(done),
            () = self.signals.stopped() => timeout(STOPS_WITHIN, ends).await.ok(),
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "`map_err` gives it away")]
fn no_thread(error: io::Error) -> End {
    hindered(format!("its data was not prepared: {error}"), false)
}

/// The end of an instance that does not run because of its data. One that `is_held` does not start again by itself.
fn hindered(reason: String, is_held: bool) -> End {
    End { is_hopeless: is_held, ..End::of(Exit::Hindered { reason, limit: None }) }
}
