//! The attributes of a type, a variant or a field, as far as they change its JSON or its description.

use syn::{
    Attribute, Error, Expr, ExprLit, Lit, LitStr, Meta, Path, Result, Token, Type, meta::ParseNestedMeta,
    parenthesized, token::Paren,
};

use crate::case::Case;

#[derive(Default)]
pub(crate) struct Attributes {
    pub(crate) rename: Option<String>,
    pub(crate) rename_all: Option<Case>,
    pub(crate) rename_all_fields: Option<Case>,
    pub(crate) deny_unknown_fields: bool,
    /// A field may be absent: it has a default, or is not always written.
    pub(crate) optional: bool,
    pub(crate) skip: bool,
    pub(crate) tag: Option<LitStr>,
    pub(crate) content: Option<String>,
    pub(crate) transparent: bool,
    /// The variant stands for words of later versions.
    pub(crate) other: bool,
    /// The type to describe instead of this one.
    pub(crate) as_type: Option<Type>,
    /// The path of `weir_sdk`.
    pub(crate) sdk: Option<Path>,
    /// The errors of `skip_serializing` and `skip_deserializing`. With both, the field or variant is simply skipped.
    one_sided: [Option<Error>; 2],
    /// The error of an attribute that needs `as_type` beside it.
    undescribable: Option<Error>,
}

impl Attributes {
    /// Reads attributes of serde and of `shape`.
    ///
    /// # Errors
    /// If the JSON cannot be described.
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("serde") {
                attribute.parse_nested_meta(|meta| found.serde(&meta))?;
            } else if attribute.path().is_ident("shape") {
                attribute.parse_nested_meta(|meta| found.shape(&meta))?;
            }
        }
        match std::mem::take(&mut found.one_sided) {
            [Some(_), Some(_)] => found.skip = true,
            [one, other] => found.undescribable = found.undescribable.or(one).or(other),
        }
        match found.undescribable.take() {
            Some(error) if found.as_type.is_none() => Err(error),
            _ => Ok(found),
        }
    }

    /// Reads one attribute of serde. Those that are unknown here change nothing, or serde refuses them.
    fn serde(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        let Some(name) = meta.path.get_ident().map(ToString::to_string) else { return skip(meta) };
        match name.as_str() {
            "rename" => self.rename = both_ways(meta)?.map(|name| name.value()),
            "rename_all" => self.rename_all = both_ways(meta)?.as_ref().map(Case::parse).transpose()?,
            "rename_all_fields" => {
                self.rename_all_fields = both_ways(meta)?.as_ref().map(Case::parse).transpose()?;
            }
            "deny_unknown_fields" => self.deny_unknown_fields = true,
            "tag" => self.tag = Some(meta.value()?.parse()?),
            "content" => self.content = Some(meta.value()?.parse::<LitStr>()?.value()),
            "transparent" => self.transparent = true,
            "other" => self.other = true,
            "skip" => self.skip = true,
            "default" | "skip_serializing_if" => {
                self.optional = true;
                skip(meta)?;
            }
            "skip_serializing" => self.one_sided[0] = Some(one_direction(meta)),
            "skip_deserializing" => self.one_sided[1] = Some(one_direction(meta)),
            "flatten" => {
                return Err(meta.error("`flatten` cannot be described: give the type these fields itself"));
            }
            "untagged" => {
                return Err(meta.error(
                    "`untagged` cannot be described: use `tag`, so that readers and errors can name the variant",
                ));
            }
            "with" | "serialize_with" | "deserialize_with" | "from" | "try_from" | "into" | "remote"
            | "getter" | "field_identifier" | "variant_identifier" => {
                self.undescribable = Some(meta.error(format_args!(
                    "`{name}` makes JSON that cannot be seen here: name a type with the same JSON, as in \
                     `#[shape(as = \"String\")]`"
                )));
                skip(meta)?;
            }
            _ => skip(meta)?,
        }
        Ok(())
    }

    fn shape(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("as") {
            self.as_type = Some(meta.value()?.parse::<LitStr>()?.parse()?);
        } else if meta.path.is_ident("crate") {
            self.sdk = Some(meta.value()?.parse::<LitStr>()?.parse_with(Path::parse_mod_style)?);
        } else {
            return Err(meta.error("expected `as` or `crate`"));
        }
        Ok(())
    }
}

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

/// The value of an attribute, given once or the same for each direction. `None` if it is given for neither. Fails if it
/// is given for one alone, or differs.
fn both_ways(meta: &ParseNestedMeta<'_>) -> Result<Option<LitStr>> {
    if meta.input.peek(Token![=]) {
        return meta.value()?.parse().map(Some);
    }
    let mut ways = [None, None];
    meta.parse_nested_meta(|way| {
        let [serialize, deserialize] = &mut ways;
        let place = if way.path.is_ident("serialize") { serialize } else { deserialize };
        *place = Some(way.value()?.parse::<LitStr>()?);
        Ok(())
    })?;
    match ways {
        [Some(a), Some(b)] if a.value() == b.value() => Ok(Some(a)),
        [None, None] => Ok(None),
        _ => Err(one_direction(meta)),
    }
}

fn one_direction(meta: &ParseNestedMeta<'_>) -> Error {
    meta.error("one description holds for what is written and for what is read: treat both alike")
}

/// Passes over a value that changes nothing here.
fn skip(meta: &ParseNestedMeta<'_>) -> Result<()> {
    if meta.input.peek(Token![=]) {
        meta.value()?.parse::<Expr>()?;
    } else if meta.input.peek(Paren) {
        let content;
        parenthesized!(content in meta.input);
        content.parse::<proc_macro2::TokenStream>()?;
    }
    Ok(())
}
