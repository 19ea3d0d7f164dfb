//! Fields, with names or without.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, Field, Fields, FieldsNamed, FieldsUnnamed, Result, ext::IdentExt, spanned::Spanned};

use crate::{
    attributes::{Attributes, doc},
    case::Case,
    container::Place,
};

/// Fields with names, as expressions.
///
/// # Errors
/// If the JSON of a field cannot be described.
pub(crate) fn named(
    fields: &FieldsNamed,
    case: Option<Case>,
    all_optional: bool,
    place: &Place,
) -> Result<Vec<TokenStream>> {
    let mut expressions = Vec::new();
    for field in &fields.named {
        let attributes = Attributes::parse(&field.attrs)?;
        if attributes.skip {
            continue;
        }
        let ident = field.ident.as_ref().map(|ident| ident.unraw().to_string()).unwrap_or_default();
        let name = attributes
            .rename
            .clone()
            .unwrap_or_else(|| case.map_or(ident.clone(), |case| case.of_field(&ident)));
        let schema = place.schema_of(attributes.as_type.as_ref().unwrap_or(&field.ty));
        let optional = if all_optional || attributes.optional {
            quote!(true)
        } else {
            let kind = place.shape("Schema");
            quote!(#kind::is_optional(#schema))
        };
        expressions.push(expression(&name, &doc(&field.attrs), &optional, &schema, place));
    }
    Ok(expressions)
}

/// A field that is always there.
pub(crate) fn required(name: &str, doc: &str, schema: &TokenStream, place: &Place) -> TokenStream {
    expression(name, doc, &quote!(false), schema, place)
}

fn expression(
    name: &str,
    doc: &str,
    optional: &TokenStream,
    schema: &TokenStream,
    place: &Place,
) -> TokenStream {
    let kind = place.shape("Field");
    quote!(#kind { name: #name, doc: #doc, optional: #optional, schema: #schema })
}

/// The schema of an object with these fields.
pub(crate) fn record(fields: &[TokenStream], strict: bool, place: &Place) -> TokenStream {
    let kind = place.shape("Schema");
    quote!(&#kind::Record { fields: &[#(#fields),*], strict: #strict })
}

/// The schema of a list with these places.
///
/// # Errors
/// If the JSON of a field cannot be described.
pub(crate) fn tuple(fields: &FieldsUnnamed, place: &Place) -> Result<TokenStream> {
    let (kind, described) = (place.shape("Schema"), place.shape("Described"));
    let mut places = Vec::new();
    for field in &fields.unnamed {
        let attributes = Attributes::parse(&field.attrs)?;
        if !attributes.skip {
            let (doc, schema) = (doc(&field.attrs), type_of(field, place)?);
            places.push(quote!(#described { doc: #doc, schema: #schema }));
        }
    }
    Ok(quote!(&#kind::Tuple(&[#(#places),*])))
}

/// The schema of a field's type.
///
/// # Errors
/// If its JSON cannot be described.
pub(crate) fn type_of(field: &Field, place: &Place) -> Result<TokenStream> {
    let attributes = Attributes::parse(&field.attrs)?;
    Ok(place.schema_of(attributes.as_type.as_ref().unwrap_or(&field.ty)))
}

/// The only field that is not skipped.
///
/// # Errors
/// If there is none, or several.
pub(crate) fn only(fields: &Fields) -> Result<&Field> {
    let mut found = None;
    for field in fields {
        if !Attributes::parse(&field.attrs)?.skip && found.replace(field).is_some() {
            return Err(Error::new(field.span(), "expected one field"));
        }
    }
    found.ok_or_else(|| Error::new(fields.span(), "expected one field"))
}
