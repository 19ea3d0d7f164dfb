//! Programs of extensions that end by themselves as soon as their work is done.
//!
//! These programs are kept for the next start, and their instances come from pools. Both cost memory, which is bounded
//! for all of them together. Which extensions these are is decided elsewhere.

#[cfg(test)]
mod tests;

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use weir_config::ComponentSource;

use super::{LoadError, LoadRequest, Loaded, Program, Programs};
use crate::{instance_state::InstanceState, memory::size};

/// How many instances the pools have room for. Further ones are allocated on demand.
const PLACES: u32 = 8;

/// How many bytes of code are kept.
const KEPT: u64 = 4 << 20;

/// The programs of brief extensions, with the pools that their instances come from.
#[derive(Debug)]
pub(super) struct Brief {
    programs: Programs<InstanceState>,
    /// The free places in the pools.
    places: Arc<Semaphore>,
    /// The programs that are kept. The last used one is at the end.
    kept: Mutex<VecDeque<Loaded>>,
}

/// An instance's place in the pools, held while it runs. Empty for an instance that uses no pools.
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

    /// Keeps this program, unless it is too large. Drops the least recently used ones beyond the bound.
    fn keep(&self, loaded: &Loaded) {
        if !loaded.program.can_be_kept() {
            return;
        }
        let mut kept = self.kept.lock();
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
    /// Loads a component for one instance. The instance comes from pools, if it `is_brief` and they have a free place,
    /// and the program is then kept if it is small enough.
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
    /// Adds a place in the pools for one instance, if the program needs that. Returns none if no place is free.
    pub fn for_one(self) -> Option<(Self, PoolPermit)> {
        let place = match &self.program.places {
            Some(places) => Some(places.clone().try_acquire_owned().ok()?),
            None => None,
        };
        Some((self, PoolPermit(place)))
    }
}

impl Program {
    /// Whether the program is small enough to be kept for brief extensions.
    pub fn can_be_kept(&self) -> bool {
        self.footprint <= KEPT
    }
}
