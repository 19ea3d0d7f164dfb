//! Places of the private memory of an idle extension, and of Main with 7 extensions.

use procfs_core::process::{MMPermissions, MMapPath, MemoryMap};
use weir_host::config::Limits;

use super::{NAME, Seen};
use crate::{
    figure::{Figure, Unit},
    process::Memory,
};

const PAGE: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    LinearMemory,
    Stack,
    Heap,
    Code,
    Files,
}

const PARTS: [(Part, &str); 5] = [
    (Part::LinearMemory, "linear memory"),
    (Part::Stack, "stack"),
    (Part::Heap, "heap"),
    (Part::Code, "compiled code"),
    (Part::Files, "program and libraries"),
];

/// Each part's size for one more extension, and for Main with 7 extensions. A round saw Main with 7, with `few` and
/// with `many`.
pub(super) fn figures(rounds: &[[Seen; 3]], few: u32, many: u32) -> Vec<Figure> {
    let figure = |(part, name): (Part, &str)| {
        let each = |[_, with_few, with_many]: &[Seen; 3]| {
            let [few_have, many_have] = [with_few, with_many].map(|seen| private(&seen.mappings, part));
            let each = (many_have - few_have) / f64::from(many - few);
            // Pages of a file come and go: a process with more extensions may have fewer.
            if part == Part::Files { each.max(0.0) } else { each }
        };
        let each: Vec<_> = rounds.iter().map(each).collect();
        Figure::of_rounds(NAME, format!("from {few} to {many} idle"), name, Unit::Kibibytes, &each)
    };
    let of_seven = |(part, name): (Part, &str)| {
        let mebibytes: Vec<_> =
            rounds.iter().map(|[seven, ..]| private(&seven.mappings, part) / 1024.0).collect();
        Figure::of_rounds(NAME, "7 extensions", name, Unit::Mebibytes, &mebibytes)
    };
    PARTS.into_iter().map(figure).chain(PARTS.into_iter().map(of_seven)).collect()
}

fn private(mappings: &[MemoryMap], part: Part) -> f64 {
    let of_part = mappings.iter().zip(parts(mappings)).filter(|(_, of)| *of == part);
    Memory::of(of_part.map(|(mapping, _)| mapping)).private()
}

/// The part that each mapping belongs to. A linear memory is an image and the writable mappings next to it. A stack
/// follows one inaccessible page, and is at least as large as in the smallest class.
fn parts(mappings: &[MemoryMap]) -> Vec<Part> {
    let adjoin = |one: &MemoryMap, next: &MemoryMap| one.address.1 == next.address.0;
    let runs = mappings.chunk_by(|one, next| adjoin(one, next) && is_writable(one) && is_writable(next));
    let smallest = Limits::min().stack + Limits::min().fixed().host_stack;
    let mut before: Option<&MemoryMap> = None;
    let mut parts = Vec::new();
    for run in runs {
        let is_memory = run.iter().any(|mapping| is_file(mapping, "/memfd:wasm"));
        let is_stack = run.first().zip(before).is_some_and(|(first, guard)| {
            let is_guard = guard.perms == MMPermissions::PRIVATE && bytes(guard) == PAGE;
            adjoin(guard, first) && is_guard && bytes(first) >= smallest
        });
        parts.extend(run.iter().enumerate().map(|(place, mapping)| match mapping {
            _ if is_memory => Part::LinearMemory,
            mapping if is_file(mapping, "/") => Part::Files,
            mapping if !is_writable(mapping) => Part::Code,
            _ if is_stack && place == 0 => Part::Stack,
            _ => Part::Heap,
        }));
        before = run.last();
    }
    parts
}

fn bytes(mapping: &MemoryMap) -> u64 {
    mapping.address.1 - mapping.address.0
}

fn is_writable(mapping: &MemoryMap) -> bool {
    mapping.perms.contains(MMPermissions::READ | MMPermissions::WRITE)
}

fn is_file(mapping: &MemoryMap, beginning: &str) -> bool {
    matches!(&mapping.pathname, MMapPath::Path(path) if path.to_string_lossy().starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;
    use procfs_core::{FromRead, process::MemoryMaps};

    #[test]
    fn a_memory_is_told_from_a_stack_and_from_the_heap() {
        let mapping = |(pages, permissions, name): (std::ops::Range<u64>, &str, &str)| {
            let [start, end] = [pages.start, pages.end].map(|page| page * PAGE);
            format!("{start:x}-{end:x} {permissions} 0 00:00 0 {name}\nPrivate_Dirty: 4 kB\n")
        };
        let smaps = [
            (0..9, "r-xp", "/usr/bin/a"),
            (9..10, "rw-p", "[heap]"),
            (20..90, "---p", ""),
            (90..91, "rw-p", ""),
            (91..92, "rw-p", "/memfd:wasm-memory-image"),
            (92..93, "rw-p", ""),
            (93..99, "---p", ""),
            (99..100, "---p", ""),
            (100..484, "rw-p", ""),
            (484..485, "rw-p", ""),
            (485..486, "r-xp", ""),
            (500..501, "rw-p", ""),
        ];
        let smaps = smaps.map(mapping).concat();
        let mappings = MemoryMaps::from_read(smaps.as_bytes()).unwrap().0;
        use Part::{Code, Files, Heap, LinearMemory, Stack};
        let expected = [
            Files,
            Heap,
            Code,
            LinearMemory,
            LinearMemory,
            LinearMemory,
            Code,
            Code,
            Stack,
            Heap,
            Code,
            Heap,
        ];
        assert_eq!(parts(&mappings), expected);
        assert_eq!(PARTS.map(|(part, _)| private(&mappings, part)), [12.0, 4.0, 12.0, 16.0, 4.0]);
    }
}
