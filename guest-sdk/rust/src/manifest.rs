//! The manifest: what an extension is and needs.
//!
//! The finished component contains the manifest as JSON, in the custom section `weir:manifest`. `weir inspect`
//! prints it. It grants nothing: the operator's file decides. The descriptions of its contracts are beside it, in
//! the section `weir:contracts`.

mod section;

use weir_names::rules;

use crate::Contract;

/// Whether all texts of a list fit a rule: `Iterator::all` in a `const`.
macro_rules! all {
    ($texts:expr, $fits:path) => {{
        let mut rest: &[&str] = $texts;
        let mut all_fit = true;
        while let [text, tail @ ..] = rest {
            all_fit = all_fit && $fits(text);
            rest = tail;
        }
        all_fit
    }};
}

/// What an extension is and needs. Made with [`manifest!`](crate::manifest!).
#[derive(Clone, Copy, Debug)]
pub struct Manifest {
    /// The id that the author suggests. The operator may choose another. Default: the name of the package.
    pub id: &'static str,
    /// The extension's own version. Default: that of the package.
    pub version: &'static str,
    /// The oldest version of the extension that can read what this one writes into its stores, as in `Some("1.2.0")`. By
    /// default all can. Main keeps the data before a version runs that older ones could not follow.
    pub data_since: Option<&'static str>,
    /// Contracts that it serves.
    pub fulfills: &'static [Contract],
    /// Contracts that it cannot do without: their owners start before it.
    pub requires: &'static [Contract],
    /// Contracts that it calls if they are available.
    pub wants: &'static [Contract],
    /// Patterns of the topics that it publishes: `settings.changed.>`.
    pub publishes: &'static [&'static str],
    /// Patterns of the topics that it subscribes to.
    pub subscribes: &'static [&'static str],
    /// Names of the queues that it puts jobs into.
    pub puts: &'static [&'static str],
    /// Names of the queues that it takes jobs from.
    pub takes: &'static [&'static str],
    /// Directories that it opens.
    pub dirs: &'static [Dir],
    /// Environment variables that it reads.
    pub env: &'static [&'static str],
    /// Addresses that it connects to, as `host:port`.
    pub net: &'static [&'static str],
}

/// A directory that an extension opens.
#[derive(Clone, Copy, Debug)]
pub struct Dir {
    guest: &'static str,
    writable: bool,
}

impl Dir {
    /// A directory that the extension only reads, by its path inside the sandbox.
    #[must_use]
    pub const fn read_only(guest: &'static str) -> Self {
        Self { guest, writable: false }
    }

    /// A directory that the extension reads and writes, by its path inside the sandbox.
    #[must_use]
    pub const fn read_write(guest: &'static str) -> Self {
        Self { guest, writable: true }
    }
}

impl Manifest {
    /// A manifest without contracts, topics, queues and grants.
    #[must_use]
    pub const fn new(id: &'static str, version: &'static str) -> Self {
        Self {
            id,
            version,
            data_since: None,
            fulfills: &[],
            requires: &[],
            wants: &[],
            publishes: &[],
            subscribes: &[],
            puts: &[],
            takes: &[],
            dirs: &[],
            env: &[],
            net: &[],
        }
    }

    /// Refuses names that Main would refuse. In a `const`, that is a compile error.
    ///
    /// # Panics
    /// If a name is not well formed.
    #[must_use]
    pub const fn checked(self) -> Self {
        assert!(
            rules::is_extension_id(self.id),
            "`id` must be 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter, and not `main`"
        );
        assert!(is_plain(self.version), "`version` must not be empty nor hold quotes");
        if let Some(since) = self.data_since {
            assert!(
                rules::is_semantic_version(since) && rules::is_semantic_version(self.version),
                "`data_since` and `version` must be semantic versions, such as `1.2.0`"
            );
        }
        assert!(
            all!(self.publishes, rules::is_topic_pattern),
            "`publishes` holds something that is no topic pattern"
        );
        assert!(
            all!(self.subscribes, rules::is_topic_pattern),
            "`subscribes` holds something that is no topic pattern"
        );
        assert!(all!(self.puts, rules::is_queue_name), "`puts` holds something that is no name of a queue");
        assert!(all!(self.takes, rules::is_queue_name), "`takes` holds something that is no name of a queue");
        assert!(all!(self.env, is_plain), "`env` holds an empty name or one with quotes");
        assert!(all!(self.net, is_plain), "`net` holds an empty address or one with quotes");
        let mut dirs = self.dirs;
        while let [dir, rest @ ..] = dirs {
            assert!(
                is_plain(dir.guest) && matches!(dir.guest.as_bytes(), [b'/', ..]),
                "`dirs` holds a path that is not absolute or has quotes"
            );
            dirs = rest;
        }
        self
    }

    /// The manifest as the program has it. In a component it has no descriptions, which are in a section. A test
    /// outside a component keeps them, to compare them with the handlers.
    #[doc(hidden)]
    #[must_use]
    pub const fn at_run_time(
        self,
        fulfills: &'static [Contract],
        requires: &'static [Contract],
        wants: &'static [Contract],
    ) -> Self {
        if cfg!(target_family = "wasm") { Self { fulfills, requires, wants, ..self } } else { self }
    }
}

/// The contracts without their descriptions.
#[doc(hidden)]
#[must_use]
pub const fn undescribed<const LENGTH: usize>(contracts: &[Contract]) -> [Contract; LENGTH] {
    let mut undescribed = [Contract::new("none@0"); LENGTH];
    let mut places: &mut [Contract] = &mut undescribed;
    let mut rest = contracts;
    while let ([place, places_tail @ ..], [contract, tail @ ..]) = (places, rest) {
        *place = contract.undescribed();
        (places, rest) = (places_tail, tail);
    }
    undescribed
}

/// States what an extension is and needs: defines the constant `MANIFEST`, and puts it into the finished
/// component. The descriptions of those of its contracts that [`contract!`](crate::contract!) declares go into the
/// component, too.
///
/// Takes the fields of [`Manifest`]. Fields left out are empty; `id` and `version` are those of the package.
/// Use it once in a program.
///
/// ```
/// use weir_sdk::{Contract, Dir};
///
/// const NOTES: Contract = Contract::new("notes@1");
///
/// weir_sdk::manifest! {
///     id: "notes",
///     fulfills: &[NOTES],
///     publishes: &["notes.added"],
///     dirs: &[Dir::read_write("/data")],
/// }
///
/// # fn main() {
/// assert_eq!(MANIFEST.id, "notes");
/// # }
/// ```
///
/// A name that Main would refuse does not compile:
///
/// ```compile_fail,E0080
/// weir_sdk::manifest! { id: "Not An Id" }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! manifest {
    ($($field:ident: $value:expr),* $(,)?) => {
        /// What this extension is and needs.
        const MANIFEST: $crate::Manifest = {
            const __DESCRIBED: $crate::Manifest = $crate::Manifest {
                $($field: $value,)*
                ..$crate::Manifest::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
            }
            .checked();

            // These names are in a block of their own, so that they do not hide names in the values above.
            {
                #[cfg(target_family = "wasm")]
                const _: () = {
                    #[expect(unsafe_code, reason = "places a constant in a custom section; no code")]
                    #[unsafe(link_section = "weir:manifest")]
                    static SECTION: [u8; __DESCRIBED.section_length()] = __DESCRIBED.section();

                    #[expect(unsafe_code, reason = "places a constant in a custom section; no code")]
                    #[allow(
                        long_running_const_eval,
                        reason = "the compiler takes about a second to describe large contracts"
                    )]
                    #[unsafe(link_section = "weir:contracts")]
                    static DESCRIPTIONS: [u8; __DESCRIBED.descriptions_length()] = __DESCRIBED.descriptions();
                };

                const FULFILLS: [$crate::Contract; __DESCRIBED.fulfills.len()] =
                    $crate::__private::undescribed(__DESCRIBED.fulfills);
                const REQUIRES: [$crate::Contract; __DESCRIBED.requires.len()] =
                    $crate::__private::undescribed(__DESCRIBED.requires);
                const WANTS: [$crate::Contract; __DESCRIBED.wants.len()] =
                    $crate::__private::undescribed(__DESCRIBED.wants);
                __DESCRIBED.at_run_time(&FULFILLS, &REQUIRES, &WANTS)
            }
        };
    };
}

/// Whether the text is not empty and needs no escapes in a JSON string.
const fn is_plain(text: &str) -> bool {
    let mut rest = text.as_bytes();
    while let [byte, tail @ ..] = rest {
        if matches!(byte, b'"' | b'\\') || byte.is_ascii_control() {
            return false;
        }
        rest = tail;
    }
    !text.is_empty()
}
