//! Contracts that a component describes, in its sections `weir:contracts`.
//!
//! The sections are hostile: their size is judged before anything is parsed.

use weir_names::harmless;
use weir_openrpc::{Document, MAX_SECTION, SECTION};

/// Characters of what is wrong with them.
const MAX_MESSAGE: usize = 512;

/// The sections of one component and of all modules in it.
#[derive(Debug, Default)]
pub(crate) struct ContractSections {
    /// Documents, one a line.
    lines: Vec<u8>,
    /// Bytes of all sections, also of those that were left out for their size.
    bytes: usize,
}

impl ContractSections {
    /// Adds a custom section, if it describes contracts.
    pub(crate) fn add(&mut self, name: &str, section: &[u8]) {
        if name != SECTION {
            return;
        }
        self.bytes = self.bytes.saturating_add(section.len());
        if self.bytes <= MAX_SECTION {
            self.lines.extend(section);
            if self.lines.last().is_some_and(|last| *last != b'\n') {
                self.lines.push(b'\n');
            }
        }
    }

    /// What they describe, or what is wrong with them.
    pub(crate) fn documents(&self) -> Result<Vec<Document>, String> {
        if self.bytes > MAX_SECTION {
            return Err(format!("they take {} bytes, of at most {MAX_SECTION}", self.bytes));
        }
        Document::parse_section(&self.lines).map_err(|error| harmless(&error, MAX_MESSAGE))
    }

    /// The documents, one a line, as Main keeps them.
    #[cfg(feature = "compiler")]
    pub(crate) fn text(&self) -> Result<String, String> {
        let text: String = self.documents()?.iter().map(|document| document.line() + "\n").collect();
        // Escapes can make it longer than Main would parse.
        let mut kept = Self::default();
        kept.add(SECTION, text.as_bytes());
        kept.documents().map(|_| text)
    }
}
