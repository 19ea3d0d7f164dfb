//! Memory, tables and instances: their sums are capped.

use weir_host::{config::Limits, control::ExtensionState};

use super::{
    crafted::{Crafted, component, program},
    stage::{Fault, Stage},
    support::reached,
};

const MIB: u64 = 1 << 20;

/// Case 5: in the smallest steps, to the last page, and the guest goes on.
#[tokio::test]
async fn growth_beyond_the_cap_fails_in_the_guest_which_goes_on() {
    let crafted = Crafted::new();
    // Grows page by page; succeeds if it got exactly its pages.
    let grow = |pages: u32| {
        program(&format!(
            r#"(memory 1) (func (export "run") (result i32)
                (loop (br_if 0 (i32.ne (memory.grow (i32.const 1)) (i32.const -1))))
                ;; A step that would go round, and one of nothing.
                (if (i32.ne (memory.grow (i32.const -1)) (i32.const -1)) (then unreachable))
                (if (i32.ne (memory.grow (i32.const 0)) (i32.const {pages})) (then unreachable))
                ;; The last byte is there.
                (i32.store8 (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1)) (i32.const 1))
                (i32.ne (memory.size) (i32.const {pages})))"#
        ))
    };
    let mut exact = crafted.extension("exact", &grow(64));
    exact.limits.memory = 4 * MIB;
    let mut uneven = crafted.extension("uneven", &grow(63));
    uneven.limits.memory = 4 * MIB - 1;
    let mut large = crafted.extension("large", &grow(16384));
    large.limits = Limits::max();
    large.limits.memory = 1 << 30;
    let stage = Stage::start(vec![exact, uneven, large]).await;
    for id in ["exact", "uneven", "large"] {
        stage.finished(id).await;
    }
    stage.stands().await;
}

/// Case 6: as declared.
#[tokio::test]
async fn the_cap_is_on_the_sum_of_all_memories() {
    let crafted = Crafted::new();
    let memories = |count: usize, pages: u32| format!("(memory {pages})").repeat(count);
    let run = r#"(func (export "run") (result i32) i32.const 0)"#;
    let declare = |id: &str, memories: String, cap| {
        let mut extension = crafted.extension(id, &program(&format!("{memories} {run}")));
        extension.limits.memory = cap;
        extension
    };
    let stage = Stage::start(vec![
        declare("hundred", memories(100, 256), 64 * MIB),
        declare("over", memories(50, 16), 50 * MIB - 1),
        declare("at", memories(50, 16), 50 * MIB),
        declare("one-more", format!("{}(memory 1)", memories(50, 16)), 50 * MIB),
    ])
    .await;
    for (id, cause, limit) in [
        // The fifth is one too many.
        ("hundred", "memory minimum size of 256 pages exceeds memory limits", ("memory", 80 * MIB, 64 * MIB)),
        ("over", "memory minimum size of 16 pages exceeds memory limits", ("memory", 50 * MIB, 50 * MIB - 1)),
        (
            "one-more",
            "memory minimum size of 1 pages exceeds memory limits",
            ("memory", 50 * MIB + 65_536, 50 * MIB),
        ),
    ] {
        assert_refused(&stage, id, cause, limit).await;
    }
    stage.finished("at").await;
}

/// Case 6: by growth, across instances.
#[tokio::test]
async fn the_cap_is_on_the_sum_of_all_memories_that_grow() {
    let crafted = Crafted::new();
    let module = r#"(core module $part (memory (export "m") 0)
        (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))"#;
    let instances: String = (0..40).map(|n| format!("(core instance $p{n} (instantiate $part))")).collect();
    let imports: String =
        (0..40).map(|n| format!(r#"(import "p{n}" "grow" (func $g{n} (param i32) (result i32)))"#)).collect();
    // 1 MiB each; only the first 16 get it.
    let grows: String = (0..40)
        .map(|n| {
            let expected = if n < 16 { 0 } else { -1 };
            format!("(if (i32.ne (call $g{n} (i32.const 16)) (i32.const {expected})) (then unreachable))")
        })
        .collect();
    let with: String = (0..40).map(|n| format!(r#"(with "p{n}" (instance $p{n}))"#)).collect();
    let text = component(
        "",
        &format!(
            r#"{module} {instances}
            (core module $main {imports} (func (export "run") (result i32) {grows} i32.const 0))
            (core instance $main (instantiate $main {with}))"#
        ),
    );
    let mut parts = crafted.extension("parts", &text);
    parts.limits.memory = 16 * MIB;
    let stage = Stage::start(vec![parts]).await;
    stage.finished("parts").await;
    assert_eq!(stage.status("parts").memory, 0, "given back");
}

/// Case 7.
#[tokio::test]
async fn tables_grow_to_their_cap_and_larger_ones_are_refused() {
    let crafted = Crafted::new();
    let run = r#"(func (export "run") (result i32) i32.const 0)"#;
    let grows = r#"(table $a 0 funcref) (table $b 0 externref) (func (export "run") (result i32)
        (if (i32.ne (table.grow $a (ref.null func) (i32.const 200000)) (i32.const 0)) (then unreachable))
        (if (i32.ne (table.grow $b (ref.null extern) (i32.const 62145)) (i32.const -1)) (then unreachable))
        (if (i32.ne (table.grow $b (ref.null extern) (i32.const 62144)) (i32.const 0)) (then unreachable))
        (if (i32.ne (table.grow $a (ref.null func) (i32.const -1)) (i32.const -1)) (then unreachable))
        (i32.ne (table.grow $a (ref.null func) (i32.const 1)) (i32.const -1)))"#;
    let stage = Stage::start(vec![
        crafted.extension("grows", &program(grows)),
        crafted.extension("largest", &program(&format!("(table 4294967295 funcref) {run}"))),
        crafted.extension("over", &program(&format!("(table 262145 funcref) {run}"))),
        crafted.extension("at", &program(&format!("(table 262144 funcref) {run}"))),
        crafted.extension("many", &program(&format!("{} {run}", "(table 0 funcref)".repeat(65)))),
        crafted.extension("astronomic", &program(&format!("(table i64 1152921504606846976 funcref) {run}"))),
        crafted.extension("wide", &program(&format!("(table i64 1 funcref) {run}"))),
    ])
    .await;
    stage.finished("grows").await;
    stage.finished("at").await;
    for (id, cause, limit) in [
        (
            "largest",
            "table minimum size of 4294967295 elements exceeds table limits",
            ("table-elements", u64::from(u32::MAX), 262_144),
        ),
        (
            "over",
            "table minimum size of 262145 elements exceeds table limits",
            ("table-elements", 262_145, 262_144),
        ),
        ("many", "resource limit exceeded: table count too high at 65", ("tables", 65, 64)),
    ] {
        assert_refused(&stage, id, cause, limit).await;
    }
    for id in ["astronomic", "wide"] {
        let refused = reached(&stage.main, id, ExtensionState::Failed).await.unwrap();
        assert!(refused.contains("it uses `memory64` of WebAssembly, off by default"), "{refused}");
    }
}

/// Case 10: instances inside one component.
#[tokio::test]
async fn core_instances_are_counted() {
    let crafted = Crafted::new();
    let many = |count: usize| {
        let instances = "(core instance (instantiate $m))".repeat(count);
        component(
            "",
            &format!(
                r#"(core module $m (func (export "run") (result i32) i32.const 0)) {instances} (core instance $main (instantiate $m))"#
            ),
        )
    };
    let stage = Stage::start(vec![
        crafted.extension("enough", &many(127)),
        crafted.extension("too-many", &many(128)),
        crafted.extension("far-too-many", &many(900)),
    ])
    .await;
    stage.finished("enough").await;
    for id in ["too-many", "far-too-many"] {
        let cause = "resource limit exceeded: instance count too high at 129";
        assert_refused(&stage, id, cause, ("instances", 129, 128)).await;
    }
}

/// Expects no start, and the limit in the record.
async fn assert_refused(stage: &Stage, id: &str, why: &str, (name, used, allowed): (&str, u64, u64)) {
    let cause = format!("cannot start: cannot be instantiated: {why}");
    stage.failed(id, &Fault::new(&cause).limit(name, used, allowed)).await;
}
