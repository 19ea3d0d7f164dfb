//! Compiled code that may be run, and the one place that turns bytes into it.

use wasmtime::{Engine, component::Component};

use super::{error::LoadFault, said};

/// Compiled code that wasmtime made under this device's or a trusted key's authority. Nothing else is ever
/// deserialized: what wasmtime did not make can do anything to the process.
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

    /// Its component, unless it has more than `allowed` bytes, or is for another engine.
    pub(super) fn load(self, engine: &Engine, allowed: u64) -> Result<Component, LoadFault> {
        let bytes = self.0.len() as u64;
        if bytes > allowed {
            return Err(LoadFault::CodeTooLarge { bytes, allowed });
        }
        #[expect(unsafe_code, reason = "a `Code` is made of bytes only that wasmtime has made")]
        // SAFETY: the bytes came out of wasmtime's own compiler and were authenticated since: see `Code`.
        // They are a private copy that nobody else can change.
        let component = unsafe { Component::deserialize(engine, &self.0) };
        component.map_err(|error| LoadFault::Unusable(said(&error)))
    }
}
