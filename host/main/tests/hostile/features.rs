//! Parts of WebAssembly that a class turns on: off, each is refused by its name; on, every bound holds.

use weir_host::{
    ExtensionConfig,
    config::{Feature, Features, Limits},
    control::ExtensionState,
};

use super::{
    crafted::{Crafted, program, text},
    stage::{Fault, Stage},
    support::reached,
    turns::Waits,
    uninterrupted::{run, used_up},
};

const MIB: u64 = 1 << 20;

const ALL: [Feature; 5] =
    [Feature::Exceptions, Feature::Gc, Feature::TailCalls, Feature::RelaxedSimd, Feature::Memory64];

/// A module that uses only this.
fn sample(feature: Feature) -> &'static str {
    match feature {
        Feature::Exceptions => {
            r#"(tag $t (param i32)) (func (export "run") (result i32)
                (block $caught (result i32)
                    (try_table (result i32) (catch $t $caught) (throw $t (i32.const 0)))))"#
        }
        Feature::Gc => {
            r#"(type $p (struct (field i32)))
            (func (export "run") (result i32) (struct.get $p 0 (struct.new $p (i32.const 0))))"#
        }
        Feature::TailCalls => {
            r#"(func $zero (result i32) (i32.const 0)) (func (export "run") (result i32) (return_call $zero))"#
        }
        Feature::RelaxedSimd => {
            r#"(func (export "run") (result i32)
                (i32x4.extract_lane 0 (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0))))"#
        }
        Feature::Memory64 => r#"(memory i64 1) (func (export "run") (result i32) (i32.load (i64.const 8)))"#,
    }
}

/// A program of this module, with these features.
fn with(crafted: &Crafted, id: &str, module: &str, features: &[Feature]) -> ExtensionConfig {
    let mut extension = crafted.extension(id, &program(module));
    extension.limits.features = features.iter().copied().collect();
    extension
}

fn name(feature: Feature) -> String {
    [feature].into_iter().collect::<Features>().words().collect()
}

#[tokio::test]
async fn each_part_is_refused_by_its_name_unless_its_class_turns_it_on() {
    let crafted = Crafted::new();
    for feature in ALL {
        let others: Vec<_> = ALL.into_iter().filter(|other| *other != feature).collect();
        let stage = Stage::start(vec![
            with(&crafted, "on", sample(feature), &[feature]),
            with(&crafted, "all", sample(feature), &ALL),
            with(&crafted, "off", sample(feature), &[]),
            with(&crafted, "others", sample(feature), &others),
        ])
        .await;
        stage.finished("on").await;
        stage.finished("all").await;
        let name = name(feature);
        for id in ["off", "others"] {
            let reason = reached(&stage.main, id, ExtensionState::Failed).await.unwrap();
            let told = format!("it uses `{name}` of WebAssembly, off by default: `features = [");
            assert!(reason.contains(&told), "{reason}");
            // What the class has is in the list, too.
            let listed = if id == "off" { vec![feature] } else { ALL.to_vec() };
            let listed = listed.into_iter().map(|feature| format!("\"{}\"", self::name(feature)));
            let listed = listed.collect::<Vec<_>>().join(", ");
            assert!(reason.contains(&format!("features = [{listed}]` in its class")), "{reason}");
        }
    }
}

/// Objects count as memory: the heap grows to the limit, and no further.
#[tokio::test]
async fn objects_that_are_held_end_at_the_limit_of_memory() {
    let crafted = Crafted::new();
    let list = r#"(type $list (struct (field (ref null $list)) (field i64)))
        (func (export "run") (result i32) (local $all (ref null $list))
            (loop (local.set $all (struct.new $list (local.get $all) (i64.const 1))) (br 0)) (i32.const 0))"#;
    let array = r#"(type $bytes (array (mut i8)))
        (func (export "run") (result i32) (drop (array.new $bytes (i32.const 1) (i32.const 500000000))) (i32.const 0))"#;
    let exceptions = r#"(tag $t (param exnref)) (func (export "run") (result i32) (local $last exnref)
        (loop $again
            (block $caught (result exnref exnref)
                (try_table (catch_ref $t $caught) (throw $t (local.get $last))) unreachable)
            (local.set $last) (drop) (br $again)) (i32.const 0))"#;
    for (id, module, features) in [
        ("list", list, &[Feature::Gc][..]),
        ("array", array, &[Feature::Gc]),
        ("exceptions", exceptions, &[Feature::Exceptions]),
    ] {
        let mut extension = with(&crafted, id, module, features);
        extension.limits.memory = 4 * MIB;
        extension.limits.message_size = MIB;
        let stage = Stage::start(vec![extension]).await;
        let reason = reached(&stage.main, id, ExtensionState::Failed).await;
        let status = stage.status(id);
        assert_eq!(reason.as_deref(), Some("trapped: no room for another object"), "{id}");
        let limit = status.failures[0].limit.as_ref();
        assert_eq!(limit.map(|hit| (hit.name.as_str(), hit.allowed)), Some(("memory", 4 * MIB)), "{id}");
        assert_eq!(status.memory, 0, "given back");
        stage.stands().await;
    }
}

/// What is not held is collected: a hundred times the memory of the extension passes through it.
#[tokio::test]
async fn objects_that_are_let_go_make_room() {
    let crafted = Crafted::new();
    let garbage = r#"(type $bytes (array (mut i8)))
        (func (export "run") (result i32) (local $n i32) (local.set $n (i32.const 4000))
            (loop $again
                (drop (array.new $bytes (i32.const 1) (i32.const 100000)))
                (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                (br_if $again (local.get $n)))
            (i32.const 0))"#;
    let mut extension = with(&crafted, "garbage", garbage, &[Feature::Gc]);
    extension.limits.memory = 4 * MIB;
    let stage = Stage::start(vec![extension]).await;
    stage.finished("garbage").await;
    assert!(stage.status("garbage").memory == 0, "given back");
}

/// A collection costs fuel, and lets others run after each step, also where it frees next to nothing.
#[tokio::test]
async fn collections_without_end_are_paid_and_hold_up_nobody() {
    const FUEL: u64 = 50_000_000;
    let crafted = Crafted::new();
    let fields = "(field (mut v128))".repeat(100);
    for (kind, held) in [
        (
            "objects",
            r#"(local.set $n (i32.const 100000))
            (loop $more
                (local.set $all (struct.new $list (local.get $all) (i64.const 1)))
                (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                (br_if $more (local.get $n)))"#,
        ),
        ("one array", "(local.set $large (array.new_default $bytes (i32.const 3500000)))"),
    ] {
        // Objects of 1600 bytes that are let go. By themselves they take a tenth of the fuel.
        let module = format!(
            r#"(type $list (struct (field (ref null $list)) (field i64))) (type $bytes (array (mut i8)))
            (type $wide (struct {fields}))
            (func (export "run") (result i32)
                (local $all (ref null $list)) (local $large (ref null $bytes)) (local $n i32)
                {held}
                (local.set $n (i32.const 500000))
                (loop $again
                    (drop (struct.new_default $wide))
                    (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                    (br_if $again (local.get $n)))
                (drop (ref.is_null (local.get $large))) (drop (ref.is_null (local.get $all))) (i32.const 0))"#
        );
        let extension = with(&crafted, "collector", &module, &[Feature::Gc]);
        let (reason, cpu, waits) = run(extension, FUEL, Waits::are_of_single_pieces).await;
        assert_eq!(reason.as_deref(), Some(&*used_up(FUEL)), "{kind}: {cpu:?} {waits:?}");
        assert!(waits.are_of_single_pieces(), "{kind}: {cpu:?} {waits:?}");
    }
}

/// No instruction of these parts brings fuel back, or is free.
#[tokio::test]
async fn no_instruction_of_them_is_free() {
    const SOME: u64 = 10_000_000;
    let crafted = Crafted::new();
    let mut wrong = Vec::new();
    for operation in [
        "(drop (struct.new $p (i32.const 0)))",
        "(drop (array.new $a (i32.const 0) (i32.const 10)))",
        "(drop (array.new_data $a $d (i32.const 0) (i32.const 1)))",
        "(drop (array.new $a (i32.const 0) (i32.const 100000)))",
        "(array.copy $a $a (global.get $g) (i32.const 0) (global.get $g) (i32.const 0) (i32.const 1))",
        "(drop (ref.cast (ref $p) (ref.cast anyref (struct.new $p (i32.const 0)))))",
        "(drop (ref.cast (ref $super) (global.get $any)))",
        "(drop (array.new_elem $refs $e (i32.const 0) (i32.const 4)))",
        "(drop (ref.test (ref $super) (global.get $any)))",
        "(block $b (try_table (catch_all $b) (throw $t)))",
        "(block $b (try_table (catch_all $b) (call $deep (i32.const 100))))",
        "(drop (memory.grow $m (i64.const 0)))",
        "(drop (memory.grow $m (i64.const 0x1_0000_0000)))",
        "(drop (call $hop (i32.const 10)))",
    ] {
        let module = format!(
            r#"(type $p (struct (field i32))) (type $a (array (mut i32))) (tag $t) (memory $m i64 1) (data $d "four")
            (global $g (ref $a) (array.new_fixed $a 1 (i32.const 0)))
            (type $refs (array funcref)) (func $f) (elem $e func $f $f $f $f)
            (type $super (sub (struct (field i32)))) (type $sub (sub $super (struct (field i32) (field i32))))
            (global $any anyref (struct.new $sub (i32.const 0) (i32.const 0)))
            (func $deep (param i32)
                (if (i32.eqz (local.get 0)) (then (throw $t)))
                (call $deep (i32.sub (local.get 0) (i32.const 1))))
            (func $hop (param i32) (result i32)
                (if (i32.eqz (local.get 0)) (then (return (i32.const 0))))
                (return_call $hop (i32.sub (local.get 0) (i32.const 1))))
            (func (export "run") (result i32) (loop {operation} (br 0)) (i32.const 0))"#
        );
        let extension = with(&crafted, "crafted", &module, &ALL);
        let (reason, cpu, waits) = run(extension, SOME, Waits::are_short).await;
        if reason.as_deref() != Some(&*used_up(SOME)) || !waits.are_short() {
            wrong.push(format!("{operation}: {reason:?} {cpu:?} {waits:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Handlers catch what the extension throws, and nothing of the host: no used-up limit, no trap.
#[tokio::test]
async fn no_handler_catches_a_limit_or_a_trap() {
    let crafted = Crafted::new();
    let caught = |body: &str| {
        format!(
            r#"(tag $t) (func $deep (call $deep)) (func (export "run") (result i32)
                (loop $again (block $caught (try_table (catch_all $caught) {body})) (br $again)) (i32.const 0))"#
        )
    };
    for (body, cause, limit) in [
        (
            "(loop (br 0))",
            "`fuel-to-start` of 10000000 used up",
            Some(("fuel-to-start", 10_000_000, 10_000_000)),
        ),
        ("(call $deep)", "trapped: call stack exhausted", Some(("stack", MIB, MIB))),
        ("unreachable", "trapped: wasm `unreachable` instruction executed", None),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "trapped: integer divide by zero", None),
    ] {
        let mut extension = with(&crafted, "crafted", &caught(body), &[Feature::Exceptions]);
        extension.limits.fuel_to_start = 10_000_000;
        let stage = Stage::start(vec![extension]).await;
        let fault = Fault::new(cause);
        let fault = limit.map_or(Fault::new(cause), |(name, used, allowed)| fault.limit(name, used, allowed));
        stage.failed("crafted", &fault).await;
    }
}

/// What nobody catches ends at the host: in the program itself, and in `cabi_realloc`, while the host waits for room.
#[tokio::test]
async fn an_exception_that_reaches_the_host_is_a_trap() {
    let crafted = Crafted::new();
    let thrown = r#"(tag $t) (func $thrower (export "run") (result i32) (throw $t))"#;
    let stage = Stage::start(vec![with(&crafted, "thrown", thrown, &[Feature::Exceptions])]).await;
    stage.failed("thrown", &Fault::new("trapped: an exception that nothing caught").within("thrower")).await;
    let at_start = r#"(tag $t) (func $thrower (throw $t)) (start $thrower) (func (export "run") (result i32) (i32.const 0))"#;
    let stage = Stage::start(vec![with(&crafted, "at-start", at_start, &[Feature::Exceptions])]).await;
    stage
        .failed("at-start", &Fault::new("trapped: an exception that nothing caught").within("thrower"))
        .await;
    for call in ["own-name", "subscribe"] {
        // Also where a handler stands around the import, whose result needs room.
        let (plain, caught) = (
            format!("(func ${call}-once (call"),
            format!("(func ${call}-once (block $b (try_table (catch_all $b) (call"),
        );
        for begin in [&plain, &caught] {
            let mut text = text("realloc.wat", &[("@BODY@", "(throw $t)"), ("@CALL@", call)]);
            text = text.replace("(memory (export", "(tag $t) (memory (export").replace(&plain, begin);
            if *begin == caught {
                let line = text.lines().find(|line| line.contains(&caught)).unwrap().to_owned();
                text = text.replace(&line, &format!("{line}))"));
            }
            let mut extension = crafted.extension("crafted", &text);
            extension.limits.features = [Feature::Exceptions].into_iter().collect();
            let stage = Stage::start(vec![extension]).await;
            stage.failed("crafted", &Fault::new("trapped: an exception that nothing caught")).await;
        }
    }
}

/// Memories of 64 bits are bounded as others are: what is declared over the limit is refused, and growth fails.
#[tokio::test]
async fn memories_of_64_bits_are_inside_the_limit() {
    let crafted = Crafted::new();
    let run = r#"(func (export "run") (result i32) (i32.const 0))"#;
    let grow = r#"(memory i64 1) (func (export "run") (result i32)
        (if (i64.ne (memory.grow (i64.const 0x10000)) (i64.const -1)) (then unreachable))
        (if (i64.ne (memory.grow (i64.const -1)) (i64.const -1)) (then unreachable))
        (if (i64.ne (memory.grow (i64.const 0xffffffffffff)) (i64.const -1)) (then unreachable))
        (if (i64.ne (memory.grow (i64.const 255)) (i64.const 1)) (then unreachable))
        (i64.store8 (i64.const 16777215) (i64.const 1))
        (i32.const 0))"#;
    let beyond = r#"(memory i64 1) (func (export "run") (result i32) (i32.load (i64.const 0x1_0000_0000)))"#;
    let stage = Stage::start(vec![
        with(&crafted, "large", &format!("(memory i64 131072) {run}"), &[Feature::Memory64]),
        with(&crafted, "grows", grow, &[Feature::Memory64]),
        with(&crafted, "beyond", beyond, &[Feature::Memory64]),
        with(
            &crafted,
            "tables",
            &format!("(table i64 0x1000_0000_0000_0000 funcref) {run}"),
            &[Feature::Memory64],
        ),
    ])
    .await;
    stage.finished("grows").await;
    stage.failed("beyond", &Fault::new("trapped: out of bounds memory access")).await;
    for (id, limit, used, allowed) in [
        ("large", "memory", 8 << 30, Limits::medium().memory),
        ("tables", "table-elements", 1 << 60, Limits::medium().fixed().table_elements),
    ] {
        let reason = reached(&stage.main, id, ExtensionState::Failed).await;
        let hit = stage.status(id).failures[0].limit.clone().unwrap();
        assert_eq!((hit.name.as_str(), hit.used, hit.allowed), (limit, used, allowed), "{reason:?}");
    }
}

/// Calls in place of a return take no stack, and fuel.
#[tokio::test]
async fn a_circle_of_tail_calls_is_ended_at_its_fuel() {
    const FUEL: u64 = 50_000_000;
    let crafted = Crafted::new();
    let circle = r#"(func $a (result i32) (return_call $b)) (func $b (result i32) (return_call $a))
        (func (export "run") (result i32) (call $a))"#;
    let extension = with(&crafted, "circle", circle, &[Feature::TailCalls]);
    let (reason, cpu, waits) = run(extension, FUEL, Waits::are_short).await;
    assert_eq!(reason.as_deref(), Some(&*used_up(FUEL)), "{cpu:?} {waits:?}");
    assert!(waits.are_short(), "{waits:?}");
}

/// An exception unwinds a whole stack, and looks at all handlers there, without a pause: others wait for one piece at most.
#[tokio::test]
async fn unwinding_a_deep_stack_again_and_again_holds_up_nobody() {
    const FUEL: u64 = 50_000_000;
    let crafted = Crafted::new();
    for (kind, clauses) in [("plain", 0), ("with handlers", 64)] {
        let clauses = "(catch $other $no) ".repeat(clauses);
        let deep = format!(
            r#"(tag $t) (tag $other)
            (func $deep (param i32)
                (if (i32.eqz (local.get 0)) (then (throw $t)))
                (block $no (try_table {clauses} (call $deep (i32.sub (local.get 0) (i32.const 1))))))
            (func (export "run") (result i32)
                (loop $again (block $b (try_table (catch_all $b) (call $deep (i32.const 8000)))) (br $again))
                (i32.const 0))"#
        );
        let extension = with(&crafted, "deep", &deep, &[Feature::Exceptions]);
        let (reason, cpu, waits) = run(extension, FUEL, Waits::are_of_single_pieces).await;
        assert_eq!(reason.as_deref(), Some(&*used_up(FUEL)), "{kind}: {cpu:?} {waits:?}");
        assert!(waits.are_of_single_pieces(), "{kind}: {cpu:?} {waits:?}");
    }
}

/// What the host would look at for too long in one piece is refused, also where the class lets all in.
#[tokio::test]
async fn what_the_host_would_look_at_for_too_long_is_refused() {
    let crafted = Crafted::new();
    let handlers = |tables: usize, clauses: usize| {
        let table = format!("(try_table {} ", "(catch $t $no) ".repeat(clauses));
        format!(
            r#"(tag $t) (func (export "run") (result i32) (block $no {} nop {}) (i32.const 0))"#,
            table.repeat(tables),
            ")".repeat(tables)
        )
    };
    let segment = |elements: usize| {
        format!(
            r#"(type $a (array funcref)) (func $f) (elem $e func {})
            (func (export "run") (result i32)
                (drop (array.new_elem $a $e (i32.const 0) (i32.const {elements}))) (i32.const 0))"#,
            "$f ".repeat(elements)
        )
    };
    let stage = Stage::start(vec![
        with(&crafted, "few", &handlers(8, 8), &ALL),
        with(&crafted, "wide", &handlers(1, 65), &ALL),
        with(&crafted, "nested", &handlers(13, 5), &ALL),
        with(&crafted, "segment", &segment(16_384), &ALL),
        with(&crafted, "large-segment", &segment(16_385), &ALL),
        // A manifest that cannot be read changes nothing.
        with(&crafted, "damaged", &format!("(@custom \"weir:manifest\" \"?\") {}", handlers(1, 65)), &ALL),
    ])
    .await;
    stage.finished("few").await;
    stage.finished("segment").await;
    let reason = reached(&stage.main, "large-segment", ExtensionState::Failed).await.unwrap();
    assert!(reason.contains("it has a segment of more than 16384 elements for arrays"), "{reason}");
    for id in ["wide", "nested", "damaged"] {
        let reason = reached(&stage.main, id, ExtensionState::Failed).await.unwrap();
        assert!(reason.contains("more than 64 handlers of exceptions around one place"), "{reason}");
    }
}
