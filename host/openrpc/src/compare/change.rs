//! The differences of two descriptions of one value: their kinds, their severity, and their messages.

use super::Severity::{self, Breaking, Compatible};

/// The two descriptions that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sides {
    /// The old and the new version of a contract.
    Versions,
    /// What a caller expects, which counts as old, and what a provider describes, which counts as new.
    CallerAndProvider,
}

/// A difference between an old and a new description.
#[derive(Debug)]
pub(super) enum Change {
    /// Only the new description has this field.
    Added {
        required: bool,
        old_strict: bool,
    },
    /// Only the old description has this field.
    Removed {
        required: bool,
        new_strict: bool,
    },
    NowRequired,
    NowOptional,
    /// Fields without description are refused now.
    NowStrict,
    /// Fields without description are ignored now.
    NowLax,
    /// Only the new description allows what `what` says, which begins with "be" or "have". `expected` if the old one
    /// says that later versions may allow more.
    Gained {
        what: String,
        expected: bool,
    },
    /// Only the old description allows what `what` says, which begins with "be" or "have". `expected` if the new one
    /// says that other versions may allow more.
    Lost {
        what: String,
        expected: bool,
    },
    /// The new description says that later versions may allow more.
    NowOpen,
    NowClosed,
}

impl Change {
    /// The severity of the difference. With `new_reads` the new side reads what the old one writes, otherwise the other
    /// way round.
    pub(super) fn severity(&self, new_reads: bool, sides: Sides) -> Severity {
        let is_versions = sides == Sides::Versions;
        let breaks = match self {
            Self::Added { required, .. } if new_reads => *required,
            Self::Added { old_strict, .. } => *old_strict,
            Self::Removed { new_strict, .. } if new_reads => *new_strict,
            Self::Removed { required, .. } => *required || is_versions,
            Self::NowRequired => new_reads,
            Self::NowOptional => !new_reads,
            Self::NowStrict | Self::NowClosed => new_reads && is_versions,
            Self::NowLax => false,
            Self::Gained { expected, .. } => !new_reads && !expected,
            Self::Lost { expected, .. } => new_reads && !expected,
            Self::NowOpen => !new_reads,
        };
        if breaks { Breaking } else { Compatible }
    }

    /// Whether the difference is worth a finding.
    pub(super) fn is_noted(&self, new_reads: bool, sides: Sides) -> bool {
        match sides {
            Sides::Versions => true,
            Sides::CallerAndProvider => {
                self.severity(new_reads, sides) == Breaking || matches!(self, Self::Removed { .. })
            }
        }
    }

    pub(super) fn message(&self, new_reads: bool, sides: Sides) -> String {
        match sides {
            Sides::Versions => self.of_versions(new_reads),
            Sides::CallerAndProvider => self.of_sides(new_reads),
        }
    }

    fn of_versions(&self, new_reads: bool) -> String {
        match self {
            Self::Added { required: true, .. } if new_reads => "is new and required",
            Self::Added { .. } if new_reads => "is new and optional",
            Self::Added { old_strict: true, .. } => "is new, and readers refuse fields that they do not know",
            Self::Added { .. } => "is new",
            Self::Removed { new_strict: true, .. } if new_reads => {
                "is removed, and unknown fields are refused"
            }
            Self::Removed { required: true, .. } if new_reads => "was required, and is ignored now",
            Self::Removed { .. } if new_reads => "is removed, and ignored now",
            Self::Removed { .. } => "is removed, and readers may need it",
            Self::NowRequired if new_reads => "was optional, and is required now",
            Self::NowRequired => "was not always there, and is now",
            Self::NowOptional if new_reads => "was required, and is optional now",
            Self::NowOptional => "was always there, and may be absent now",
            Self::NowStrict => "refuses unknown fields now",
            Self::NowLax => "ignores unknown fields now",
            Self::Gained { what, expected } => {
                return match (new_reads, expected) {
                    (true, _) => format!("may {what} now"),
                    (false, true) => format!("may {what} now, and is open for more"),
                    (false, false) => format!("may {what} now, which readers do not expect"),
                };
            }
            Self::Lost { what, expected: true } if new_reads => {
                return format!("may no longer {what}, and is open for more");
            }
            Self::Lost { what, .. } => return format!("may no longer {what}"),
            Self::NowOpen if new_reads => "is open for more values now",
            Self::NowOpen => "is open for more values now, which readers do not expect",
            Self::NowClosed => "is no longer open for more values",
        }
        .into()
    }

    fn of_sides(&self, new_reads: bool) -> String {
        match self {
            Self::Added { .. } if new_reads => "is required by the provider, and the caller does not have it",
            Self::Added { .. } => {
                "is described by the provider, and the caller refuses fields that it does not know"
            }
            Self::Removed { new_strict: true, .. } if new_reads => {
                "is not described by the provider, and the provider refuses unknown fields"
            }
            Self::Removed { .. } if new_reads => "is not described by the provider, and ignored",
            Self::Removed { required: true, .. } => {
                "is needed by the caller, and the provider does not describe it"
            }
            Self::Removed { .. } => "is not described by the provider",
            Self::NowRequired => "is required by the provider, and optional for the caller",
            Self::NowOptional => "is needed by the caller, and the provider may leave it out",
            Self::Gained { what, .. } => {
                return format!("may {what} for the provider, which the caller does not expect");
            }
            Self::Lost { what, .. } => {
                return format!("may {what} for the caller, which the provider does not take");
            }
            Self::NowOpen => "may be values that the caller does not expect",
            Self::NowStrict | Self::NowLax | Self::NowClosed => "differs",
        }
        .into()
    }
}
