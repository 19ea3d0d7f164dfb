//! Finds programs in use, by the bytes of their component, or by its file while that is unchanged.
//!
//! Holds only weak references, so that no program stays because of it.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use tokio::sync::OnceCell;
use weir_config::ArtifactHash;
use weir_openrpc::Descriptions;

use super::{LoadRequest, Program, World, admission::Voucher, stamp::FileStamp};
use crate::{engine::EngineKind, instance_state::InstanceState, sandbox::Guest};

/// How many files are known at most. Further ones are read at each load.
const FILES: usize = 4096;

/// A program, and the slot that keeps it for other loads of the same bytes.
#[derive(Debug)]
pub struct Loaded<G: 'static = InstanceState> {
    /// The program, which others may share.
    pub program: Arc<Program<G>>,
    /// The contracts that the component describes, under the names that they have in the configuration.
    pub descriptions: Arc<Descriptions>,
    /// Who vouched for the component or artifact when it was loaded.
    pub(super) voucher: Voucher,
    pub(super) for_others: Arc<ProgramSlot<G>>,
}

impl<G> Loaded<G> {
    pub(super) fn new(
        program: Arc<Program<G>>,
        wanted: LoadRequest<'_>,
        voucher: Voucher,
        for_others: Arc<ProgramSlot<G>>,
    ) -> Self {
        Self { descriptions: wanted.descriptions(&program), program, voucher, for_others }
    }
}

impl<G> Clone for Loaded<G> {
    fn clone(&self) -> Self {
        Self {
            program: self.program.clone(),
            descriptions: self.descriptions.clone(),
            voucher: self.voucher.clone(),
            for_others: self.for_others.clone(),
        }
    }
}

/// The place where the first load of some bytes leaves the program for others.
pub(super) type ProgramSlot<G> = OnceCell<Arc<Program<G>>>;

/// The hash of the component, the kind of engine, and what it is run as.
type ProgramKey = (ArtifactHash, EngineKind, World);

/// The programs in use, as long as others hold them.
#[derive(Debug)]
pub(super) struct HeldPrograms<G: 'static>(Mutex<Index<G>>);

#[derive(Debug)]
struct Index<G: 'static> {
    by_bytes: HashMap<ProgramKey, Weak<ProgramSlot<G>>>,
    by_path: HashMap<PathBuf, KnownFile<G>>,
}

/// A file that was loaded: its stamp then, the way in which it was loaded, and its program.
#[derive(Debug)]
struct KnownFile<G: 'static> {
    stamp: FileStamp,
    plugin_dir: Option<PathBuf>,
    file_size: u64,
    engine: EngineKind,
    world: World,
    voucher: Voucher,
    slot: Weak<ProgramSlot<G>>,
}

impl<G> Default for HeldPrograms<G> {
    fn default() -> Self {
        Self(Mutex::new(Index { by_bytes: HashMap::new(), by_path: HashMap::new() }))
    }
}

impl<G: Guest> HeldPrograms<G> {
    /// Returns the slot for these bytes. The slot has the program once a load of these bytes has succeeded.
    pub(super) fn slot(&self, hash: ArtifactHash, engine: EngineKind, world: World) -> Arc<ProgramSlot<G>> {
        let by_bytes = &mut self.0.lock().by_bytes;
        by_bytes.retain(|_, slot| slot.strong_count() > 0);
        if let Some(slot) = by_bytes.get(&(hash, engine, world)).and_then(Weak::upgrade) {
            return slot;
        }
        let slot = Arc::new(ProgramSlot::default());
        by_bytes.insert((hash, engine, world), Arc::downgrade(&slot));
        slot
    }

    /// Returns the loaded program of the file, if it was loaded in the way that is wanted now and has not changed. Only
    /// the hash and the code size are checked again, because other faults showed in that load.
    pub(super) fn unchanged(&self, wanted: LoadRequest<'_>) -> Option<Loaded<G>> {
        let LoadRequest { component, plugin_dir, limits, sha256, .. } = wanted;
        let path = component.path()?;
        let (stamp, voucher, slot) = {
            let index = self.0.lock();
            let known = index.by_path.get(path)?;
            let was = (known.plugin_dir.as_deref(), known.file_size, known.engine, known.world);
            let is_as_wanted = was == (plugin_dir, limits.file_size, wanted.engine(), wanted.world());
            (known.stamp, known.voucher.clone(), known.slot.upgrade().filter(|_| is_as_wanted)?)
        };
        let program = slot.get()?.clone();
        let is_pinned = sha256.is_none_or(|pinned| pinned == program.hash);
        let may_be_used =
            is_pinned && program.footprint <= limits.code_size && program.misfit(wanted).is_none();
        (may_be_used && FileStamp::in_memory(path, plugin_dir) == Some(stamp))
            .then(|| Loaded::new(program, wanted, voucher, slot))
    }

    /// Remembers the program of a file, if the file cannot change without a trace and fewer than [`FILES`] others are
    /// known.
    pub(super) fn remember(&self, wanted: LoadRequest<'_>, stamp: Option<FileStamp>, loaded: &Loaded<G>) {
        let (Some(stamp), Some(path)) = (stamp, wanted.component.path()) else { return };
        let by_path = &mut self.0.lock().by_path;
        by_path.retain(|_, known| known.slot.strong_count() > 0);
        if by_path.len() < FILES || by_path.contains_key(path) {
            let known = KnownFile {
                stamp,
                plugin_dir: wanted.plugin_dir.map(Path::to_owned),
                file_size: wanted.limits.file_size,
                engine: wanted.engine(),
                world: wanted.world(),
                voucher: loaded.voucher.clone(),
                slot: Arc::downgrade(&loaded.for_others),
            };
            by_path.insert(path.to_owned(), known);
        }
    }

    /// Returns the bytes that the code of all programs takes in a cache.
    pub(super) fn cached(&self) -> u64 {
        let in_use = |((hash, engine, _), slot): (&ProgramKey, &Weak<ProgramSlot<G>>)| {
            // Engines that differ in stacks share an entry, as all worlds do.
            Some(((*hash, engine.code()), slot.upgrade()?.get()?.cached))
        };
        let entries: HashMap<_, _> = self.0.lock().by_bytes.iter().filter_map(in_use).collect();
        entries.into_values().sum()
    }

    /// Makes the next load read this file again.
    pub(super) fn forget(&self, path: &Path) {
        self.0.lock().by_path.remove(path);
    }
}
