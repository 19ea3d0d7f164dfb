//! WIT: contracts as interfaces that components import or export, for tools that know nothing of Weir.
//!
//! Values of the types that stand here have the JSON that the contract describes: `docs/exports.md` has the table. An
//! operation whose types have no such form is left out, and a comment says why.

use std::{cell::Cell, collections::BTreeMap};

use weir_openrpc::{Arguments, Document, Field, Method, Payload, Schema, Shape, Word, shown};

use crate::{
    contract::Contract,
    names::{Scope, kebab},
    text::{Code, item, listed, prose},
};

/// Words that mean something in WIT. As names they begin with `%`.
const KEYWORDS: &str = "\
    as async bool borrow char constructor enum error-context export f32 f64 flags from func future import include \
    interface list map option own package record resource result s16 s32 s64 s8 static stream string tuple type u16 u32 \
    u64 u8 use variant with world";

/// What a type is in WIT: an expression, or what a declaration of its own needs.
enum Form {
    Plain(String),
    Declared { keyword: &'static str, parts: Vec<(String, String)> },
}

/// Returns a package with two worlds: `caller` imports an interface for each contract, and `provider` exports them.
#[must_use]
pub fn wit(documents: &[Document]) -> String {
    let contracts = Contract::all(documents);
    let documents: Vec<(Document, bool)> =
        contracts.iter().map(|contract| in_kebab_case(&contract.document)).collect();
    let mut packages: BTreeMap<String, Vec<(String, &Document)>> = BTreeMap::new();
    let (mut imports, mut in_snake_case) = (Vec::new(), Vec::new());
    for (contract, (document, is_renamed)) in contracts.iter().zip(&documents) {
        let (package, interface) = place_of(contract);
        let name = full_name(&package, &interface).replace('%', "");
        if *is_renamed {
            in_snake_case.push(format!("\"{name}\""));
        }
        imports.push(format!("\"{name}\" = \"{}\"", document.contract));
        packages.entry(package).or_default().push((interface, document));
    }
    let mut code = Code::default();
    let names = listed(contracts.iter().map(|contract| contract.document.contract.as_str()));
    for line in prose(&format!("Written by `weir generate wit` from {names}: changes here do not last.")) {
        code.line(format!("// {line}"));
    }
    code.line("//");
    code.line("// A component that imports them has this in its table:");
    code.line(format!("// imports = {{ {} }}", imports.join(", ")));
    if !in_snake_case.is_empty() {
        code.line(format!("// snake-case-imports = [{}]", in_snake_case.join(", ")));
    }
    code.line("package contracts:generated;");
    for (world, how) in [("caller", "import"), ("provider", "export")] {
        code.gap();
        code.block(format!("world {world} {{"), "  ", |code| {
            for (package, interfaces) in &packages {
                for (interface, _) in interfaces {
                    code.line(format!("{how} {};", full_name(package, interface)));
                }
            }
        });
    }
    for (package, interfaces) in &packages {
        code.gap();
        code.block(format!("package {package} {{"), "  ", |code| {
            for (interface, document) in interfaces {
                code.gap();
                doc(code, &document.description);
                code.block(format!("interface {interface} {{"), "  ", |code| {
                    Interface::of(document).write(code);
                });
            }
        });
    }
    code.into_text()
}

/// The package and the interface that a contract stands for: those of the component that it describes, else its own.
fn place_of(contract: &Contract) -> (String, String) {
    let exported = contract.document.export.as_deref().and_then(|export| {
        let (name, version) =
            export.split_once('@').map_or((export, None), |(name, version)| (name, Some(version)));
        let (package, interface) = name.split_once('/')?;
        let version = version.map(|version| format!("@{version}")).unwrap_or_default();
        Some((format!("{package}{version}"), escaped(interface)))
    });
    exported.unwrap_or_else(|| {
        let version = contract.document.contract.as_str().split_once('@').map_or("0", |(_, version)| version);
        (format!("contracts:{}@{version}.0.0", kebab(contract.base_name())), "operations".to_owned())
    })
}

/// The document, and whether its fields have `-` here for the `_` that all of them have.
fn in_kebab_case(document: &Document) -> (Document, bool) {
    let (has_snake, has_kebab) = (Cell::new(false), Cell::new(false));
    let mut renamed = document.clone();
    renamed.rename_fields(|name| {
        has_snake.set(has_snake.get() || name.contains('_'));
        has_kebab.set(has_kebab.get() || name.contains('-'));
        name.replace('_', "-")
    });
    let is_renamed = has_snake.get() && !has_kebab.get();
    (if is_renamed { renamed } else { document.clone() }, is_renamed)
}

fn full_name(package: &str, interface: &str) -> String {
    match package.split_once('@') {
        Some((name, version)) => format!("{name}/{interface}@{version}"),
        None => format!("{package}/{interface}"),
    }
}

/// An interface whose types and functions are found one after the other.
#[derive(Clone)]
struct Interface<'d> {
    document: &'d Document,
    scope: Scope,
    /// The types that the document names, by their names there. None while a type is looked into.
    named: BTreeMap<&'d str, Option<String>>,
    declarations: Code,
    functions: Code,
}

impl<'d> Interface<'d> {
    fn of(document: &'d Document) -> Self {
        let code = Code::default();
        let mut interface = Self {
            document,
            scope: Scope::default(),
            named: BTreeMap::new(),
            declarations: code.clone(),
            functions: code,
        };
        for method in &document.methods {
            let mut tried = interface.clone();
            match tried.function(method) {
                Ok(function) => {
                    tried.functions.gap();
                    doc(&mut tried.functions, &method.description);
                    for error in &method.errors {
                        for line in item(&format!("`{}`", error.code), &error.description) {
                            tried.functions.line(format!("/// {line}"));
                        }
                    }
                    tried.functions.line(function);
                    interface = tried;
                }
                Err(why) => {
                    interface.functions.gap();
                    for line in prose(&format!("`{}` is left out: {why}.", shown(&method.name))) {
                        interface.functions.line(format!("// {line}"));
                    }
                }
            }
        }
        interface
    }

    fn write(self, code: &mut Code) {
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
            (Arguments::Bytes, Payload::Bytes) => {
                ("payload: list<u8>".to_owned(), Some("list<u8>".to_owned()))
            }
            (Arguments::Bytes, Payload::Json { schema, .. }) if schema.shape == Shape::Null => {
                ("payload: list<u8>".to_owned(), None)
            }
            (Arguments::Fields { fields, .. }, Payload::Json { schema, .. }) => {
                self.of_json(&method.name, fields, schema)?
            }
            (Arguments::Value(_), _) => return Err("it takes no object".to_owned()),
            (Arguments::Bytes, _) => return Err("it takes bytes, and answers with none".to_owned()),
            (_, Payload::Bytes) => return Err("it answers with bytes, and takes none".to_owned()),
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
        let mut parameters = Vec::new();
        for field in fields {
            let ty = self.field(field, method)?;
            parameters.push(format!("{}: {ty}", label(&field.name)?));
        }
        let result = match &self.document.resolve(result).shape {
            Shape::Null => None,
            // It says no more than that the call has succeeded.
            Shape::Record { fields, .. } if fields.is_empty() => None,
            _ => Some(self.ty(result, &format!("{method}-result"))?),
        };
        let is_bytes = |ty: &str| ty == "list<u8>";
        if let [only] = &*parameters
            && only.ends_with(": list<u8>")
            && result.as_deref().is_none_or(is_bytes)
        {
            return Err("its bytes are JSON, and those of such a function are not".to_owned());
        }
        Ok((parameters.join(", "), result))
    }

    /// The type of a field. One that may be left out is always there.
    fn field(&mut self, field: &'d Field, of: &str) -> Result<String, String> {
        self.ty(&field.schema, &format!("{of}-{}", field.name))
    }

    /// The type as an expression. A declaration that it needs gets the name `hint`.
    fn ty(&mut self, schema: &'d Schema, hint: &str) -> Result<String, String> {
        match self.form(&schema.shape, hint)? {
            Form::Plain(ty) => Ok(ty),
            Form::Declared { keyword, parts } => Ok(self.declare(keyword, hint, &schema.description, &parts)),
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
        let is_of_function = self.document.methods.iter().any(|method| method.name == name);
        let name = if is_of_function { format!("{name}-value") } else { name };
        escaped(&self.scope.take(&name))
    }

    /// The type that the document has under this name.
    fn named(&mut self, name: &'d str) -> Result<String, String> {
        match self.named.get(name) {
            Some(Some(known)) => return Ok(known.clone()),
            Some(None) => return Err(format!("a type of `{}` contains itself", shown(name))),
            None => {}
        }
        self.named.insert(name, None);
        let schema = self.document.named(name).ok_or("it has an unknown type")?;
        let made = match self.form(&schema.shape, name)? {
            Form::Plain(ty) => {
                let name = self.type_name(name);
                self.declarations.gap();
                doc(&mut self.declarations, &schema.description);
                self.declarations.line(format!("type {name} = {ty};"));
                name
            }
            Form::Declared { keyword, parts } => self.declare(keyword, name, &schema.description, &parts),
        };
        self.named.insert(name, Some(made.clone()));
        Ok(made)
    }

    fn form(&mut self, shape: &'d Shape, hint: &str) -> Result<Form, String> {
        let none = |what: &str| Err(format!("{what} has no form in WIT"));
        Ok(Form::Plain(match shape {
            Shape::Boolean => "bool".to_owned(),
            Shape::Integer { minimum, maximum, format } => {
                integer(format.as_deref(), *minimum, *maximum).to_owned()
            }
            Shape::Number { format, .. } => float(format.as_deref()).to_owned(),
            Shape::String { format: Some(format), .. } if format == "base64" => "list<u8>".to_owned(),
            Shape::String { min_length: Some(1), max_length: Some(1), .. } => "char".to_owned(),
            Shape::String { .. } | Shape::Words { open: true, .. } => "string".to_owned(),
            Shape::Words { words, open: false } => match &**words {
                [ok, err] if (&*ok.word, &*err.word) == ("ok", "err") => "result".to_owned(),
                words => return words_of("enum", words),
            },
            Shape::Constant(value) => match value.as_str() {
                Some(word) => {
                    return Ok(Form::Declared {
                        keyword: "enum",
                        parts: vec![(String::new(), label(word)?)],
                    });
                }
                None => return none("a value that is no string and always the same"),
            },
            Shape::List { items, unique, .. } => {
                if let (Shape::Words { words, open: false }, true) =
                    (&self.document.resolve(items).shape, unique)
                {
                    return words_of("flags", words);
                }
                match self.ty(items, &format!("{hint}-item"))? {
                    // A `list<u8>` is bytes, and these are numbers.
                    item if item == "u8" => "list<u16>".to_owned(),
                    item => format!("list<{item}>"),
                }
            }
            Shape::Tuple(places) => {
                let places: Result<Vec<_>, _> = places
                    .iter()
                    .zip(1..)
                    .map(|(place, number)| self.ty(place, &format!("{hint}-part{number}")))
                    .collect();
                format!("tuple<{}>", places?.join(", "))
            }
            Shape::Nullable(inner) => match &self.document.resolve(inner).shape {
                Shape::Tuple(one)
                    if let [schema] = &**one
                        && let Shape::Nullable(_) = self.document.resolve(schema).shape =>
                {
                    format!("option<{}>", self.ty(schema, hint)?)
                }
                Shape::Nullable(_) | Shape::Null => return none("a value that is null for two reasons"),
                _ => format!("option<{}>", self.ty(inner, hint)?),
            },
            Shape::Named(name) => self.named(name)?,
            Shape::Record { fields, .. } if fields.is_empty() => return none("an object without fields"),
            Shape::Record { fields, .. } => {
                let mut parts = Vec::new();
                for field in fields {
                    let part = format!("{}: {}", label(&field.name)?, self.field(field, hint)?);
                    parts.push((field.description.clone(), part));
                }
                return Ok(Form::Declared { keyword: "record", parts });
            }
            Shape::OneOf { options, open } => return self.choice(options, *open, hint),
            Shape::Any => return none("a value of any type"),
            Shape::Never => return none("a type without values"),
            Shape::Null => return none("a value that is always null"),
            Shape::Map(_) => return none("an object with any fields"),
        }))
    }

    /// A choice that is told by a case: by a string, or by the only field of an object.
    fn choice(&mut self, options: &'d [Schema], open: bool, hint: &str) -> Result<Form, String> {
        match options {
            [
                Schema { shape: Shape::Integer { .. }, .. },
                Schema { shape: Shape::String { format: Some(format), .. }, .. },
            ] => match &**format {
                "int64" => return Ok(Form::Plain("s64".to_owned())),
                "uint64" => return Ok(Form::Plain("u64".to_owned())),
                _ => {}
            },
            [
                Schema { shape: Shape::Number { format, .. }, .. },
                Schema { shape: Shape::Words { words, .. }, .. },
            ] if words.iter().any(|word| word.word == "NaN") => {
                return Ok(Form::Plain(float(format.as_deref()).to_owned()));
            }
            _ => {}
        }
        if open {
            return Err("a choice that a later version may add to has no form in WIT".to_owned());
        }
        let mut cases: Vec<(&str, &str, Option<String>)> = Vec::new();
        for option in options {
            match &self.document.resolve(option).shape {
                Shape::Words { words, open: false } => {
                    cases.extend(words.iter().map(|word| (&*word.word, &*word.description, None)));
                }
                Shape::Constant(value) if value.is_string() => {
                    cases.push((value.as_str().unwrap_or_default(), &option.description, None));
                }
                Shape::Record { fields, .. }
                    if let [Field { name, required: true, schema, .. }] = &**fields =>
                {
                    let ty = self.ty(schema, &format!("{hint}-{name}"))?;
                    cases.push((name, &option.description, Some(ty)));
                }
                _ => return Err("a choice that is not told by one word has no form in WIT".to_owned()),
            }
        }
        if let [("ok", _, ok), ("err", _, error)] = &*cases {
            let [ok, error] = [ok, error].map(|ty| ty.as_deref().unwrap_or("_"));
            return Ok(Form::Plain(
                format!("result<{ok}, {error}>").replace("<_, _>", "").replace(", _>", ">"),
            ));
        }
        let keyword = if cases.iter().all(|(_, _, ty)| ty.is_none()) { "enum" } else { "variant" };
        let part = |(name, description, ty): (&str, &str, Option<String>)| {
            let ty = ty.map(|ty| format!("({ty})")).unwrap_or_default();
            Ok((description.to_owned(), label(name)? + &ty))
        };
        Ok(Form::Declared { keyword, parts: cases.into_iter().map(part).collect::<Result<_, String>>()? })
    }
}

fn words_of(keyword: &'static str, words: &[Word]) -> Result<Form, String> {
    let part = |word: &Word| Ok((word.description.clone(), label(&word.word)?));
    Ok(Form::Declared { keyword, parts: words.iter().map(part).collect::<Result<_, String>>()? })
}

fn float(format: Option<&str>) -> &'static str {
    if format == Some("float") { "f32" } else { "f64" }
}

/// The least type with all these numbers.
fn integer(format: Option<&str>, minimum: Option<i128>, maximum: Option<i128>) -> &'static str {
    match format {
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

/// A name as it stands in WIT, which takes words of letters and digits with `-` between them. JSON has it as it is, so it
/// cannot be changed.
fn label(name: &str) -> Result<String, String> {
    let is_word = |word: &str| {
        let has = |is_letter: fn(&char) -> bool| word.chars().all(|it| is_letter(&it) || it.is_ascii_digit());
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && (has(char::is_ascii_lowercase) || has(char::is_ascii_uppercase))
    };
    if name.split('-').all(is_word) {
        Ok(escaped(name))
    } else {
        Err(format!("`{}` is no name in WIT, which has words with `-` between them", shown(name)))
    }
}

fn escaped(name: &str) -> String {
    let is_keyword = KEYWORDS.split_whitespace().any(|keyword| keyword == name);
    if is_keyword { format!("%{name}") } else { name.to_owned() }
}

fn doc(code: &mut Code, description: &str) {
    for line in prose(description) {
        code.line(format!("/// {line}").trim_end());
    }
}
