//! Small, valid components that take hours, all memory or all room to compile.

/// Nested loops that carry all variables: the product takes time. 16 KB.
pub(crate) fn time() -> Vec<u8> {
    let (loops, variables) = (1000, 1000);
    let changes: String =
        (1..=variables).map(|v| format!("local.get {v} i64.const 1 i64.add local.set {v} ")).collect();
    component(&format!(
        "(func (param i32) (local {}) {} {changes} {})",
        "i64 ".repeat(variables),
        "loop ".repeat(loops),
        "local.get 0 br_if 0 end ".repeat(loops),
    ))
}

/// Calls with a thousand values, each in two bytes. Some gigabytes for 13 KB.
pub(crate) fn memory() -> Vec<u8> {
    calls(4000)
}

/// The same with fewer calls: megabytes of code for 5 KB.
pub(crate) fn code() -> Vec<u8> {
    calls(200)
}

fn calls(number: usize) -> Vec<u8> {
    let values = "i64 ".repeat(1000);
    let arguments: String = (0..1000).map(|v| format!("local.get {v} ")).collect();
    let calls = "call $again ".repeat(number);
    component(&format!("(func $again (param {values}) (result {values}) {arguments} {calls})"))
}

/// What a program exports. Without it, nothing is compiled.
pub(crate) const RUN: &str = "(instance $run) (export \"wasi:cli/run@0.2.0\" (instance $run))";

fn component(function: &str) -> Vec<u8> {
    wat::parse_str(format!("(component (core module {function}) {RUN})")).unwrap()
}

/// Nested components, each read by all around it: 240 KB.
pub(crate) fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(HEADER.to_vec(), |inner, _| [HEADER, &[4], &length(inner.len()), &inner].concat())
}

pub(crate) fn deep_types(depth: usize) -> Vec<u8> {
    let options = (0..depth).flat_map(|inner| [vec![0x6b], index(inner)].concat());
    let types: Vec<u8> = length(depth + 1).into_iter().chain([0x7d]).chain(options).collect();
    let name = b"wasi:cli/run@0.2.0";
    let instance = [5, 3, 1, 1, 0];
    let export = [&[1, 0], &*length(name.len()), name, &[5, 0, 0]].concat();
    [HEADER, &[7], &length(types.len()), &types, &instance, &[11], &length(export.len()), &export].concat()
}

const HEADER: &[u8] = b"\0asm\x0d\0\x01\0";

/// Unsigned LEB128.
fn length(number: usize) -> Vec<u8> {
    leb128(number, 0x80)
}

/// Signed LEB128.
fn index(number: usize) -> Vec<u8> {
    leb128(number, 0x40)
}

fn leb128(mut number: usize, end: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= end {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}

/// Names, which take Main many times their 7 bytes in the file.
pub(crate) fn names(number: usize) -> Vec<u8> {
    let exports: String = (0..number).map(|name| format!("(export \"{name:04x}\" (func 0))")).collect();
    component(&format!("(func) {exports}"))
}
