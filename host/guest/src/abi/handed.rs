//! Lists and texts that a guest hands over, however long they are.
//!
//! wasmtime ends a guest that hands over more in one call than
//! [`Store::set_hostcall_fuel`](wasmtime::Store::set_hostcall_fuel) allows. With these types, an import gets a value
//! instead: the size of what is too long, so that it can answer with an error, or only the beginning. The length of a
//! text or a list of numbers is checked before a copy.
//!
//! A list of lists or texts is copied piece by piece, and counted as the host would hold it. At the first piece that
//! does not fit, what was copied is dropped, and no more is read.

#[cfg(test)]
mod tests;

use wasmtime::{
    Result, ValRaw, bail,
    component::{
        __internal::{
            CanonicalAbiInfo, InstanceType, InterfaceType, LiftContext,
            wasmtime_environ::component::StringEncoding,
        },
        ComponentType, Lift,
    },
    format_err,
};

use crate::exit::is_too_much;

/// The most bytes of a name of a contract, topic, path, key and the like. Each interface allows less.
pub(crate) const NAME: usize = 16 << 10;

/// The bit in the length of a text that marks UTF-16, in guests that use both Latin-1 and UTF-16.
const IS_WIDE: u32 = 1 << 31;

/// A list or a text, which a guest hands over as an address and a length.
pub(crate) trait Listed: Lift + ComponentType<Lower = [ValRaw; 2]> {}

impl<T: Lift + ComponentType<Lower = [ValRaw; 2]>> Listed for T {}

/// What a guest hands over, or only its length if it is more than one call may carry.
#[derive(Debug)]
pub(crate) enum Handed<T> {
    Whole(T),
    TooLarge(u64),
}

/// A text of at most `MAX` bytes in UTF-8. For a longer text, its number of bytes, in UTF-8 or in the guest's own
/// encoding.
#[derive(Debug)]
pub(crate) struct Text<const MAX: usize = NAME>(pub(crate) Result<String, u64>);

/// The beginning of a text, at most `MAX` bytes in UTF-8.
#[derive(Debug)]
pub(crate) struct Cut<const MAX: usize>(pub(crate) String);

/// The beginning of a list, at most `MAX` elements.
#[derive(Debug)]
pub(crate) struct First<T, const MAX: usize>(pub(crate) Vec<T>);

impl<T: Listed> Handed<T> {
    fn lift(cx: &mut LiftContext<'_>, ty: InterfaceType, place: GuestRange) -> Result<Self> {
        match T::linear_lift_from_flat(cx, ty, &place.flat()) {
            Ok(whole) => Ok(Self::Whole(whole)),
            Err(error) if is_too_much(&error) => Ok(Self::TooLarge(place.length.into())),
            Err(error) => Err(error),
        }
    }
}

#[cfg(any(feature = "http", feature = "store"))]
impl<T> Handed<T> {
    /// Returns the value, or the length of a value that was too large.
    pub(crate) fn whole(self) -> Result<T, u64> {
        match self {
            Self::Whole(whole) => Ok(whole),
            Self::TooLarge(length) => Err(length),
        }
    }
}

impl<const MAX: usize> Text<MAX> {
    /// Returns the text, or the bus's error for a text that was too long.
    pub(crate) fn within(self) -> Result<String, weir_bus::Error> {
        self.0.map_err(|bytes| weir_bus::Error::TooLarge { bytes, allowed: MAX as u64 })
    }

    /// Returns how many bytes of the text are kept: none of a text that was too long.
    pub(crate) fn copied(&self) -> usize {
        self.0.as_ref().map_or(0, String::len)
    }

    fn lift(cx: &mut LiftContext<'_>, ty: InterfaceType, place: GuestRange) -> Result<Self> {
        let TextBytes { bytes, unit, .. } = place.text(cx)?;
        // Each unit becomes at least one byte of the host's text, so more than `MAX` units are too long in any case.
        if bytes.len() / unit > MAX {
            return Ok(Self(Err(bytes.len() as u64)));
        }
        let text = String::linear_lift_from_flat(cx, ty, &place.flat())?;
        Ok(Self(if text.len() > MAX { Err(text.len() as u64) } else { Ok(text) }))
    }
}

impl<const MAX: usize> Cut<MAX> {
    fn lift(cx: &mut LiftContext<'_>, ty: InterfaceType, place: GuestRange) -> Result<Self> {
        let TextBytes { bytes, unit, mark } = place.text(cx)?;
        // Each unit becomes at least one byte of the host's text, so `MAX` units are always enough.
        let max = MAX.saturating_mul(unit);
        let kept = if bytes.len() <= max { bytes.len() } else { boundary(bytes, max, unit) };
        let kept = GuestRange { length: u32::try_from(kept / unit)? | mark, ..place };
        let mut text = String::linear_lift_from_flat(cx, ty, &kept.flat())?;
        text.truncate(text.floor_char_boundary(MAX));
        Ok(Self(text))
    }
}

impl<T: Lift, const MAX: usize> First<T, MAX> {
    fn lift(cx: &mut LiftContext<'_>, ty: InterfaceType, place: GuestRange) -> Result<Self> {
        place
            .bytes(cx, T::SIZE32)
            .ok_or_else(|| format_err!("list pointer/length out of bounds of memory"))?;
        let kept = GuestRange { length: place.length.min(u32::try_from(MAX)?), ..place };
        Vec::linear_lift_from_flat(cx, ty, &kept.flat()).map(Self)
    }
}

/// Where a list or a text lies in the guest's memory.
#[derive(Clone, Copy)]
struct GuestRange {
    pointer: u32,
    length: u32,
}

/// A text in the guest's memory, in the guest's encoding.
struct TextBytes<'m> {
    bytes: &'m [u8],
    /// How many bytes each unit of the length stands for.
    unit: usize,
    /// The bit that marks UTF-16 in the length, or 0 for other encodings.
    mark: u32,
}

impl GuestRange {
    fn of_flat([pointer, length]: &[ValRaw; 2]) -> Self {
        Self { pointer: pointer.get_u32(), length: length.get_u32() }
    }

    fn of_memory(bytes: &[u8]) -> Result<Self> {
        let (&[pointer, length], []) = bytes.as_chunks() else {
            bail!("an address and a length of {bytes:?}")
        };
        Ok(Self { pointer: u32::from_le_bytes(pointer), length: u32::from_le_bytes(length) })
    }

    fn flat(self) -> [ValRaw; 2] {
        [ValRaw::u32(self.pointer), ValRaw::u32(self.length)]
    }

    /// Returns the bytes of a list of elements of this size, or none if they are not all in the guest's memory.
    fn bytes<'m>(self, cx: &LiftContext<'m>, size: usize) -> Option<&'m [u8]> {
        let (pointer, length) = (usize::try_from(self.pointer).ok()?, usize::try_from(self.length).ok()?);
        cx.memory().get(pointer..pointer.checked_add(length.checked_mul(size)?)?)
    }

    /// Returns the bytes of a text. Fails if they are not all in the guest's memory.
    fn text<'m>(self, cx: &LiftContext<'m>) -> Result<TextBytes<'m>> {
        let (unit, mark) = match cx.options().string_encoding {
            StringEncoding::Utf8 => (1, 0),
            StringEncoding::Utf16 => (2, 0),
            StringEncoding::CompactUtf16 if self.length & IS_WIDE == 0 => (1, 0),
            StringEncoding::CompactUtf16 => (2, IS_WIDE),
        };
        let bytes = Self { length: self.length ^ mark, ..self }.bytes(cx, unit);
        let bytes = bytes.ok_or_else(|| format_err!("string pointer/length out of bounds of memory"))?;
        Ok(TextBytes { bytes, unit, mark })
    }
}

/// Returns the last place within `max` bytes that is between two characters, provided that the text is valid.
fn boundary(bytes: &[u8], max: usize, unit: usize) -> usize {
    let is_inside = |at: usize| match unit {
        1 => bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80),
        _ => bytes.get(at + 1).is_some_and(|byte| byte & 0xfc == 0xdc),
    };
    let max = max - max % unit;
    (max.saturating_sub(3)..=max).rev().step_by(unit).find(|at| !is_inside(*at)).unwrap_or(max)
}

/// Implements wasmtime's traits for a type that a guest lays out as `$as`, and that its own `lift` reads.
macro_rules! lifted_as {
    ($as:ty, [$($generics:tt)*], $type:ty) => {
        #[expect(unsafe_code, reason = "wasmtime asks for it: the type has the layout of a text or list")]
        // SAFETY: this type is checked, laid out and flattened as `$as`, whose implementation is wasmtime's.
        unsafe impl<$($generics)*> ComponentType for $type {
            type Lower = [ValRaw; 2];

            const ABI: CanonicalAbiInfo = <$as as ComponentType>::ABI;

            fn typecheck(ty: &InterfaceType, types: &InstanceType<'_>) -> Result<()> {
                <$as as ComponentType>::typecheck(ty, types)
            }
        }

        #[expect(unsafe_code, reason = "wasmtime asks for it: less of a text or list is read")]
        // SAFETY: wasmtime's own implementation for a text or list does the reading, at the guest's address and with no
        // larger length.
        unsafe impl<$($generics)*> Lift for $type {
            fn linear_lift_from_flat(
                cx: &mut LiftContext<'_>,
                ty: InterfaceType,
                from: &[ValRaw; 2],
            ) -> Result<Self> {
                Self::lift(cx, ty, GuestRange::of_flat(from))
            }

            fn linear_lift_from_memory(
                cx: &mut LiftContext<'_>,
                ty: InterfaceType,
                from: &[u8],
            ) -> Result<Self> {
                Self::lift(cx, ty, GuestRange::of_memory(from)?)
            }
        }
    };
}

lifted_as!(T, [T: Listed], Handed<T>);
lifted_as!(str, [const MAX: usize], Text<MAX>);
lifted_as!(str, [const MAX: usize], Cut<MAX>);
lifted_as!([T], [T: Lift, const MAX: usize], First<T, MAX>);
