//! Programs of extensions that end by themselves as soon as they have done what they are started for.
//!
//! They are kept for the next start, and have their instances from pools: both costs memory, of which there
//! is so much for all of them together and no more. Which extensions these are is not decided here.

#[cfg(test)]
mod tests;

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_config::ComponentSource;

use super::{LoadError, LoadRequest, Loaded, Program, Programs};
use crate::{instance_state::InstanceState, memory::size};

/// Instances that may be in the pools at once. Further ones are had on demand.
const PLACES: u32 = 8;

/// Bytes of code that are kept.
const KEPT: u64 = 4 << 20;

/// The programs of such extensions.
#[derive(Debug)]
pub(super) struct Brief {
    programs: Programs<InstanceState>,
    places: Arc<Semaphore>,
    /// What was used last is at the end.
    kept: Mutex<VecDeque<Loaded>>,
}

/// What an instance holds of pools for as long as it is: nothing if it comes from none.
#[derive(Debug)]
pub struct PoolPermit(#[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

impl Brief {
    pub(super) fn new(others: &Programs) -> Self {
        let places = Arc::new(Semaphore::new(size(PLACES.into())));
        let programs = Programs { places: Some(places.clone()), ..others.in_pools(PLACES) };
        Self { programs, places, kept: Mutex::default() }
    }

    pub(super) fn read_again(&self, component: &ComponentSource) {
        self.programs.read_again(component);
    }

    /// Keeps it, in place of those that were not used for longest.
    fn keep(&self, loaded: &Loaded) {
        if !loaded.program.can_be_kept() {
            return;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| !Arc::ptr_eq(&other.program, &loaded.program));
        kept.push_back(loaded.clone());
        let mut bytes: u64 = kept.iter().map(|loaded| loaded.program.footprint).sum();
        while bytes > KEPT
            && let Some(oldest) = kept.pop_front()
        {
            bytes -= oldest.program.footprint;
        }
    }
}

impl Programs {
    /// Loads a file for one instance: from pools if it `is_brief` and there is a place in them.
    pub async fn load_for_one(
        &self,
        wanted: LoadRequest<'_>,
        is_brief: bool,
    ) -> Result<(Loaded, PoolPermit), LoadError> {
        if let Some(brief) = self.brief.as_ref().filter(|_| is_brief)
            && let Ok(place) = brief.places.clone().try_acquire_owned()
        {
            let loaded = brief.programs.load(wanted).await?;
            brief.keep(&loaded);
            return Ok((loaded, PoolPermit(Some(place))));
        }
        Ok((self.load(wanted).await?, PoolPermit(None)))
    }
}

impl Loaded {
    /// With a place for one instance. None: it has them from pools, and there is none left.
    pub fn for_one(self) -> Option<(Self, PoolPermit)> {
        let place = match &self.program.places {
            Some(places) => Some(places.clone().try_acquire_owned().ok()?),
            None => None,
        };
        Some((self, PoolPermit(place)))
    }
}

impl Program {
    /// Whether it is kept when it is brief.
    pub fn can_be_kept(&self) -> bool {
        self.footprint <= KEPT
    }
}
