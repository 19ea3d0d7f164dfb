//! Descriptions of contracts from components, and payloads that are judged by them.

use weir_host::{
    names::is_harmful,
    openrpc::{Document, Unknown, combined, compare, needs},
};

/// Reads the input up to its first zero byte as sections of a component, and the rest as a payload.
///
/// A document that is read is written as one that reads the same, differs in nothing from itself, and is shown
/// without characters that play with a terminal. Payloads are judged, whatever they are.
pub fn contracts(data: &[u8]) {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let (section, payload) = data.split_at(end);
    let Ok(documents) = Document::parse_section(section) else { return };
    for document in &documents {
        check(document);
        judge(document, payload.get(1..).unwrap_or_default());
        for other in &documents {
            let _differences = (compare(document, other), needs(document, other));
        }
    }
    let _one = combined(&documents).to_string();
}

fn check(document: &Document) {
    let line = document.line();
    assert!(!line.contains('\n'));
    assert_eq!(Document::parse(&line).as_ref(), Ok(document), "{line}");
    assert_eq!(compare(document, document), []);
    assert_eq!(needs(document, document), []);
    for text in [document.text(), document.markdown()] {
        assert!(!text.contains(|character| character != '\n' && is_harmful(character)), "{text:?}");
    }
}

fn judge(document: &Document, payload: &[u8]) {
    for method in &document.methods {
        let ignored = document.check_arguments(&method.name, payload, Unknown::Ignored);
        let refused = document.check_arguments(&method.name, payload, Unknown::Refused);
        // What is refused for its unknown names alone may fit without; the other way round it cannot be.
        assert!(ignored.is_ok() || refused.is_err());
        let _result = document.check_result(&method.name, payload);
    }
}
