//! Enums, in serde's ways to tell their variants apart.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DataEnum, Error, Fields, Result, Variant, ext::IdentExt};

use crate::{
    attributes::{Attributes, doc},
    container::Place,
    fields,
};

/// A variant, and what its enum says of it.
struct Case<'a> {
    variant: &'a Variant,
    attributes: Attributes,
    name: String,
    doc: String,
    of: &'a Attributes,
    place: &'a Place,
}

/// The schema of an enum.
///
/// # Errors
/// If the JSON of a variant cannot be described.
pub(crate) fn schema(data: &DataEnum, of: &Attributes, place: &Place) -> Result<TokenStream> {
    let mut cases = Vec::new();
    let mut open = false;
    for variant in &data.variants {
        let attributes = Attributes::parse(&variant.attrs)?;
        open |= attributes.other;
        if attributes.skip || attributes.other {
            continue;
        }
        let ident = variant.ident.unraw().to_string();
        let name = match (&attributes.rename, of.rename_all) {
            (Some(name), _) => name.clone(),
            (None, Some(case)) => case.of_variant(&ident),
            (None, None) => ident,
        };
        cases.push(Case { variant, attributes, name, doc: doc(&variant.attrs), of, place });
    }
    if cases.is_empty() {
        return Err(Error::new(
            data.enum_token.span,
            "an enum without known variants has no values to describe",
        ));
    }

    let (schema, described) = (place.shape("Schema"), place.shape("Described"));
    // schemars puts words without a comment into one list. So does this, for the same document.
    let (plain, cases): (Vec<_>, Vec<_>) = cases.into_iter().partition(Case::is_plain);
    let names = plain.iter().map(|case| &case.name);
    if cases.is_empty() {
        return Ok(quote!(&#schema::Words { words: &[#(#names),*], open: #open }));
    }
    let mut options = Vec::new();
    if !plain.is_empty() {
        let words = quote!(&#schema::Words { words: &[#(#names),*], open: false });
        options.push(quote!(#described { doc: "", schema: #words }));
    }
    for case in &cases {
        let (doc, content) = (&case.doc, case.schema()?);
        options.push(quote!(#described { doc: #doc, schema: #content }));
    }
    Ok(quote!(&#schema::OneOf { options: &[#(#options),*], open: #open }))
}

impl Case<'_> {
    /// Whether the variant is a bare word in JSON and has no comment.
    fn is_plain(&self) -> bool {
        self.of.tag.is_none() && matches!(self.variant.fields, Fields::Unit) && self.doc.is_empty()
    }

    fn schema(&self) -> Result<TokenStream> {
        let (place, strict) = (self.place, self.of.deny_unknown_fields);
        let word = self.word();
        let Some(tag) = &self.of.tag else {
            return Ok(match self.content()? {
                None => word,
                Some((doc, content)) => {
                    fields::record(&[fields::required(&self.name, &doc, &content, place)], true, place)
                }
            });
        };
        let tag_field = fields::required(&tag.value(), "", &word, place);
        if let Some(content_name) = &self.of.content {
            let content = self.content()?;
            let content = content.map(|(doc, schema)| fields::required(content_name, &doc, &schema, place));
            let fields: Vec<_> = [tag_field].into_iter().chain(content).collect();
            return Ok(fields::record(&fields, strict, place));
        }
        match &self.variant.fields {
            Fields::Unit => Ok(fields::record(&[tag_field], strict, place)),
            Fields::Named(_) => {
                let fields: Vec<_> = [tag_field].into_iter().chain(self.named()?).collect();
                Ok(fields::record(&fields, strict, place))
            }
            Fields::Unnamed(_) => {
                let (schema, tag, word) = (place.shape("Schema"), tag.value(), &self.name);
                let content = fields::type_of(fields::only(&self.variant.fields)?, place)?;
                Ok(quote!(&#schema::Tagged { tag: #tag, word: #word, content: #content }))
            }
        }
    }

    fn word(&self) -> TokenStream {
        let (schema, word) = (self.place.shape("Schema"), &self.name);
        quote!(&#schema::Word(#word))
    }

    /// The comment and the schema of what stands beside the variant's name. `None` for a unit variant.
    fn content(&self) -> Result<Option<(String, TokenStream)>> {
        Ok(match &self.variant.fields {
            Fields::Unit => None,
            Fields::Named(_) => {
                let strict = self.of.deny_unknown_fields;
                Some((String::new(), fields::record(&self.named()?, strict, self.place)))
            }
            Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
                let field = fields::only(&self.variant.fields)?;
                Some((doc(&field.attrs), fields::type_of(field, self.place)?))
            }
            Fields::Unnamed(unnamed) => Some((String::new(), fields::tuple(unnamed, self.place)?)),
        })
    }

    /// The variant's named fields. Empty for other variants.
    fn named(&self) -> Result<Vec<TokenStream>> {
        let case = self.attributes.rename_all.or(self.of.rename_all_fields);
        match &self.variant.fields {
            Fields::Named(named) => fields::named(named, case, false, self.place),
            _ => Ok(Vec::new()),
        }
    }
}
