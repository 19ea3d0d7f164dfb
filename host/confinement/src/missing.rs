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
}

impl Missing {
    /// Reads what another process wrote with [`byte`](Self::byte).
    pub fn of(byte: u8) -> Self {
        Self(byte)
    }

    /// Returns these restrictions as one byte, for another process.
    pub fn byte(self) -> u8 {
        self.0
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
        let all = [
            (Restriction::User, "a user of its own"),
            (Restriction::Landlock, "landlock"),
            (Restriction::Seccomp, "seccomp"),
        ];
        let mut names =
            all.into_iter().filter(|(restriction, _)| self.0 & *restriction as u8 != 0).map(|(_, name)| name);
        names.next().map_or(Ok(()), |first| f.write_str(first))?;
        names.try_for_each(|name| write!(f, ", {name}"))
    }
}
