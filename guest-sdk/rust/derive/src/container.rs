//! The type as a whole: its definition, and the implementation of the trait.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::{
    Data, DeriveInput, Error, Fields, GenericParam, Ident, Path, Result, Type, ext::IdentExt, parse_quote,
    spanned::Spanned,
};

use crate::{
    attributes::{self, Attributes, doc},
    enums, fields,
};

/// How the generated expressions of a type refer to the SDK and to the type itself.
pub(crate) struct Place {
    sdk: Path,
    /// The type's own name, to stand for `Self` in a static, which has no `Self`. `None` for generic types.
    own: Option<Ident>,
}

impl Place {
    /// The path of an item of the SDK's module `shape`.
    pub(crate) fn shape(&self, item: &str) -> TokenStream {
        let (sdk, item) = (&self.sdk, Ident::new(item, proc_macro2::Span::call_site()));
        quote!(#sdk::shape::#item)
    }

    /// The schema of a type.
    pub(crate) fn schema_of(&self, of: &Type) -> TokenStream {
        let shape = self.shape("Shape");
        let of = match &self.own {
            Some(own) => replace_self(of.to_token_stream(), own),
            None => of.to_token_stream(),
        };
        quote_spanned!(of.span()=> <#of as #shape>::SCHEMA)
    }
}

/// The implementation of `Shape`.
///
/// # Errors
/// If the JSON of the type cannot be described.
pub(crate) fn shape(input: &DeriveInput) -> Result<TokenStream> {
    let attributes = Attributes::parse(&input.attrs)?;
    let is_generic = !input.generics.params.is_empty();
    let sdk = attributes.sdk.clone().unwrap_or_else(|| parse_quote!(::weir_sdk));
    let place = Place { sdk, own: (!is_generic).then(|| input.ident.clone()) };
    let (trait_, schema) = (place.shape("Shape"), place.shape("Schema"));
    let doc = doc(&input.attrs);

    let same = match (&attributes.as_type, &input.data) {
        (Some(other), _) => Some(other),
        (None, Data::Struct(data)) if attributes.transparent && doc.is_empty() => {
            Some(&fields::only(&data.fields)?.ty)
        }
        _ => None,
    };
    let (before, value) = if let Some(same) = same {
        (TokenStream::new(), place.schema_of(same))
    } else {
        let content = content(input, &attributes, &place)?;
        let definition = definition(input, &attributes, &place, &doc, &content)?;
        let reference = place.shape("Reference");
        if is_generic {
            (TokenStream::new(), quote!(&#schema::Named(#reference::new(&#definition))))
        } else {
            // A constant may refer to a static without reading it, so a type may contain itself.
            let kind = place.shape("Definition");
            (
                quote!(static DEFINITION: #kind = #definition;),
                quote!(&#schema::Named(#reference::new(&DEFINITION))),
            )
        }
    };

    let mut generics = input.generics.clone();
    let types: Vec<Ident> = generics.type_params().map(|parameter| parameter.ident.clone()).collect();
    let bounds = generics.make_where_clause();
    for parameter in types {
        bounds.predicates.push(parse_quote!(#parameter: #trait_));
    }
    let (impl_generics, type_generics, bounds) = generics.split_for_impl();
    let name = &input.ident;
    Ok(quote! {
        const _: () = {
            #before
            #[automatically_derived]
            impl #impl_generics #trait_ for #name #type_generics #bounds {
                const SCHEMA: &'static #schema = #value;
            }
        };
    })
}

/// The schema of the type's content.
fn content(input: &DeriveInput, attributes: &Attributes, place: &Place) -> Result<TokenStream> {
    match &input.data {
        Data::Enum(data) => enums::schema(data, attributes, place),
        Data::Struct(data) => {
            if let Some(tag) = &attributes.tag {
                return Err(Error::new(
                    tag.span(),
                    "a `tag` of a struct is written but not read: give the struct a field instead",
                ));
            }
            match &data.fields {
                fields if attributes.transparent => fields::type_of(fields::only(fields)?, place),
                Fields::Named(named) => {
                    let strict = attributes.deny_unknown_fields;
                    let fields = fields::named(named, attributes.rename_all, attributes.optional, place)?;
                    Ok(fields::record(&fields, strict, place))
                }
                Fields::Unnamed(unnamed) if unnamed.unnamed.len() == 1 => {
                    fields::type_of(fields::only(&data.fields)?, place)
                }
                Fields::Unnamed(unnamed) => fields::tuple(unnamed, place),
                Fields::Unit => Ok(place.schema_of(&parse_quote!(()))),
            }
        }
        Data::Union(data) => Err(Error::new(data.union_token.span, "serde has no unions")),
    }
}

/// The value of `Definition` for the type: its name, id, comment and content.
fn definition(
    input: &DeriveInput,
    attributes: &Attributes,
    place: &Place,
    doc: &str,
    content: &TokenStream,
) -> Result<TokenStream> {
    let name = attributes.rename.clone().unwrap_or_else(|| input.ident.unraw().to_string());
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')) {
        let text = "the name of a described type is of ASCII letters, digits, `_`, `-` and `.`: use \
                    `#[serde(rename = \"Name\")]`";
        return Err(Error::new(input.ident.span(), text));
    }
    let mut arguments = Vec::new();
    for parameter in &input.generics.params {
        match parameter {
            GenericParam::Lifetime(_) => {}
            GenericParam::Type(parameter) => {
                let ident = &parameter.ident;
                arguments.push(place.schema_of(&parse_quote!(#ident)));
            }
            GenericParam::Const(parameter) => {
                let text = "a type with a constant parameter cannot be described: name another with \
                            `#[shape(as = \"Type\")]`";
                return Err(Error::new(parameter.span(), text));
            }
        }
    }
    // For a type without a comment of its own, that of its only field is better than none.
    let doc = match &input.data {
        Data::Struct(data) if doc.is_empty() => match &data.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => {
                attributes::doc(&fields::only(&data.fields)?.attrs)
            }
            _ => String::new(),
        },
        _ => doc.to_owned(),
    };
    let (kind, type_id) = (place.shape("Definition"), place.shape("type_id"));
    Ok(quote! {
        #kind {
            name: #name,
            id: #type_id(::core::concat!(
                ::core::module_path!(), "::", #name, " ",
                ::core::file!(), ":", ::core::line!(), ":", ::core::column!(),
            )),
            arguments: &[#(#arguments),*],
            doc: #doc,
            schema: #content,
        }
    })
}

fn replace_self(tokens: TokenStream, own: &Ident) -> TokenStream {
    tokens
        .into_iter()
        .map(|token| match token {
            TokenTree::Ident(ident) if ident == "Self" => TokenTree::Ident(own.clone()),
            TokenTree::Group(group) => {
                TokenTree::Group(Group::new(group.delimiter(), replace_self(group.stream(), own)))
            }
            token => token,
        })
        .collect()
}
