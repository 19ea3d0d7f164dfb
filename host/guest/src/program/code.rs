//! Compiled code that may be run. This is the one place that turns bytes into code.

use wasmtime::{Engine, component::Component};

use super::error::LoadFault;
#[cfg(not(feature = "compiler"))]
use super::packed;
use crate::{
    engine::{AddressClass, CompileTarget, TARGET_SIZE},
    exit::said,
};

/// How many bytes a number in the header takes.
const NUMBER: usize = size_of::<u64>();
/// How many bytes the header takes: the memory that the code takes of Main, the lengths of contracts and kernel, and
/// the target.
pub(super) const HEADER: usize = 3 * NUMBER + TARGET_SIZE;

/// wasmtime's output for a component, made by this device, or signed by a trusted key. No other bytes are ever
/// deserialized, because they could do anything to the process.
///
/// Before the output stand three numbers in little-endian order: the memory that it takes of Main, and the lengths of
/// the contracts and of the kernel. Then come the target, the contracts, one a line, and the kernel.
#[derive(Debug)]
pub(super) struct Code(Vec<u8>);

impl Code {
    /// Takes the bytes of an artifact with a verified signature.
    pub(super) fn signed(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Takes the bytes of a cache entry with a verified MAC.
    #[cfg(feature = "compiler")]
    pub(super) fn cached(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Takes the bytes that were compiled just now.
    #[cfg(feature = "compiler")]
    pub(super) fn compiled(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    #[cfg(feature = "compiler")]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes that an entry of a cache has for the code.
    pub(super) fn size(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the bytes of Main's memory that the code takes.
    pub(super) fn footprint(&self) -> u64 {
        let code = self.0.len().saturating_sub(HEADER) as u64;
        self.0.first_chunk().map_or(code, |bytes| u64::from_le_bytes(*bytes).max(code))
    }

    /// Returns the contracts that the component describes, one a line. Empty if the code is damaged.
    pub(super) fn contracts(&self) -> &str {
        let text = self.parts().map(|(contracts, ..)| str::from_utf8(contracts));
        text.and_then(Result::ok).unwrap_or_default()
    }

    /// Returns the target that code in this form was compiled for, or none if the bytes have another form. The bytes
    /// need not be authenticated.
    pub(super) fn target_in(bytes: &[u8]) -> Option<CompileTarget> {
        CompileTarget::from_bytes(bytes.get(3 * NUMBER..)?.first_chunk()?)
    }

    /// Makes the component. Fails if the code takes more than `allowed` bytes, or is damaged or made for another target
    /// or engine.
    pub(super) fn load(
        &self,
        engine: &Engine,
        class: AddressClass,
        allowed: u64,
    ) -> Result<Component, LoadFault> {
        check(self.footprint(), allowed)?;
        let (made, needed) =
            (Self::target_in(&self.0).ok_or(LoadFault::DamagedArtifact)?, CompileTarget::of_main(class));
        if !made.fits(&needed) {
            return Err(LoadFault::OtherTarget(Box::new([made, needed])));
        }
        let (.., code) = self.parts().unwrap_or_default();
        #[expect(unsafe_code, reason = "a `Code` holds only bytes that wasmtime has made")]
        // SAFETY: the bytes came out of wasmtime's own compiler and were authenticated since: see `Code`. They are a
        // private copy that nothing else can change.
        let component = unsafe { Component::deserialize(engine, code) };
        component.map_err(|error| LoadFault::Unusable(said(&error)))
    }

    /// Returns the module that measures the time that fuel takes, if the code comes with one.
    #[cfg(not(feature = "compiler"))]
    pub(super) fn kernel(&self) -> Option<Kernel> {
        let class = Self::target_in(&self.0)?.address_class();
        let (_, packed, _) = self.parts().filter(|(_, packed, _)| !packed.is_empty())?;
        Some(Kernel { class, code: packed::unpack(packed)? })
    }

    /// Returns the contracts, the kernel, and wasmtime's output, or none if the numbers in front do not fit the bytes.
    fn parts(&self) -> Option<(&[u8], &[u8], &[u8])> {
        let length = |number: usize| {
            let bytes = self.0.get(number * NUMBER..)?.first_chunk()?;
            usize::try_from(u64::from_le_bytes(*bytes)).ok()
        };
        let (contracts, rest) = self.0.get(HEADER..)?.split_at_checked(length(1)?)?;
        let (kernel, code) = rest.split_at_checked(length(2)?)?;
        Some((contracts, kernel, code))
    }
}

/// A compiled module that came with an artifact, and measures the time that fuel takes.
#[cfg(not(feature = "compiler"))]
#[derive(Debug)]
pub(crate) struct Kernel {
    pub(crate) class: AddressClass,
    code: Vec<u8>,
}

#[cfg(not(feature = "compiler"))]
impl Kernel {
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<wasmtime::Module> {
        #[expect(unsafe_code, reason = "the bytes are a part of a `Code`")]
        // SAFETY: the bytes came out of wasmtime's own compiler and were authenticated since, as parts of a `Code`.
        unsafe {
            wasmtime::Module::deserialize(engine, &self.code)
        }
    }
}

/// Returns everything that stands before wasmtime's output.
#[cfg(feature = "compiler")]
pub(super) fn head(footprint: u64, contracts: &str, kernel: &[u8], target: &[u8; TARGET_SIZE]) -> Vec<u8> {
    let numbers = [footprint, contracts.len() as u64, kernel.len() as u64].map(u64::to_le_bytes);
    [numbers.as_flattened(), target.as_slice(), contracts.as_bytes(), kernel].concat()
}

/// Fails if code takes more than `allowed` bytes.
pub(super) fn check(footprint: u64, allowed: u64) -> Result<(), LoadFault> {
    if footprint > allowed {
        return Err(LoadFault::CodeTooLarge { bytes: footprint, allowed });
    }
    Ok(())
}
