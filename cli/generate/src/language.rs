//! What can be generated.

use std::fmt;

use clap::ValueEnum;
use weir_openrpc::Document;

use crate::{python, rust, typescript, wit};

/// The language of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Language {
    /// Rust.
    Rust,
    /// TypeScript.
    #[value(name = "typescript")]
    TypeScript,
    /// Python.
    Python,
    /// Interfaces for components that know nothing of Weir.
    Wit,
}

/// The program that a client is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// An extension.
    Extension,
    /// A program beside Main that goes on when Main restarts.
    App,
    /// A program beside Main that makes its sessions itself.
    Sidecar,
}

/// There is no client in this language for this kind of program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are no clients in `{language}` for `{kind}`: there are for {}", .language.kinds())]
pub struct Unsupported {
    language: Language,
    kind: Kind,
}

/// Returns the source text of clients of `documents`. A contract that several of them describe has one client, of its
/// provider's description if there is one.
///
/// # Errors
/// If there are no clients in this language for this kind of program.
pub fn generate(documents: &[Document], language: Language, kind: Kind) -> Result<String, Unsupported> {
    match (language, kind) {
        (Language::Rust, kind) => Ok(rust(documents, kind)),
        (Language::TypeScript | Language::Python, Kind::Extension) => Err(Unsupported { language, kind }),
        (Language::TypeScript, _) => Ok(typescript(documents)),
        (Language::Python, kind) => Ok(python(documents, kind)),
        (Language::Wit, Kind::Extension) => Ok(wit(documents)),
        (Language::Wit, _) => Err(Unsupported { language, kind }),
    }
}

impl Language {
    /// Returns the kind of program that clients in this language are for, if nothing else is said.
    #[must_use]
    pub fn usual_kind(self) -> Kind {
        match self {
            Self::Rust | Self::Wit => Kind::Extension,
            Self::TypeScript => Kind::App,
            Self::Python => Kind::Sidecar,
        }
    }

    /// The kinds of programs that not all languages have clients for, in words.
    fn kinds(self) -> &'static str {
        match self {
            Self::Wit => "`extension`",
            _ => "`app` and `sidecar`",
        }
    }
}

/// Displays a value as the command line names it.
macro_rules! display {
    ($($of:ident),*) => {$(
        impl fmt::Display for $of {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
            }
        }
    )*};
}

display!(Language, Kind);
