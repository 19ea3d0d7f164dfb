//! The documents of one component or program: as text, and parsed once something is checked by them.

use std::sync::OnceLock;

use weir_names::Role;

use crate::Document;

/// Documents as text, one a line, within the bounds of [`Document::parse_section`].
#[derive(Debug, Default)]
pub struct Descriptions {
    text: Box<str>,
    kept: OnceLock<Box<[Document]>>,
}

impl Descriptions {
    /// The documents in this text, which was parsed before. What no parser takes describes nothing.
    #[must_use]
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self { text: text.into(), kept: OnceLock::new() }
    }

    /// Whether there is no document.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// All documents. Parses them, which takes about a millisecond for the longest text, and keeps nothing.
    #[must_use]
    pub fn documents(&self) -> Vec<Document> {
        Document::parse_section(self.text.as_bytes()).unwrap_or_default()
    }

    /// What a provider says of a contract. The first call parses all documents; they are kept for later ones.
    #[must_use]
    pub fn of_provider(&self, contract: &str) -> Option<&Document> {
        let documents = self.kept.get_or_init(|| self.documents().into());
        let is_it = |it: &&Document| it.role == Role::Provider && it.contract.as_str() == contract;
        documents.iter().find(is_it)
    }

    /// Whether [`of_provider`](Self::of_provider) has parsed them.
    #[must_use]
    pub fn is_parsed(&self) -> bool {
        self.kept.get().is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"openrpc":"1.3.2","info":{"title":"it@1","version":"1"},"methods":[]}"#;

    #[test]
    fn documents_are_parsed_when_something_is_checked_by_them_and_kept() {
        let descriptions = Descriptions::new(DOCUMENT);
        assert_eq!(descriptions.documents().len(), 1);
        assert!(!descriptions.is_parsed());
        let first: *const Document = descriptions.of_provider("it@1").unwrap();
        assert!(descriptions.is_parsed() && std::ptr::eq(first, descriptions.of_provider("it@1").unwrap()));
        assert_eq!(descriptions.of_provider("it@2"), None);
    }

    #[test]
    fn what_no_parser_takes_describes_nothing() {
        let descriptions = Descriptions::new("{}");
        assert_eq!((descriptions.documents(), descriptions.of_provider("it@1")), (Vec::new(), None));
        assert!(Descriptions::default().is_empty());
    }
}
