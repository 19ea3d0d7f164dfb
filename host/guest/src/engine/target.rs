//! What code is compiled for: a kind of processor and system, or the interpreter Pulley, and a class of address space.

use std::{fmt, str::FromStr};

use rustix::process::{Resource, getrlimit};
use target_lexicon::{Architecture, Endianness, HOST, PointerWidth, Triple};
use weir_config::{AddressSpace, INTERPRETED};

/// The end of an address space of 39 bits, which some kernels for 64-bit ARM have. With large reservations, this space
/// holds about 125 memories.
const SMALL: u64 = 1 << 39;

/// Up to this limit of address space, too few large reservations fit. At the limit there is room for a thousand
/// memories, or for 750 beside the pools of hooks.
const LITTLE: u64 = 1 << 42;

/// Bytes that a memory reserves in a small address space: the limit `memory` of the class `max`.
const RESERVED: u64 = 64 << 20;

/// Beyond the reservation, a memory moves each time that it has grown by this much.
const FOR_GROWTH: u64 = 16 << 20;

const GUARD: u64 = 64 << 10;

/// How many bytes a target takes in front of compiled code.
pub(crate) const TARGET_SIZE: usize = 64;

/// How much address space each memory of a guest reserves. Compiled code depends on it: code for one class does not run
/// in a Main with the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressClass {
    /// More than 4 GiB.
    Large = 0,
    /// At most 64 MiB. A memory that grows further moves.
    Small = 1,
}

impl AddressClass {
    /// Returns the name, as in `main.address-space`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Large => "large",
            Self::Small => "small",
        }
    }

    /// Returns the class of a Main with this setting on this machine, and the reason if the class is small.
    #[must_use]
    pub fn of(setting: AddressSpace) -> (Self, Option<&'static str>) {
        let reason = match setting {
            _ if cfg!(target_pointer_width = "32") => Some("addresses have 32 bits"),
            AddressSpace::Small => Some("`main.address-space` says so"),
            AddressSpace::Large => None,
            _ if end_of_stack().is_some_and(|end| end <= SMALL) => Some("addresses have 39 bits or less"),
            _ if getrlimit(Resource::As).current.is_some_and(|limit| limit <= LITTLE) => {
                Some("this process is limited to 4 TiB of it or less")
            }
            _ => None,
        };
        (if reason.is_some() { Self::Small } else { Self::Large }, reason)
    }
}

impl FromStr for AddressClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        [Self::Large, Self::Small]
            .into_iter()
            .find(|class| class.name() == text)
            .ok_or_else(|| "expected `large` or `small`".to_owned())
    }
}

/// Returns where the stack of the main thread ends, which is near the end of the address space. Returns none if the
/// kernel does not tell.
fn end_of_stack() -> Option<u64> {
    end_of_stack_in(&std::fs::read_to_string("/proc/self/maps").ok()?)
}

/// Returns the end of the stack in the text of `/proc/self/maps`.
fn end_of_stack_in(maps: &str) -> Option<u64> {
    let stack = maps.lines().find(|line| line.ends_with(" [stack]"))?;
    let (_, end) = stack.split_whitespace().next()?.split_once('-')?;
    u64::from_str_radix(end, 16).ok()
}

/// What code is compiled for: a processor and system, and a class of address space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompileTarget {
    triple: Triple,
    class: AddressClass,
}

/// Nothing compiles for this target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileTargetError {
    /// The name of the target is unknown.
    #[error("there is no target `{triple}`: {reason}")]
    Unknown {
        /// The name of the target.
        triple: String,
        /// What is wrong with the name.
        reason: String,
    },
    /// The target's addresses have 32 bits, which is too few for a large address space.
    #[error("a large address space does not fit the 32-bit addresses of `{0}`")]
    TooSmall(String),
}

impl CompileTarget {
    /// Returns the target of this name, such as `aarch64-unknown-linux-gnu`. Without a name, the target is any
    /// processor of this machine's kind. A processor that wasmtime makes no code for gets the interpreter, such as
    /// `pulley32` or `pulley64`.
    ///
    /// Without a class, the class is small for 32-bit targets and large for others.
    ///
    /// # Errors
    ///
    /// Fails if there is no such target, or its address space is too small for the class.
    pub fn new(triple: Option<&str>, class: Option<AddressClass>) -> Result<Self, CompileTargetError> {
        let triple = match triple {
            None => of_this_machine(),
            Some(text) => {
                let unknown =
                    |reason: String| CompileTargetError::Unknown { triple: text.to_owned(), reason };
                let named = Triple::from_str(text).map_err(|error| unknown(error.to_string()))?;
                compiled_for(named).ok_or_else(|| unknown("its processor is not known".to_owned()))?
            }
        };
        let class = match (class, is_32_bit(&triple)) {
            (Some(AddressClass::Large), true) => {
                return Err(CompileTargetError::TooSmall(triple.architecture.to_string()));
            }
            (_, true) => AddressClass::Small,
            (class, false) => class.unwrap_or(AddressClass::Large),
        };
        Ok(Self { triple, class })
    }

    /// Returns the target of a Main of this class on this machine.
    pub(crate) fn of_main(class: AddressClass) -> Self {
        Self { triple: of_this_machine(), class }
    }

    /// Reads a target that [`bytes`](Self::bytes) wrote. Returns none for other bytes.
    pub(crate) fn from_bytes(bytes: &[u8; TARGET_SIZE]) -> Option<Self> {
        let (class, name) = bytes.split_first()?;
        let class = [AddressClass::Large, AddressClass::Small].into_iter().find(|it| *it as u8 == *class)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let triple = Triple::from_str(str::from_utf8(name.get(..end)?).ok()?).ok()?;
        Some(Self { triple, class })
    }

    /// Writes the class in one byte, and then the triple, filled up with zeros. Returns none if the triple is too long.
    #[cfg(feature = "compiler")]
    pub(crate) fn bytes(&self) -> Option<[u8; TARGET_SIZE]> {
        let mut bytes = [0; TARGET_SIZE];
        let (class, name) = bytes.split_first_mut()?;
        *class = self.class as u8;
        let triple = self.triple();
        name.get_mut(..triple.len())?.copy_from_slice(triple.as_bytes());
        Some(bytes)
    }

    /// Returns the name, as wasmtime has it: `aarch64-unknown-linux-gnu`, `pulley32`.
    #[must_use]
    pub fn triple(&self) -> String {
        // The other parts of the interpreter's triple say nothing.
        if is_pulley(&self.triple) { self.triple.architecture.to_string() } else { self.triple.to_string() }
    }

    /// Returns the class of address space.
    #[must_use]
    pub fn address_class(&self) -> AddressClass {
        self.class
    }

    /// Whether code for this target runs where code for the other target does. The C library makes no difference.
    pub(crate) fn fits(&self, other: &Self) -> bool {
        let of = |target: &Self| (target.triple.architecture, target.triple.operating_system, target.class);
        of(self) == of(other)
    }

    /// Makes the heap of objects one that may move, as it can on targets with 32 bits. wasmtime 48.0.8 keeps the address of
    /// one that cannot in compiled code, also from before the heap is there (GHSA-43j2-gcp4-m22g).
    pub(crate) fn reserve_for_objects(&self, config: &mut wasmtime::Config) {
        if !is_32_bit(&self.triple) {
            config.gc_heap_may_move(true).gc_heap_reservation(RESERVED);
            config.gc_heap_reservation_for_growth(FOR_GROWTH).gc_heap_guard_size(GUARD);
        }
    }

    /// Sets the reservations of memories, if this target needs other ones than wasmtime's own. Sets no processor,
    /// because wasmtime knows this machine's own one best.
    pub(crate) fn reserve(&self, config: &mut wasmtime::Config) {
        // Targets with 32 bits are left out, because wasmtime's own settings for them are smaller.
        if self.class == AddressClass::Small && !is_32_bit(&self.triple) {
            config.memory_reservation(RESERVED).memory_reservation_for_growth(FOR_GROWTH);
            // The interpreter checks every access and needs no guard pages.
            if !is_pulley(&self.triple) {
                config.memory_guard_size(GUARD);
            }
        }
    }
}

impl fmt::Display for CompileTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` with a {} address space", self.triple(), self.class.name())
    }
}

fn of_this_machine() -> Triple {
    if INTERPRETED { pulley(&HOST).unwrap_or(HOST) } else { HOST }
}

/// Returns the triple itself, or the interpreter's for a processor that wasmtime makes no code for. Returns none for a
/// processor with addresses of 16 or unknown bits.
fn compiled_for(triple: Triple) -> Option<Triple> {
    use Architecture::{Aarch64, Riscv64, S390x, X86_64};
    match triple.architecture {
        X86_64 | Aarch64(_) | Riscv64(_) | S390x => Some(triple),
        _ if is_pulley(&triple) => Some(triple),
        _ => pulley(&triple),
    }
}

/// Returns the interpreter's triple with addresses and byte order like this one's, if there is such an interpreter.
fn pulley(triple: &Triple) -> Option<Triple> {
    let name = match (triple.pointer_width().ok()?, triple.endianness().ok()?) {
        (PointerWidth::U32, Endianness::Little) => "pulley32",
        (PointerWidth::U32, Endianness::Big) => "pulley32be",
        (PointerWidth::U64, Endianness::Little) => "pulley64",
        (PointerWidth::U64, Endianness::Big) => "pulley64be",
        (PointerWidth::U16, _) => return None,
    };
    Triple::from_str(name).ok()
}

fn is_pulley(triple: &Triple) -> bool {
    use Architecture::{Pulley32, Pulley32be, Pulley64, Pulley64be};
    matches!(triple.architecture, Pulley32 | Pulley32be | Pulley64 | Pulley64be)
}

fn is_32_bit(triple: &Triple) -> bool {
    matches!(triple.pointer_width(), Ok(PointerWidth::U16 | PointerWidth::U32))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(triple: &str, class: Option<AddressClass>) -> Result<(String, AddressClass), String> {
        let target = CompileTarget::new(Some(triple), class).map_err(|error| error.to_string())?;
        Ok((target.triple(), target.class))
    }

    #[test]
    fn a_processor_without_compiled_code_has_the_interpreters() {
        let names = |triple| target(triple, None).unwrap();
        assert_eq!(names("armv7-unknown-linux-gnueabihf"), ("pulley32".to_owned(), AddressClass::Small));
        assert_eq!(names("i686-unknown-linux-gnu").0, "pulley32");
        assert_eq!(names("mips-unknown-linux-gnu").0, "pulley32be");
        assert_eq!(names("loongarch64-unknown-linux-gnu"), ("pulley64".to_owned(), AddressClass::Large));
        assert_eq!(names("pulley64").0, "pulley64");
        assert_eq!(names("aarch64-unknown-linux-musl").0, "aarch64-unknown-linux-musl");
    }

    #[test]
    fn what_nothing_is_compiled_for_is_refused_with_the_reason() {
        let refused = |triple, class| target(triple, class).unwrap_err();
        assert_eq!(
            refused("toaster", None),
            "there is no target `toaster`: Unrecognized architecture: toaster"
        );
        assert_eq!(
            refused("armv7-unknown-linux-gnueabihf", Some(AddressClass::Large)),
            "a large address space does not fit the 32-bit addresses of `pulley32`"
        );
        assert!(refused("avr-unknown-none", None).contains("its processor is not known"));
    }

    #[test]
    fn a_c_library_makes_no_difference_and_a_class_does() {
        let of = |triple, class| CompileTarget::new(Some(triple), Some(class)).unwrap();
        let gnu = of("aarch64-unknown-linux-gnu", AddressClass::Large);
        assert!(gnu.fits(&of("aarch64-unknown-linux-musl", AddressClass::Large)));
        assert!(!gnu.fits(&of("aarch64-unknown-linux-gnu", AddressClass::Small)));
        assert!(!gnu.fits(&of("x86_64-unknown-linux-gnu", AddressClass::Large)));
    }

    #[test]
    fn the_stack_tells_how_many_bits_addresses_have() {
        let end =
            |stack: &str| end_of_stack_in(&format!("00400000-00452000 r-xp 0 08:02 1 /bin/a b\n{stack}\n"));
        let of_39_bits = end("7fd1c24000-7fd1c45000 rw-p 00000000 00:00 0                          [stack]");
        assert!(of_39_bits.is_some_and(|end| end <= SMALL), "{of_39_bits:?}");
        let of_48_bits = end("ffffe9c5b000-ffffe9c7c000 rw-p 00000000 00:00 0                      [stack]");
        assert!(of_48_bits.is_some_and(|end| end > SMALL), "{of_48_bits:?}");
        assert_eq!(end("7fd1c24000 rw-p [heap]"), None);
    }
}
