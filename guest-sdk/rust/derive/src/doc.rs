//! Doc comments as texts for people.

use syn::{Attribute, Expr, ExprLit, Lit, Meta};

/// The doc comment: its lines without the space after `///`, and without white space at both ends.
pub(crate) fn doc(attributes: &[Attribute]) -> String {
    let lines: Vec<String> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(|attribute| match &attribute.meta {
            Meta::NameValue(meta) => match &meta.value {
                Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
                _ => None,
            },
            _ => None,
        })
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned())
        .collect();
    lines.join("\n").trim_ascii().to_owned()
}
