//! Compiled code that may be run, and the one place that turns bytes into it.

use wasmtime::{Engine, component::Component};

use super::error::LoadFault;
use crate::exit::said;

/// Bytes of the memory that it takes of Main, and of the length of its contracts.
pub(super) const FOOTPRINT: usize = size_of::<u64>();
pub(super) const HEADER: usize = 2 * FOOTPRINT;

/// wasmtime's output for a component, made or signed under the authority of this device or a trusted key. Before it
/// stand the memory that it takes of Main, the length of the contracts that the component describes, both in
/// little-endian order, and these contracts, one a line. Nothing else is ever deserialized: other bytes could do anything
/// to the process.
#[derive(Debug)]
pub(super) struct Code(Vec<u8>);

impl Code {
    /// From an artifact with a verified signature.
    pub(super) fn signed(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// From a cache entry with a verified MAC.
    #[cfg(feature = "compiler")]
    pub(super) fn cached(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// From a compilation just now.
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
        let code = self.0.len().saturating_sub(HEADER) as u64;
        self.0.first_chunk().map_or(code, |bytes| u64::from_le_bytes(*bytes).max(code))
    }

    /// The contracts that the component describes, one a line.
    pub(super) fn contracts(&self) -> &str {
        let text = self.parts().map(|(contracts, _)| str::from_utf8(contracts));
        text.and_then(Result::ok).unwrap_or_default()
    }

    /// Its component, unless it takes more than `allowed` bytes or is for another engine.
    pub(super) fn load(&self, engine: &Engine, allowed: u64) -> Result<Component, LoadFault> {
        check(self.footprint(), allowed)?;
        let (_, code) = self.parts().unwrap_or_default();
        #[expect(unsafe_code, reason = "a `Code` is made of bytes only that wasmtime has made")]
        // SAFETY: the bytes came out of wasmtime's own compiler and were authenticated since: see `Code`. They are a
        // private copy that nothing else can change.
        let component = unsafe { Component::deserialize(engine, code) };
        component.map_err(|error| LoadFault::Unusable(said(&error)))
    }

    /// The contracts, and wasmtime's output.
    fn parts(&self) -> Option<(&[u8], &[u8])> {
        let length = self.0.get(FOOTPRINT..)?.first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        self.0.get(HEADER..)?.split_at_checked(length)
    }
}

/// Everything that stands before wasmtime's output.
#[cfg(feature = "compiler")]
pub(super) fn head(footprint: u64, contracts: &str) -> Vec<u8> {
    let length = (contracts.len() as u64).to_le_bytes();
    [&footprint.to_le_bytes(), &length, contracts.as_bytes()].concat()
}

pub(super) fn check(footprint: u64, allowed: u64) -> Result<(), LoadFault> {
    if footprint > allowed {
        return Err(LoadFault::CodeTooLarge { bytes: footprint, allowed });
    }
    Ok(())
}
