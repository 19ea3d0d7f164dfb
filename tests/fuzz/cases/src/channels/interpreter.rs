//! An extension that runs its requests: each payload is a program, a list of calls.
//!
//! A call is the number of an import, then its arguments. An argument is one byte below `0xe0`, for that
//! number (a handle, a length, or the address of a word), or one of the forms of `$argument`.

use std::fmt::Write;

use wit_parser::{
    Function, ResourceIntrinsic, TypeDefKind, WasmImport, WorldItem, WorldKey,
    abi::{AbiVariant, WasmType},
};

use crate::world::{self, MANGLING};

/// Packages with imports that can be called. Of WASI, only pollables.
const CALLED: [&str; 3] = ["weir:iec/", "wasi:io/poll", "wasi:clocks/monotonic-clock"];

pub(super) fn component() -> Vec<u8> {
    let mut imports = Imports::default();
    imports.gather();
    let Imports { declared, wrapped, count } = imports;
    let names: String = (0..count).fold(String::new(), |names, number| names + &format!(" $call{number}"));
    let text = include_str!("interpreter.wat")
        .replace(";; IMPORTS", &declared)
        .replace(";; CALLS", &wrapped)
        .replace("$CALLED", &names)
        .replace("$COUNT", &(count + 1).to_string());
    world::component_of(&text)
}

/// Imports as text, and for each a function that takes its arguments from the program.
#[derive(Default)]
struct Imports {
    declared: String,
    wrapped: String,
    count: usize,
}

impl Imports {
    fn gather(&mut self) {
        let (resolve, world) = world::extension();
        for (key, item) in &resolve.worlds[world].imports {
            let WorldItem::Interface { id, .. } = item else { continue };
            let interface = &resolve.interfaces[*id];
            if !CALLED.iter().any(|called| resolve.name_world_key(key).starts_with(called)) {
                continue;
            }
            for function in interface.functions.values() {
                self.function(key, function);
            }
            for resource in interface.types.values() {
                if matches!(resolve.types[*resource].kind, TypeDefKind::Resource) {
                    let intrinsic = ResourceIntrinsic::ImportedDrop;
                    let import = WasmImport::ResourceIntrinsic {
                        interface: Some(key),
                        resource: *resource,
                        intrinsic,
                    };
                    self.import(import, &[WasmType::I32], &[], false);
                }
            }
        }
    }

    fn function(&mut self, key: &WorldKey, func: &Function) {
        let signature = world::extension().0.wasm_signature(AbiVariant::GuestImport, func);
        let import = WasmImport::Func { interface: Some(key), func };
        self.import(import, &signature.params, &signature.results, signature.retptr);
    }

    fn import(
        &mut self,
        import: WasmImport<'_>,
        params: &[WasmType],
        results: &[WasmType],
        has_result_pointer: bool,
    ) {
        let number = self.count;
        self.count += 1;
        let (module, name) = world::extension().0.wasm_import_name(MANGLING, import);
        let types = |types: &[WasmType]| types.iter().map(|ty| format!(" {}", text(*ty))).collect::<String>();
        writeln!(
            self.declared,
            "(import {module:?} {name:?} (func $import{number} (param{}) (result{})))",
            types(params),
            types(results)
        )
        .unwrap();

        let mut arguments: Vec<String> = params.iter().map(|ty| argument(text(*ty))).collect();
        if has_result_pointer {
            arguments.pop();
            arguments.push("(global.get $result)".to_owned());
        }
        let call = format!("(call $import{number} {})", arguments.join(" "));
        let kept = match results {
            [] => call,
            [ty] => format!("({}.store (global.get $result) {call})", text(*ty)),
            _ => panic!("`{name}` has several results"),
        };
        writeln!(self.wrapped, "(func $call{number} {kept})").unwrap();
    }
}

fn argument(ty: &str) -> String {
    match ty {
        "i64" => "(call $argument)".to_owned(),
        "i32" => "(i32.wrap_i64 (call $argument))".to_owned(),
        "f32" => "(f32.convert_i64_s (call $argument))".to_owned(),
        _ => "(f64.convert_i64_s (call $argument))".to_owned(),
    }
}

fn text(ty: WasmType) -> &'static str {
    match ty {
        WasmType::I32 | WasmType::Pointer | WasmType::Length => "i32",
        WasmType::I64 | WasmType::PointerOrI64 => "i64",
        WasmType::F32 => "f32",
        WasmType::F64 => "f64",
    }
}
