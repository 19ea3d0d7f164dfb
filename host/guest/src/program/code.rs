//! Compiled code that may be run, and the one place that turns bytes into it.

use wasmtime::{Engine, component::Component};

use super::error::LoadFault;
use crate::exit::said;

/// Bytes that come before what wasmtime made.
pub(super) const FOOTPRINT: usize = size_of::<u64>();

/// What wasmtime made of a component under this device's or a trusted key's authority, and before it, in
/// little-endian order, what it takes of Main's memory. Nothing else is ever deserialized: what wasmtime did not
/// make can do anything to the process.
#[derive(Debug)]
pub(super) struct Code(Vec<u8>);

impl Code {
    /// Of an artifact whose signature was verified.
    pub(super) fn signed(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Of a cache entry whose MAC was verified.
    #[cfg(feature = "compiler")]
    pub(super) fn cached(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// That was compiled just now.
    #[cfg(feature = "compiler")]
    pub(super) fn compiled(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    #[cfg(feature = "compiler")]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes of Main's memory that it takes.
    pub(super) fn footprint(&self) -> u64 {
        let code = self.0.len().saturating_sub(FOOTPRINT) as u64;
        self.0.first_chunk().map_or(code, |bytes| u64::from_le_bytes(*bytes).max(code))
    }

    /// Its component, unless it takes more than `allowed` bytes, or is for another engine.
    pub(super) fn load(&self, engine: &Engine, allowed: u64) -> Result<Component, LoadFault> {
        check(self.footprint(), allowed)?;
        let code = self.0.get(FOOTPRINT..).unwrap_or_default();
        #[expect(unsafe_code, reason = "a `Code` is made of bytes only that wasmtime has made")]
        // SAFETY: the bytes came out of wasmtime's own compiler and were authenticated since: see `Code`.
        // They are a private copy that nobody else can change.
        let component = unsafe { Component::deserialize(engine, code) };
        component.map_err(|error| LoadFault::Unusable(said(&error)))
    }
}

/// Whether a program of this footprint is allowed.
pub(super) fn check(footprint: u64, allowed: u64) -> Result<(), LoadFault> {
    if footprint > allowed {
        return Err(LoadFault::CodeTooLarge { bytes: footprint, allowed });
    }
    Ok(())
}
