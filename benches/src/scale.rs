//! How long a run measures.

use clap::ValueEnum;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scale {
    /// For the record.
    Full,
    /// To find regressions.
    Quick,
    /// To see that everything runs. The figures mean nothing.
    Smoke,
}

impl Scale {
    pub(crate) fn pick<T>(self, full: T, quick: T, smoke: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
            Self::Smoke => smoke,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        self.pick("full", "quick", "smoke")
    }
}
