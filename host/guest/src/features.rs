//! What a component uses of WebAssembly beyond what all components may, found by validating it.

use wasmparser::{
    Element, ElementItems, ElementKind, FunctionBody, Operator, Parser, Payload, Validator, WasmFeatures,
};
use weir_config::{Feature, Features, extend::kind::Words};

use super::fit::OF_WASI_0_3;

/// What the engines of Weir have off unless a class turns it on, and what they never have.
const OFF: WasmFeatures = WasmFeatures::EXCEPTIONS
    .union(WasmFeatures::GC)
    .union(WasmFeatures::FUNCTION_REFERENCES)
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::RELAXED_SIMD)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::THREADS)
    .union(WasmFeatures::CM_ASYNC);

/// What no class turns on, and the text for a component that uses it.
const NEVER: [(WasmFeatures, &str); 4] = [
    (
        WasmFeatures::CM_ASYNC
            .union(WasmFeatures::CM_ASYNC_STACKFUL)
            .union(WasmFeatures::CM_MORE_ASYNC_BUILTINS)
            .union(WasmFeatures::CM_ERROR_CONTEXT),
        OF_WASI_0_3,
    ),
    (
        WasmFeatures::LEGACY_EXCEPTIONS,
        "it uses exceptions from before WebAssembly 3.0: `wasm-opt --translate-to-exnref` of Binaryen rewrites them in its \
         module, for a class with `features = [\"exceptions\"]`",
    ),
    (
        WasmFeatures::THREADS,
        "it uses shared memories (threads), which Weir does not have: build it for one thread",
    ),
    (
        WasmFeatures::CUSTOM_PAGE_SIZES,
        "it uses memories with pages of another size, which Weir does not have",
    ),
];

/// What a component uses beyond what all may.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    /// What a class can allow.
    pub(crate) features: Features,
    /// Why no class can allow it.
    pub(crate) never: Option<&'static str>,
}

impl Uses {
    /// What the component uses. Nothing, if it is not valid with anything that is known here: the compiler says what is wrong
    /// with it.
    pub(crate) fn of(component: &[u8]) -> Self {
        let all = || Feature::ALL.iter().map(|(_, feature)| *feature);
        let base = WasmFeatures::default().difference(OFF);
        let is_valid = |features| Validator::new_with_features(features).validate_all(component).is_ok();
        if is_valid(base) {
            return Self::default();
        }
        let with_all = all().fold(base, |set, feature| set | flags(feature));
        let with_never = NEVER.iter().fold(with_all, |set, (flags, _)| set | *flags);
        let is_needed = |whole: WasmFeatures, part| !is_valid(whole.difference(part));
        let whole = match is_valid(with_all) {
            true => with_all,
            false if is_valid(with_never) => with_never,
            false => return Self::default(),
        };
        let features: Features = all().filter(|feature| is_needed(whole, flags(*feature))).collect();
        if let Some(why) = in_one_piece(component, features) {
            return Self { features, never: Some(why) };
        }
        let never = NEVER.into_iter().find(|(flags, _)| whole.contains(*flags) && is_needed(whole, *flags));
        Self { features, never: never.map(|(_, why)| why) }
    }

    /// Why the component cannot run where these features are on.
    pub(crate) fn misfit(&self, allowed: Features) -> Option<String> {
        let missing = self.features.without(allowed);
        self.never.map(ToOwned::to_owned).or_else(|| {
            (!missing.is_empty()).then(|| {
                format!(
                    "it uses {} of WebAssembly, off by default: `features = [{}]` in its class, or in its `limits`, turns that \
                     on, and `--feature` of a command",
                    list(missing.words(), |word| format!("`{word}`"), " and "),
                    list(allowed.with(missing).words(), |word| format!("\"{word}\""), ", ")
                )
            })
        })
    }
}

/// The most clauses of `try_table` around one place in a function. A `throw` looks at those of each function that is
/// running, without a pause.
const MAX_HANDLERS: usize = 64;

const MANY_HANDLERS: &str = "it has a function with more than 64 handlers of exceptions around one place, and a `throw` looks \
                             at all of them: split the function";

/// The most functions in a segment of which an array of objects can be made, with a call of the host for each and without a
/// pause.
const MAX_SEGMENT: u32 = 16_384;

const LARGE_SEGMENT: &str = "it has a segment of more than 16384 elements for arrays: split the segment";

/// Why a component with these features is refused: the host would work too long for it in one piece.
fn in_one_piece(component: &[u8], features: Features) -> Option<&'static str> {
    Parser::new(0).parse_all(component).map_while(Result::ok).find_map(|payload| match payload {
        Payload::CodeSectionEntry(body) if features.has(Feature::Exceptions) => {
            has_too_many_handlers(&body).then_some(MANY_HANDLERS)
        }
        Payload::ElementSection(segments) if features.has(Feature::Gc) => {
            let is_large = |segment: Element<'_>| {
                let items = match segment.items {
                    ElementItems::Functions(items) => items.count(),
                    ElementItems::Expressions(_, items) => items.count(),
                };
                matches!(segment.kind, ElementKind::Passive) && items > MAX_SEGMENT
            };
            segments.into_iter().map_while(Result::ok).any(is_large).then_some(LARGE_SEGMENT)
        }
        _ => None,
    })
}

fn has_too_many_handlers(body: &FunctionBody<'_>) -> bool {
    let Ok(operators) = body.get_operators_reader() else { return false };
    // The handlers of each block that is open.
    let (mut open, mut handlers) = (Vec::new(), 0_usize);
    operators.into_iter().map_while(Result::ok).any(|operator| {
        match operator {
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => open.push(0),
            Operator::TryTable { try_table } => {
                open.push(try_table.catches.len());
                handlers = handlers.saturating_add(try_table.catches.len());
            }
            Operator::End => handlers = handlers.saturating_sub(open.pop().unwrap_or_default()),
            _ => {}
        }
        handlers > MAX_HANDLERS
    })
}

fn list(words: impl Iterator<Item = &'static str>, show: fn(&str) -> String, between: &str) -> String {
    words.map(show).collect::<Vec<_>>().join(between)
}

/// The parts of WebAssembly that a feature turns on.
fn flags(feature: Feature) -> WasmFeatures {
    match feature {
        Feature::Exceptions => WasmFeatures::EXCEPTIONS,
        Feature::Gc => WasmFeatures::GC | WasmFeatures::FUNCTION_REFERENCES,
        Feature::TailCalls => WasmFeatures::TAIL_CALL,
        Feature::RelaxedSimd => WasmFeatures::RELAXED_SIMD,
        Feature::Memory64 => WasmFeatures::MEMORY64,
    }
}
