//! Describes the interfaces of a component as contracts, by its types alone: without compiling or running it.
//!
//! `docs/exports.md` has the table of types. What is described here is what [`read`](super::read) reads and
//! [`json`](super::json) writes.

use std::collections::{HashMap, HashSet};

use wasmparser::{
    Parser, PrimitiveValType, ValidPayload, Validator, WasmFeatures,
    component_types::{
        ComponentAnyTypeId, ComponentDefinedType, ComponentDefinedTypeId, ComponentEntityType,
        ComponentFuncTypeId, ComponentInstanceTypeId, ComponentValType,
    },
    types::{Types, TypesRef},
};
use weir_names::{ContractName, Role, harmless};
use weir_openrpc::{Arguments, Document, ErrorCode, Field, Method, Payload, Schema, Shape, Word};

use super::{
    MAX_FUNCTIONS,
    json::{ERR, FAILED, NOT_FINITE, OK, SAFE},
    too_many,
    types::{MAX_LEVELS, Unmapped},
};

/// The fault of a type that is not there, which no validated component has.
const UNKNOWN: Unmapped = Unmapped::Kind("has an unknown type");

/// The most types in the descriptions of one component, counting each use of a type without a name.
const MAX_TYPES: usize = 16_384;

/// The most functions and types of a described interface.
const MAX_ITEMS: usize = 2048;

/// An interface that a component exports or imports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DescribedInterface {
    /// The name in the component. `*` are the functions that it exports by themselves.
    pub(crate) name: String,
    /// `Provider` if it is exported, `Caller` if it is imported.
    pub(crate) role: Role,
    /// Whether it has more than types.
    pub(crate) has_functions: bool,
    /// Why its functions cannot be called with JSON, if that is so.
    pub(crate) unmapped: Option<String>,
    /// Its description. None if it has no functions, or cannot be described within the bounds.
    pub(crate) document: Option<Document>,
}

/// Describes the interfaces with these names that a component exports and imports, but for those of WASI and Weir. `None`
/// if it has some and cannot be parsed.
pub(crate) fn interfaces(
    component: &[u8],
    exports: &[String],
    imports: &[String],
) -> Option<Vec<DescribedInterface>> {
    let of_others = |name: &&String| !name.starts_with("wasi:") && !name.starts_with("weir:iec/");
    let [mut exports, mut imports] =
        [exports, imports].map(|names| names.iter().filter(of_others).peekable());
    if exports.peek().is_none() && imports.peek().is_none() {
        return Some(Vec::new());
    }
    let types = types_of(component)?;
    let types = types.as_ref();
    let (mut found, mut root, mut left) = (Vec::new(), Vec::new(), MAX_TYPES);
    for name in exports {
        match types.component_item_for_export(name).map(|item| item.ty) {
            Some(ComponentEntityType::Instance(id)) => {
                found.push(of_items(types, name, &items(types, id), Role::Provider, &mut left));
            }
            Some(ty @ (ComponentEntityType::Func(_) | ComponentEntityType::Type { .. })) => {
                root.push((name.as_str(), ty));
            }
            _ => {}
        }
    }
    found.push(of_items(types, "*", &root, Role::Provider, &mut left));
    found.retain(|exported| exported.has_functions);
    for name in imports {
        if let Some(ComponentEntityType::Instance(id)) =
            types.component_item_for_import(name).map(|item| item.ty)
        {
            found.push(of_items(types, name, &items(types, id), Role::Caller, &mut left));
        }
    }
    apart(&mut found);
    Some(found)
}

/// Gives different names to the contracts of interfaces that would have one, such as two versions of an interface.
fn apart(found: &mut [DescribedInterface]) {
    let mut taken = HashSet::new();
    for document in found.iter_mut().filter_map(|it| it.document.as_mut()) {
        let contract = document.contract.to_string();
        let (name, version) = contract.split_once('@').unwrap_or((&contract, "0"));
        let free = free(contract.clone(), |number| format!("{name}-{number}@{version}"), &mut taken);
        if let Ok(contract) = free.parse() {
            document.contract = contract;
        }
    }
}

/// The name, or the first of the others, by number, that is not taken yet. Takes it.
fn free(name: String, other: impl Fn(u32) -> String, taken: &mut HashSet<String>) -> String {
    let mut names = std::iter::once(name.clone()).chain((2..).map(other));
    let free = names.find(|it| !taken.contains(it)).unwrap_or(name);
    taken.insert(free.clone());
    free
}

/// The name of a type that no other has.
fn free_type(name: String, taken: &mut HashSet<String>) -> String {
    free(name.clone(), |number| format!("{name}_{number}"), taken)
}

/// The text of descriptions that a compiled component keeps: those of what it exports.
#[cfg(feature = "compiler")]
pub(crate) fn to_be_compiled(component: &[u8], exports: &[String]) -> String {
    let described = interfaces(component, exports, &[]).into_iter().flatten().filter_map(|it| it.document);
    described.map(|document| document.line() + "\n").collect()
}

/// The contract that stands for an interface where no configuration names one: `acme.greeter.api@1` for
/// `acme:greeter/api@1.2.0`, and `functions@0` for the functions that are exported by themselves.
pub(crate) fn contract_of(interface: &str) -> Option<ContractName> {
    if interface == "*" {
        return "functions@0".parse().ok();
    }
    let (name, version) = interface.split_once('@').unwrap_or((interface, "0"));
    let version = version.split('.').next().unwrap_or_default();
    let name = name.replace([':', '/'], ".").to_ascii_lowercase();
    format!("{name}@{version}").parse().ok()
}

/// The types of a component. Its functions are not validated.
fn types_of(component: &[u8]) -> Option<Types> {
    let mut validator = Validator::new_with_features(WasmFeatures::default());
    let mut outermost = None;
    for payload in Parser::new(0).parse_all(component) {
        if let ValidPayload::End(types) = validator.payload(&payload.ok()?).ok()? {
            outermost = Some(types);
        }
    }
    outermost
}

type Item<'t> = (&'t str, ComponentEntityType);

fn items<'t>(types: TypesRef<'t>, id: ComponentInstanceTypeId) -> Vec<Item<'t>> {
    let exports = types.get(id).into_iter().flat_map(|instance| &instance.exports);
    exports.map(|(name, item)| (name.as_str(), item.ty)).collect()
}

/// Describes the functions among these items.
fn of_items(
    types: TypesRef<'_>,
    name: &str,
    items: &[Item<'_>],
    role: Role,
    left: &mut usize,
) -> DescribedInterface {
    let functions = items.iter().filter_map(|(name, ty)| match ty {
        ComponentEntityType::Func(id) => Some((*name, *id)),
        _ => None,
    });
    let functions: Vec<_> = functions.collect();
    let is_resource = |(_, ty): &&Item<'_>| {
        matches!(ty, ComponentEntityType::Type { created: ComponentAnyTypeId::Resource(_), .. })
    };
    let resource = items.iter().find(is_resource).filter(|_| role == Role::Caller);
    let unmapped = match resource {
        Some((name, _)) => Some(format!("`{}` is no function", harmless(name, 128))),
        None if functions.len() > MAX_FUNCTIONS => Some(too_many(functions.len())),
        None => None,
    };
    let described = DescribedInterface {
        name: harmless(name, 256),
        role,
        has_functions: !functions.is_empty() || resource.is_some(),
        unmapped,
        document: None,
    };
    if functions.is_empty() || described.unmapped.is_some() || items.len() > MAX_ITEMS {
        return described;
    }
    let (mut names, mut taken) = (HashMap::new(), HashSet::new());
    for (name, ty) in items {
        if let ComponentEntityType::Type { referenced, created } = ty {
            let name = free_type(type_name(name), &mut taken);
            for id in [referenced, created] {
                if let ComponentAnyTypeId::Defined(id) = id {
                    names.entry(*id).or_insert_with(|| name.clone());
                }
            }
        }
    }
    let mut describing =
        Describing { types, names, taken, described: HashSet::new(), named: Vec::new(), left: *left };
    let methods: Result<Vec<_>, _> = functions
        .iter()
        .map(|(name, id)| describing.method(name, *id).map_err(|fault| (name, fault)))
        .collect();
    *left = describing.left;
    match methods {
        Ok(methods) => DescribedInterface { document: describing.document(name, methods, role), ..described },
        // What is too large to be described can still be called, if it is not too large for that.
        Err((_, Unmapped::Large)) => described,
        Err((name, fault)) => DescribedInterface { unmapped: Some(fault.of_function(name)), ..described },
    }
}

struct Describing<'t> {
    types: TypesRef<'t>,
    names: HashMap<ComponentDefinedTypeId, String>,
    /// The names of types that are in use.
    taken: HashSet<String>,
    /// The names in `named`.
    described: HashSet<String>,
    /// The types with a name that were met so far.
    named: Vec<(String, Schema)>,
    /// How many types may still be described.
    left: usize,
}

impl Describing<'_> {
    /// The description, if it is within the bounds of all descriptions.
    fn document(&mut self, interface: &str, methods: Vec<Method>, role: Role) -> Option<Document> {
        let document = Document {
            contract: contract_of(interface).or_else(|| contract_of("*"))?,
            description: String::new(),
            role,
            export: Some(interface.to_owned()),
            methods,
            topics: Vec::new(),
            queues: Vec::new(),
            types: std::mem::take(&mut self.named),
        };
        Document::parse(&document.line()).ok()
    }

    fn method(&mut self, name: &str, id: ComponentFuncTypeId) -> Result<Method, Unmapped> {
        let function = self.types.get(id).ok_or(UNKNOWN)?;
        if function.async_ {
            return Err(Unmapped::Kind("is asynchronous"));
        }
        let result = self.returned(function.result);
        if let Some(Some(error)) = result.error {
            // It is told as a code and a text, but its values are written as any.
            self.schema(error, MAX_LEVELS)?;
        }
        let is_bytes = |ty: Option<ComponentValType>| ty.is_none_or(|ty| self.is_bytes(ty));
        if let [(_, only)] = &*function.params
            && self.is_bytes(*only)
            && is_bytes(result.ok)
        {
            return Ok(Method {
                name: name.to_owned(),
                description: String::new(),
                arguments: Arguments::Bytes,
                result: Payload::Bytes,
                errors: self.errors(&result),
            });
        }
        let fields: Result<Vec<_>, Unmapped> =
            function.params.iter().map(|(name, ty)| self.field(name.as_str(), *ty, MAX_LEVELS)).collect();
        let own = type_name(name);
        let schema = match result.ok {
            Some(ty) => self.schema(ty, MAX_LEVELS)?,
            None => Shape::Null.into(),
        };
        let result_name = match &schema.shape {
            Shape::Named(name) => name.clone(),
            _ => free_type(format!("{own}Result"), &mut self.taken),
        };
        Ok(Method {
            name: name.to_owned(),
            description: String::new(),
            arguments: Arguments::Fields {
                name: free_type(format!("{own}Arguments"), &mut self.taken),
                strict: true,
                fields: fields?,
            },
            errors: self.errors(&result),
            result: Payload::Json { name: result_name, schema },
        })
    }

    /// The value and the error that a function returns.
    fn returned(&self, ty: Option<ComponentValType>) -> Returned {
        match ty.and_then(|ty| self.defined(ty)) {
            Some(ComponentDefinedType::Result { ok, err, .. }) => Returned { ok: *ok, error: Some(*err) },
            _ => Returned { ok: ty, error: None },
        }
    }

    /// The codes of the errors.
    fn errors(&self, returned: &Returned) -> Vec<ErrorCode> {
        let code = |code: &str| ErrorCode { code: code.to_owned(), description: String::new() };
        let Some(error) = returned.error else { return Vec::new() };
        match error.and_then(|ty| self.defined(ty)) {
            Some(ComponentDefinedType::Enum(cases)) => cases.iter().map(|case| code(case.as_str())).collect(),
            Some(ComponentDefinedType::Variant(variant)) => {
                variant.cases.keys().map(|case| code(case.as_str())).collect()
            }
            _ => vec![code(FAILED)],
        }
    }

    fn defined(&self, ty: ComponentValType) -> Option<&ComponentDefinedType> {
        match ty {
            ComponentValType::Primitive(_) => None,
            ComponentValType::Type(id) => self.types.get(id),
        }
    }

    fn is_bytes(&self, ty: ComponentValType) -> bool {
        let is_u8 = |element: &ComponentValType| match element {
            ComponentValType::Primitive(primitive) => *primitive == PrimitiveValType::U8,
            ComponentValType::Type(id) => {
                matches!(self.types.get(*id), Some(ComponentDefinedType::Primitive(PrimitiveValType::U8)))
            }
        };
        matches!(self.defined(ty), Some(ComponentDefinedType::List { element, .. }) if is_u8(element))
    }

    fn field(&mut self, name: &str, ty: ComponentValType, levels: usize) -> Result<Field, Unmapped> {
        let required = !matches!(self.defined(ty), Some(ComponentDefinedType::Option { .. }));
        let schema = self.schema(ty, levels)?;
        Ok(Field { name: name.to_owned(), description: String::new(), required, schema })
    }

    /// The type of a value that has at most so many levels.
    fn schema(&mut self, ty: ComponentValType, levels: usize) -> Result<Schema, Unmapped> {
        let levels = levels.checked_sub(1).ok_or(Unmapped::Deep)?;
        self.left = self.left.checked_sub(1).ok_or(Unmapped::Large)?;
        let id = match ty {
            ComponentValType::Primitive(primitive) => return primitive_of(primitive),
            ComponentValType::Type(id) => id,
        };
        let name = self.names.get(&id).cloned();
        if let Some(name) = &name
            && self.described.contains(name)
        {
            return Ok(Shape::Named(name.clone()).into());
        }
        let shape = self.shape(id, levels)?;
        // A value that may be null says so where it stands.
        match name.filter(|_| !matches!(shape, Shape::Nullable(_))) {
            Some(name) => {
                self.described.insert(name.clone());
                self.named.push((name.clone(), shape.into()));
                Ok(Shape::Named(name).into())
            }
            None => Ok(shape.into()),
        }
    }

    fn shape(&mut self, id: ComponentDefinedTypeId, levels: usize) -> Result<Shape, Unmapped> {
        let types = self.types;
        let words =
            |names: Vec<String>| Shape::Words { words: names.into_iter().map(word).collect(), open: false };
        Ok(match types.get(id).ok_or(UNKNOWN)? {
            ComponentDefinedType::Primitive(primitive) => primitive_of(*primitive)?.shape,
            ComponentDefinedType::List { .. } if self.is_bytes(ComponentValType::Type(id)) => {
                text(Some("base64"), None)
            }
            ComponentDefinedType::List { element, .. } => list(self.schema(*element, levels)?, false),
            ComponentDefinedType::Record(record) => {
                let fields = record.fields.iter().map(|(name, ty)| self.field(name.as_str(), *ty, levels));
                Shape::Record { fields: fields.collect::<Result<_, _>>()?, strict: true }
            }
            ComponentDefinedType::Tuple(tuple) => {
                let places = tuple.types.iter().map(|ty| self.schema(*ty, levels));
                Shape::Tuple(places.collect::<Result<_, _>>()?)
            }
            ComponentDefinedType::Variant(variant) => {
                let cases = variant.cases.iter().map(|(name, case)| (name.as_str(), case.ty));
                self.cases(cases, levels)?
            }
            ComponentDefinedType::Result { ok, err, .. } => {
                self.cases([(OK, *ok), (ERR, *err)].into_iter(), levels)?
            }
            ComponentDefinedType::Enum(cases) => words(cases.iter().map(ToString::to_string).collect()),
            ComponentDefinedType::Flags(flags) => {
                let flags = words(flags.iter().map(ToString::to_string).collect());
                list(flags.into(), true)
            }
            ComponentDefinedType::Option { ty, .. } => {
                let inner = self.schema(*ty, levels)?;
                // `null` stands for none, so a value that may be null itself is in a list of one.
                let inner = match &inner.shape {
                    Shape::Nullable(_) => Shape::Tuple(vec![inner]).into(),
                    _ => inner,
                };
                Shape::Nullable(Box::new(inner))
            }
            ComponentDefinedType::Own(_) | ComponentDefinedType::Borrow(_) => {
                return Err(Unmapped::Kind("has a resource"));
            }
            ComponentDefinedType::Future { .. } | ComponentDefinedType::Stream { .. } => {
                return Err(Unmapped::Kind("has a future or a stream"));
            }
            ComponentDefinedType::Map { .. } | ComponentDefinedType::FixedLengthList { .. } => {
                return Err(Unmapped::Kind("has a map or a list of fixed length"));
            }
        })
    }

    /// A choice of cases: those without a value are strings, the others objects with one field.
    fn cases<'c>(
        &mut self,
        cases: impl Iterator<Item = (&'c str, Option<ComponentValType>)>,
        levels: usize,
    ) -> Result<Shape, Unmapped> {
        let (mut words, mut options) = (Vec::new(), Vec::new());
        for (name, ty) in cases {
            match ty {
                None => words.push(word(name.to_owned())),
                Some(ty) => {
                    let field = Field { required: true, ..self.field(name, ty, levels)? };
                    options.push(Shape::Record { fields: vec![field], strict: true }.into());
                }
            }
        }
        if !words.is_empty() {
            options.insert(0, Shape::Words { words, open: false }.into());
        }
        Ok(match <[Schema; 1]>::try_from(options) {
            Ok([only]) => only.shape,
            Err(options) => Shape::OneOf { options, open: false },
        })
    }
}

/// What a function returns: a value, and the error in its place if it can fail.
struct Returned {
    ok: Option<ComponentValType>,
    error: Option<Option<ComponentValType>>,
}

fn primitive_of(primitive: PrimitiveValType) -> Result<Schema, Unmapped> {
    let integer =
        |format: &str| Shape::Integer { minimum: None, maximum: None, format: Some(format.to_owned()) };
    // Numbers beyond what every reader of JSON keeps are strings.
    let long = |minimum: i64, format: &str| {
        let safe = Shape::Integer { minimum: Some(minimum.into()), maximum: Some(SAFE.into()), format: None };
        Shape::OneOf { options: vec![safe.into(), text(Some(format), None).into()], open: false }
    };
    let float = |format: &str| {
        let words = NOT_FINITE.map(|(name, _)| word(name.to_owned())).into();
        let number = Shape::Number { minimum: None, maximum: None, format: Some(format.to_owned()) };
        let options = vec![number.into(), Shape::Words { words, open: false }.into()];
        Shape::OneOf { options, open: false }
    };
    Ok(match primitive {
        PrimitiveValType::Bool => Shape::Boolean,
        PrimitiveValType::S8 => integer("int8"),
        PrimitiveValType::U8 => integer("uint8"),
        PrimitiveValType::S16 => integer("int16"),
        PrimitiveValType::U16 => integer("uint16"),
        PrimitiveValType::S32 => integer("int32"),
        PrimitiveValType::U32 => integer("uint32"),
        PrimitiveValType::S64 => long(-SAFE, "int64"),
        PrimitiveValType::U64 => long(0, "uint64"),
        PrimitiveValType::F32 => float("float"),
        PrimitiveValType::F64 => float("double"),
        PrimitiveValType::Char => text(None, Some(1)),
        PrimitiveValType::String => text(None, None),
        PrimitiveValType::ErrorContext => return Err(Unmapped::Kind("has an error context")),
    }
    .into())
}

fn text(format: Option<&str>, length: Option<u64>) -> Shape {
    Shape::String { format: format.map(ToOwned::to_owned), min_length: length, max_length: length }
}

fn list(items: Schema, unique: bool) -> Shape {
    Shape::List { items: Box::new(items), min: None, max: None, unique }
}

fn word(word: String) -> Word {
    Word { word, description: String::new() }
}

/// The name of a type in a description: `FileInfo` for `file-info`.
fn type_name(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    name.split('-').map(capital).collect()
}
