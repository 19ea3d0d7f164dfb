//! What Weir's engines do not have, and the scripts that need it.

use wasmtime::Config;

use self::Need::{
    Async, ErrorContext, Exceptions, FixedLengthLists, FunctionReferences, Gc, Implements, Map, Memory64,
    NewerRule, OtherWords, TestHost, Threads,
};

/// What a script needs and Weir's engines do not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// Asynchronous functions, streams, futures and threads of components.
    Async,
    /// The component model's `error-context`.
    ErrorContext,
    Exceptions,
    /// Lists whose length is part of the type.
    FixedLengthLists,
    FunctionReferences,
    Gc,
    /// Names of imports and exports that say which interface they implement.
    Implements,
    /// The component model's maps.
    Map,
    Memory64,
    /// A rule that this wasmtime does not have yet, about how many bytes a value has: it holds where lists
    /// of fixed length are, and those are off. Cannot be turned on.
    NewerRule,
    /// Nothing of the engine: wasmtime's parser says the same in other words.
    OtherWords,
    /// Nothing of the engine: the functions that `wasmtime-wast` offers to components. Some are concurrent,
    /// and the linker takes them only with `Config::concurrency_support`.
    TestHost,
    Threads,
}

/// Each script that needs any of that, and what.
pub(crate) const NEEDS: [(&str, &[Need]); 27] = [
    ("component-model/binary/binary.wast", &[Async, FixedLengthLists, Gc, Implements, Map]),
    ("component-model/linking/tags.wast", &[Exceptions]),
    ("component-model/validation/attributes.wast", &[Implements, OtherWords]),
    ("component-model/validation/indicies.wast", &[Async]),
    ("component-model/validation/instantiation.wast", &[Threads]),
    ("component-model/validation/max-value-size.wast", &[Async, FixedLengthLists, Map, NewerRule]),
    ("component-model/values/concat.wast", &[Map]),
    ("component-model/values/post-return.wast", &[Async]),
    ("component-model/values/variants.wast", &[Async]),
    ("wasmtime/adapter.wast", &[TestHost]),
    ("wasmtime/alias-region-known-imported-entities.wast", &[Gc]),
    ("wasmtime/alias-region-multiple-instantiations.wast", &[Gc]),
    ("wasmtime/alias-region-reexported-ambiguous-entities.wast", &[Gc]),
    ("wasmtime/alias-region-reexported-entities-to-imported-module.wast", &[Gc, TestHost]),
    ("wasmtime/alias-region-reexported-known-entities.wast", &[Gc]),
    ("wasmtime/error-context-trap-in-post-return.wast", &[ErrorContext]),
    ("wasmtime/exceptions.wast", &[Exceptions, FunctionReferences]),
    ("wasmtime/fixed_length_lists.wast", &[FixedLengthLists]),
    ("wasmtime/implements.wast", &[Implements]),
    ("wasmtime/import.wast", &[TestHost]),
    ("wasmtime/instance.wast", &[TestHost]),
    ("wasmtime/map-types.wast", &[Map]),
    ("wasmtime/memory64.wast", &[Memory64]),
    ("wasmtime/modules.wast", &[Exceptions]),
    ("wasmtime/nested.wast", &[TestHost]),
    ("wasmtime/resources.wast", &[TestHost]),
    ("wasmtime/tags.wast", &[Exceptions]),
];

impl Need {
    /// What is said where it is missing: one of these.
    pub(crate) fn says(self) -> &'static [&'static str] {
        match self {
            Async => &["requires the component model async feature"],
            ErrorContext => &["requires the component model error-context feature"],
            Exceptions => &["exceptions proposal not enabled"],
            FixedLengthLists => &["require the component model fixed-length lists feature"],
            FunctionReferences => &["function references required for"],
            Gc => &["heap types not supported without the gc feature", "gc proposal must be enabled"],
            Implements => &["the `cm-implements` feature is not active"],
            Map => &["Maps require the component model map feature"],
            Memory64 => &["memory64 must be enabled for 64-bit memories"],
            NewerRule => &["expected module to fail to build"],
            OtherWords => &[r#"expected "unexpected token", got "duplicate `implements` attribute"#],
            TestHost => &[
                "component imports function `host-return-two`",
                "component imports instance `host`",
                // Where the script imports that function as what it is not: what is not there fits.
                "expected module to fail to link",
            ],
            Threads => &["threads must be enabled for shared memories"],
        }
    }

    /// Turns on what there is of it in the configuration.
    pub(crate) fn turn_on(self, config: &mut Config) {
        match self {
            Async => config
                .concurrency_support(true)
                .wasm_component_model_async(true)
                .wasm_component_model_async_stackful(true)
                .wasm_component_model_more_async_builtins(true)
                .wasm_component_model_threading(true),
            ErrorContext => config
                .concurrency_support(true)
                .wasm_component_model_async(false)
                .wasm_component_model_error_context(true),
            Exceptions => config.wasm_exceptions(true),
            FixedLengthLists => config.wasm_component_model_fixed_length_lists(true),
            FunctionReferences => config.wasm_function_references(true),
            Gc => config.wasm_gc(true).wasm_function_references(true),
            Implements => config.wasm_component_model_implements(true),
            Map => config.wasm_component_model_map(true),
            Memory64 => config.wasm_memory64(true).wasm_component_model_memory64(true),
            NewerRule | OtherWords => config,
            TestHost => config.concurrency_support(true).wasm_component_model_async(false),
            Threads => config.wasm_threads(true).shared_memory(true),
        };
    }
}
