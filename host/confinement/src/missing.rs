//! What a process should be confined by, and is not.

use std::fmt;

/// The restrictions that this machine does not have, or does not let a process have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Missing(u8);

/// A restriction that not every process can have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Restriction {
    /// A user without rights, in place of root.
    User = 1,
    /// No files, connections and signals to others, by Landlock.
    Landlock = 2,
    /// No calls of the kernel but those that computing needs, by seccomp.
    Seccomp = 4,
    /// No capabilities.
    Capabilities = 8,
}

impl Restriction {
    const ALL: [(Self, &str); 4] = [
        (Self::User, "a user of its own"),
        (Self::Capabilities, "the loss of its capabilities"),
        (Self::Landlock, "landlock"),
        (Self::Seccomp, "seccomp"),
    ];
}

/// Marks a byte of this version. Earlier versions began their answer with a byte from 0 to 7.
const MARK: u8 = 0x80;

impl Missing {
    /// Reads what another process wrote with [`byte`](Self::byte). Returns none if a process of another version wrote it.
    pub fn of(byte: u8) -> Option<Self> {
        let known = Restriction::ALL.iter().fold(MARK, |known, (one, _)| known | *one as u8);
        (byte & MARK != 0 && byte & !known == 0).then_some(Self(byte & !MARK))
    }

    /// Returns these restrictions as one byte, for another process.
    pub fn byte(self) -> u8 {
        self.0 | MARK
    }

    /// Whether no restriction is missing.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn add(&mut self, restriction: Restriction) {
        self.0 |= restriction as u8;
    }
}

/// The names of the restrictions, such as `landlock, seccomp`.
impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_missing = |(one, name)| (self.0 & one as u8 != 0).then_some(name);
        let mut names = Restriction::ALL.into_iter().filter_map(is_missing);
        names.next().map_or(Ok(()), |first| f.write_str(first))?;
        names.try_for_each(|name| write!(f, ", {name}"))
    }
}
