//! Programs whose instances come and go, and come from pools: of extensions that end by themselves as soon as their work is
//! done, and of HTTP servers.
//!
//! Those of brief extensions are kept for the next start. Both cost memory, which is bounded for all of them together.
//! Which extensions these are is decided elsewhere.

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

/// How many instances of HTTP servers the pools have room for. A server that finds less room than it may need has all of
/// its instances on demand.
const SERVERS: u32 = 64;

/// How many bytes of code are kept.
const KEPT: u64 = 4 << 20;

/// The programs of brief extensions and of servers, with the pools that their instances come from.
#[derive(Debug)]
pub(super) struct Pooled {
    brief: Pool,
    servers: Pool,
    /// The programs of brief extensions that are kept. The last used one is at the end.
    kept: Mutex<VecDeque<Loaded>>,
}

#[derive(Debug)]
struct Pool {
    programs: Programs<InstanceState>,
    /// The free places.
    places: Arc<Semaphore>,
}

/// An instance's place in the pools, held while it runs. Empty for an instance that uses no pools.
#[derive(Debug)]
pub struct PoolPermit(#[expect(dead_code, reason = "held, not read")] Option<OwnedSemaphorePermit>);

impl Pool {
    fn new(others: &Programs, size_of_pools: u32) -> Self {
        let places = Arc::new(Semaphore::new(size(size_of_pools.into())));
        let programs = Programs { places: Some(places.clone()), ..others.in_pools(size_of_pools) };
        Self { programs, places }
    }

    /// Takes so many places, if they are free.
    fn take(&self, instances: u32) -> Option<OwnedSemaphorePermit> {
        self.places.clone().try_acquire_many_owned(instances).ok()
    }
}

impl Pooled {
    pub(super) fn new(others: &Programs) -> Self {
        let (brief, servers) = (Pool::new(others, PLACES), Pool::new(others, SERVERS));
        Self { brief, servers, kept: Mutex::default() }
    }

    pub(super) fn read_again(&self, component: &ComponentSource) {
        self.brief.programs.read_again(component);
        self.servers.programs.read_again(component);
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
    /// Loads a component for one instance, or for those of a server. They come from pools, if the instance `is_brief` or
    /// is a server's and there are free places. A brief program is then kept if it is small enough.
    pub async fn load_for_one(
        &self,
        wanted: LoadRequest<'_>,
        is_brief: bool,
    ) -> Result<(Loaded, PoolPermit), LoadError> {
        let Some(pooled) = &self.pooled else { return Ok((self.load(wanted).await?, PoolPermit(None))) };
        let (pool, instances) = match wanted.servers {
            Some(servers) => (&pooled.servers, servers),
            None => (&pooled.brief, 1),
        };
        let place = if is_brief || wanted.servers.is_some() { pool.take(instances) } else { None };
        let Some(place) = place else { return Ok((self.load(wanted).await?, PoolPermit(None))) };
        let loaded = pool.programs.load(wanted).await?;
        if wanted.servers.is_none() {
            pooled.keep(&loaded);
        }
        Ok((loaded, PoolPermit(Some(place))))
    }
}

impl Loaded {
    /// Adds places in the pools for this many instances, if the program needs that. Returns none if they are not free.
    pub fn for_instances(self, instances: u32) -> Option<(Self, PoolPermit)> {
        let place = match &self.program.places {
            Some(places) => Some(places.clone().try_acquire_many_owned(instances).ok()?),
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
