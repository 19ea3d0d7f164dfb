//! The types and functions of one interface.

use std::collections::{BTreeMap, BTreeSet};

use weir_openrpc::{Arguments, Document, Field, Method, Payload, Schema, Shape, Word, shown};

use super::labels::{Taken, distinct, escaped, label};
use crate::{
    names::kebab,
    text::{Code, item, prose},
};

/// Characters that a comment of WIT must not have: Unicode discourages them.
const DISCOURAGED: [char; 8] =
    ['\u{149}', '\u{673}', '\u{f77}', '\u{f79}', '\u{17a3}', '\u{17a4}', '\u{17b4}', '\u{17b5}'];

/// The most levels of a value that a component takes or gives.
const MAX_LEVELS: usize = 32;

/// The most steps into a type: names of types are no levels.
const MAX_STEPS: usize = 96;

const MAX_FLAGS: usize = 32;

/// An expression of a type, and the levels of its values.
#[derive(Clone, Debug)]
struct Ty {
    text: String,
    levels: usize,
}

/// What a type is in WIT: an expression, or a declaration with a name of its own.
enum Form {
    Plain(Ty),
    Declared { keyword: &'static str, parts: Vec<(String, String)>, levels: usize },
}

/// An interface whose types and functions are found one after the other.
#[derive(Clone)]
pub(super) struct Interface<'d> {
    document: &'d Document,
    /// Whether fields have `-` for `_`.
    pub(super) renames: bool,
    taken: Taken,
    /// The types that the document names, by their names there. None while a type is looked into.
    named: BTreeMap<&'d str, Option<Ty>>,
    steps: usize,
    declarations: Code,
    functions: Code,
    /// How many functions there are.
    pub(super) count: usize,
}

impl<'d> Interface<'d> {
    pub(super) fn of(document: &'d Document, renames: bool) -> Self {
        let mut interface = Self {
            document,
            renames,
            taken: Taken::default(),
            named: BTreeMap::new(),
            steps: 0,
            declarations: Code::default(),
            functions: Code::default(),
            count: 0,
        };
        // Functions have their own names, and types get others.
        let is_first: Vec<_> =
            document.methods.iter().map(|method| interface.taken.take(&method.name)).collect();
        for (method, is_first) in document.methods.iter().zip(is_first) {
            let mut tried = interface.clone();
            let function = match is_first {
                true => tried.function(method),
                false => Err("another operation has the same name in WIT".to_owned()),
            };
            match function {
                Ok(function) => {
                    tried.functions.gap();
                    doc(&mut tried.functions, &method.description);
                    for error in &method.errors {
                        let lines = item(&format!("`{}`", error.code), &error.description);
                        lines.iter().for_each(|line| comment(&mut tried.functions, line));
                    }
                    tried.functions.line(function);
                    tried.count += 1;
                    interface = tried;
                }
                Err(why) => {
                    interface.functions.gap();
                    for line in prose(&format!("`{}` is left out: {why}.", shown(&method.name))) {
                        interface.functions.line(format!("// {}", line.replace(DISCOURAGED, "")));
                    }
                }
            }
        }
        interface
    }

    pub(super) fn write(self, code: &mut Code) {
        for part in [self.declarations, self.functions].map(Code::into_text) {
            if !part.trim().is_empty() {
                code.gap();
                code.lines(&part);
            }
        }
    }

    fn function(&mut self, method: &'d Method) -> Result<String, String> {
        let name = label(&method.name)?;
        let (parameters, result) = match (&method.arguments, &method.result) {
            (Arguments::Fields { fields, .. }, Payload::Json { schema, .. }) => {
                self.of_json(&method.name, fields, schema)?
            }
            (Arguments::Value(_), _) => return Err("it takes no object".to_owned()),
            // A description says of both or of neither that they are bytes.
            _ => ("payload: list<u8>".to_owned(), Some("list<u8>".to_owned())),
        };
        // An error of the call, such as an absent provider, is one of the function's own. A component that says that it has
        // no error is taken at its word.
        let fails = self.document.export.is_none() || !method.errors.is_empty();
        let returned = match (fails, result) {
            (true, result) => format!(" -> result<{}, string>", result.as_deref().unwrap_or("_")),
            (false, Some(result)) => format!(" -> {result}"),
            (false, None) => String::new(),
        };
        Ok(format!("{name}: func({parameters}){returned};"))
    }

    fn of_json(
        &mut self,
        method: &str,
        fields: &'d [Field],
        result: &'d Schema,
    ) -> Result<(String, Option<String>), String> {
        distinct(fields.iter().map(|field| &*field.name))?;
        let mut parameters = Vec::new();
        for field in fields {
            let ty = self.ty(&field.schema, &format!("{method}-{}", field.name))?;
            parameters.push(format!("{}: {}", self.field_label(&field.name)?, ty.text));
        }
        let result_shape = &self.document.resolve(result).shape;
        let is_nothing = match result_shape {
            Shape::Null => true,
            // It says no more than that the call has succeeded.
            Shape::Record { fields, .. } => fields.is_empty(),
            _ => false,
        };
        if let [only] = fields
            && is_bytes(&self.document.resolve(&only.schema).shape)
            && (is_nothing || is_bytes(result_shape))
        {
            return Err("its bytes are JSON, and those of such a function are not".to_owned());
        }
        if is_nothing {
            return Ok((parameters.join(", "), None));
        }
        if let Some(field) = self.lacking(result) {
            return Err(format!("its answer may lack `{}`", shown(field)));
        }
        let result = self.ty(result, &format!("{method}-result"))?;
        Ok((parameters.join(", "), Some(result.text)))
    }

    /// A field of an answer that need not be there, where no `null` stands for that.
    fn lacking(&self, answer: &'d Schema) -> Option<&'d str> {
        let (mut open, mut seen) = (vec![answer], BTreeSet::new());
        while let Some(schema) = open.pop() {
            match &schema.shape {
                Shape::Named(name) if seen.insert(name) => open.extend(self.document.named(name)),
                Shape::List { items: inner, .. } | Shape::Map(inner) | Shape::Nullable(inner) => {
                    open.push(inner);
                }
                Shape::Tuple(all) | Shape::OneOf { options: all, .. } => open.extend(all),
                Shape::Record { fields, .. } => {
                    let is_null = |field: &Field| {
                        matches!(self.document.resolve(&field.schema).shape, Shape::Nullable(_))
                    };
                    if let Some(field) = fields.iter().find(|field| !field.required && !is_null(field)) {
                        return Some(&field.name);
                    }
                    open.extend(fields.iter().map(|field| &field.schema));
                }
                _ => {}
            }
        }
        None
    }

    fn field_label(&self, name: &str) -> Result<String, String> {
        match self.renames {
            true if name.contains('-') => {
                Err(format!("`{}` has `-`, and other fields have `_`", shown(name)))
            }
            true => label(&name.replace('_', "-")),
            false => label(name),
        }
    }

    /// The type as an expression. A declaration that it needs gets the name `hint`.
    fn ty(&mut self, schema: &'d Schema, hint: &str) -> Result<Ty, String> {
        match self.form(&schema.shape, hint)? {
            Form::Plain(ty) => Ok(ty),
            Form::Declared { keyword, parts, levels } => {
                Ok(Ty { text: self.declare(keyword, hint, &schema.description, &parts), levels })
            }
        }
    }

    fn declare(
        &mut self,
        keyword: &str,
        name: &str,
        description: &str,
        parts: &[(String, String)],
    ) -> String {
        let name = self.type_name(name);
        self.declarations.gap();
        doc(&mut self.declarations, description);
        self.declarations.block(format!("{keyword} {name} {{"), "  ", |code| {
            for (description, part) in parts {
                doc(code, description);
                code.line(format!("{part},"));
            }
        });
        name
    }

    /// A free name for a type.
    fn type_name(&mut self, name: &str) -> String {
        let name = kebab(name);
        let name = if self.taken.take(&name) {
            name
        } else {
            self.taken.free(&format!("{name}-value"), ToOwned::to_owned)
        };
        escaped(&name)
    }

    /// The type that the document has under this name.
    fn named(&mut self, name: &'d str) -> Result<Ty, String> {
        match self.named.get(name) {
            Some(Some(known)) => return Ok(known.clone()),
            Some(None) => return Err(format!("a type of `{}` contains itself", shown(name))),
            None => {}
        }
        self.named.insert(name, None);
        let schema = self.document.named(name).ok_or("it has an unknown type")?;
        let made = match self.form(&schema.shape, name)? {
            Form::Plain(Ty { text, levels }) => {
                let name = self.type_name(name);
                self.declarations.gap();
                doc(&mut self.declarations, &schema.description);
                self.declarations.line(format!("type {name} = {text};"));
                Ty { text: name, levels }
            }
            Form::Declared { keyword, parts, levels } => {
                Ty { text: self.declare(keyword, name, &schema.description, &parts), levels }
            }
        };
        self.named.insert(name, Some(made.clone()));
        Ok(made)
    }

    fn form(&mut self, shape: &'d Shape, hint: &str) -> Result<Form, String> {
        let deep = || Err(format!("its types have more than {MAX_LEVELS} levels"));
        if self.steps > MAX_STEPS {
            return deep();
        }
        self.steps += 1;
        let form = self.form_of(shape, hint);
        self.steps -= 1;
        let form = form?;
        let (Form::Plain(Ty { levels, .. }) | Form::Declared { levels, .. }) = form;
        if levels > MAX_LEVELS { deep() } else { Ok(form) }
    }

    fn form_of(&mut self, shape: &'d Shape, hint: &str) -> Result<Form, String> {
        let none = |what: &str| Err(format!("{what} has no form in WIT"));
        let leaf = |text: &str| Ok(plain(text, 0));
        match shape {
            Shape::Boolean => leaf("bool"),
            Shape::Integer { .. } => leaf(integer(shape)),
            Shape::Number { format, .. } => leaf(float(format.as_deref())),
            Shape::String { .. } if is_bytes(shape) => Ok(plain("list<u8>", 1)),
            Shape::String { min_length: Some(1), max_length: Some(1), .. } => leaf("char"),
            Shape::String { .. } | Shape::Words { open: true, .. } => leaf("string"),
            Shape::Words { words, open: false } => match &**words {
                [ok, err] if (&*ok.word, &*err.word) == ("ok", "err") => leaf("result"),
                words => words_of("enum", words),
            },
            Shape::Constant(value) => match value.as_str() {
                Some(word) => {
                    let parts = vec![(String::new(), label(word)?)];
                    Ok(Form::Declared { keyword: "enum", parts, levels: 1 })
                }
                None => none("a value that is no string and always the same"),
            },
            Shape::List { items, unique, .. } => match &self.document.resolve(items).shape {
                Shape::Words { words, open: false } if *unique => match words.len() {
                    0..=MAX_FLAGS => words_of("flags", words),
                    _ => none("a set of more than 32 words"),
                },
                // A `list<u8>` is bytes, and these are numbers.
                number @ Shape::Integer { .. } if integer(number) == "u8" => Ok(plain("list<u16>", 1)),
                _ => {
                    let item = self.ty(items, &format!("{hint}-item"))?;
                    Ok(plain(format!("list<{}>", item.text), item.levels))
                }
            },
            Shape::Tuple(places) if places.is_empty() => none("a list that is always empty"),
            Shape::Tuple(places) => {
                let (mut types, mut levels) = (Vec::new(), 0);
                for (place, number) in places.iter().zip(1..) {
                    let ty = self.ty(place, &format!("{hint}-part{number}"))?;
                    levels = levels.max(ty.levels);
                    types.push(ty.text);
                }
                Ok(plain(format!("tuple<{}>", types.join(", ")), levels))
            }
            Shape::Nullable(inner) => match &self.document.resolve(inner).shape {
                Shape::Tuple(one)
                    if let [schema] = &**one
                        && let Shape::Nullable(_) = self.document.resolve(schema).shape =>
                {
                    let ty = self.ty(schema, hint)?;
                    Ok(plain(format!("option<{}>", ty.text), ty.levels))
                }
                Shape::Nullable(_) | Shape::Null => none("a value that is null for two reasons"),
                _ => {
                    let ty = self.ty(inner, hint)?;
                    Ok(plain(format!("option<{}>", ty.text), ty.levels))
                }
            },
            Shape::Named(name) => self.named(name).map(Form::Plain),
            Shape::Record { fields, .. } if fields.is_empty() => none("an object without fields"),
            Shape::Record { fields, .. } => {
                distinct(fields.iter().map(|field| &*field.name))?;
                let (mut parts, mut levels) = (Vec::new(), 0);
                for field in fields {
                    let ty = self.ty(&field.schema, &format!("{hint}-{}", field.name))?;
                    levels = levels.max(ty.levels);
                    let part = format!("{}: {}", self.field_label(&field.name)?, ty.text);
                    parts.push((field.description.clone(), part));
                }
                Ok(Form::Declared { keyword: "record", parts, levels: levels + 1 })
            }
            Shape::OneOf { options, open } => self.choice(options, *open, hint),
            Shape::Any => none("a value of any type"),
            Shape::Never => none("a type without values"),
            Shape::Null => none("a value that is always null"),
            Shape::Map(_) => none("an object with any fields"),
        }
    }

    /// A choice that is told by a case: by a string, or by the only field of an object.
    fn choice(&mut self, options: &'d [Schema], open: bool, hint: &str) -> Result<Form, String> {
        if let [first, second] = options {
            match (&first.shape, &second.shape) {
                (Shape::Integer { .. }, Shape::String { format: Some(format), .. }) => match &**format {
                    "int64" => return Ok(plain("s64", 0)),
                    "uint64" => return Ok(plain("u64", 0)),
                    _ => {}
                },
                (Shape::Number { format, .. }, Shape::Words { words, open: false })
                    if words.iter().map(|word| &*word.word).eq(["NaN", "Infinity", "-Infinity"]) =>
                {
                    return Ok(plain(float(format.as_deref()), 0));
                }
                _ => {}
            }
        }
        if open {
            return Err("a choice that a later version may add to has no form in WIT".to_owned());
        }
        let (mut cases, mut levels): (Vec<(&str, &str, Option<String>)>, _) = (Vec::new(), 0);
        for option in options {
            match &self.document.resolve(option).shape {
                Shape::Words { words, open: false } => {
                    cases.extend(words.iter().map(|word| (&*word.word, &*word.description, None)));
                }
                Shape::Constant(value) if let Some(word) = value.as_str() => {
                    cases.push((word, &option.description, None));
                }
                Shape::Record { fields, .. }
                    if let [Field { name, required: true, schema, .. }] = &**fields =>
                {
                    let ty = self.ty(schema, &format!("{hint}-{name}"))?;
                    levels = levels.max(ty.levels);
                    cases.push((name, &option.description, Some(ty.text)));
                }
                _ => return Err("a choice that is not told by one word has no form in WIT".to_owned()),
            }
        }
        distinct(cases.iter().map(|(name, ..)| *name))?;
        let case = |word| cases.iter().find(|(name, ..)| *name == word).map(|(.., ty)| ty);
        if let (2, Some(ok), Some(error)) = (cases.len(), case("ok"), case("err")) {
            let text = match (ok, error) {
                (None, None) => "result".to_owned(),
                (Some(ok), None) => format!("result<{ok}>"),
                (ok, Some(error)) => format!("result<{}, {error}>", ok.as_deref().unwrap_or("_")),
            };
            return Ok(plain(text, levels));
        }
        let keyword = if cases.iter().all(|(_, _, ty)| ty.is_none()) { "enum" } else { "variant" };
        let part = |(name, description, ty): (&str, &str, Option<String>)| {
            let ty = ty.map(|ty| format!("({ty})")).unwrap_or_default();
            Ok((description.to_owned(), label(name)? + &ty))
        };
        let parts = cases.into_iter().map(part).collect::<Result<_, String>>()?;
        Ok(Form::Declared { keyword, parts, levels: levels + 1 })
    }
}

/// An expression of a type whose inner values have so many levels.
fn plain(text: impl Into<String>, levels: usize) -> Form {
    Form::Plain(Ty { text: text.into(), levels: levels + 1 })
}

fn words_of(keyword: &'static str, words: &[Word]) -> Result<Form, String> {
    if words.is_empty() {
        return Err("a type without values has no form in WIT".to_owned());
    }
    distinct(words.iter().map(|word| &*word.word))?;
    let part = |word: &Word| Ok((word.description.clone(), label(&word.word)?));
    let parts = words.iter().map(part).collect::<Result<_, String>>()?;
    Ok(Form::Declared { keyword, parts, levels: 1 })
}

fn is_bytes(shape: &Shape) -> bool {
    matches!(shape, Shape::String { format: Some(format), .. } if format == "base64")
}

fn float(format: Option<&str>) -> &'static str {
    if format == Some("float") { "f32" } else { "f64" }
}

/// The least type with all these numbers.
fn integer(shape: &Shape) -> &'static str {
    let Shape::Integer { minimum, maximum, format } = shape else { return "s64" };
    match format.as_deref() {
        Some("int8") => return "s8",
        Some("uint8") => return "u8",
        Some("int16") => return "s16",
        Some("uint16") => return "u16",
        Some("int32") => return "s32",
        Some("uint32") => return "u32",
        Some("int64" | "int") => return "s64",
        Some("uint64" | "uint") => return "u64",
        _ => {}
    }
    let within = |least: i128, most: i128| {
        minimum.is_some_and(|it| it >= least) && maximum.is_some_and(|it| it <= most)
    };
    match () {
        () if within(0, u32::MAX.into()) => "u32",
        () if within(i32::MIN.into(), i32::MAX.into()) => "s32",
        () if minimum.is_some_and(|it| it >= 0) => "u64",
        () => "s64",
    }
}

/// Writes a description before what it describes.
pub(super) fn doc(code: &mut Code, description: &str) {
    prose(description).iter().for_each(|line| comment(code, line));
}

fn comment(code: &mut Code, line: &str) {
    code.line(format!("/// {}", line.replace(DISCOURAGED, "")).trim_end());
}
