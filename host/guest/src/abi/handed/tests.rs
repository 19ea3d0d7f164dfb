//! What is too long is known by its length alone, wherever the guest says that it lies.

use wasmtime::{AsContextMut, Engine, Store, StoreContextMut, component::*};

use super::*;

/// Calls an import with what lies at one place of its memory.
const COMPONENT: &str = r#"
(component
  (import "take" (func $take (param "it" TYPE)))
  (core module $memory
    (memory (export "memory") 16)
    (data (i32.const 8) "DATA"))
  (core instance $memory (instantiate $memory))
  (core func $take' (canon lower (func $take) (memory (core memory $memory "memory")) string-encoding=ENCODING))
  (core module $main
    (import "" "take" (func $take (param i32 i32)))
    (func (export "run") (call $take (i32.const PLACE) (i32.const LENGTH))))
  (core instance $main (instantiate $main (with "" (instance (export "take" (func $take'))))))
  (func (export "run") (canon lift (core func $main "run"))))
"#;

/// A mebibyte of memory, and a sixteenth of it for one call.
const FUEL: usize = 64 << 10;

struct Call<'a> {
    kind: &'a str,
    encoding: &'a str,
    data: &'a str,
    place: i64,
    length: i64,
}

fn text(data: &str, length: i64) -> Call<'_> {
    Call { kind: "string", encoding: "utf8", data, place: 8, length }
}

fn list(kind: &str, length: i64) -> Call<'_> {
    Call { kind, encoding: "utf8", data: "abcdefgh", place: 8, length }
}

/// What the host sees, or why it traps.
fn taken<T: Lift + Send + Sync + 'static>(
    call: &Call<'_>,
    seen: fn(StoreContextMut<'_, String>, T) -> String,
) -> Result<String, String> {
    let engine = Engine::default();
    let text = COMPONENT
        .replace("TYPE", call.kind)
        .replace("ENCODING", call.encoding)
        .replace("DATA", call.data)
        .replace("PLACE", &call.place.to_string())
        .replace("LENGTH", &call.length.to_string());
    let component = Component::new(&engine, wat::parse_str(text).unwrap()).unwrap();
    let mut linker = Linker::new(&engine);
    linker
        .root()
        .func_wrap("take", move |mut store: StoreContextMut<'_, String>, (it,): (T,)| {
            let seen = seen(store.as_context_mut(), it);
            *store.data_mut() = seen;
            Ok(())
        })
        .unwrap();
    let mut store = Store::new(&engine, String::new());
    store.set_hostcall_fuel(FUEL);
    let instance = linker.instantiate(&mut store, &component).unwrap();
    let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
    match run.call(&mut store, ()) {
        Ok(()) => Ok(store.into_data()),
        Err(error) => Err(error.root_cause().to_string()),
    }
}

fn payload(call: &Call<'_>) -> Result<String, String> {
    taken::<Handed<WasmList<u8>>>(call, |store, it| match it {
        Handed::Whole(list) => format!("{:?}", list.as_le_slice(&store).first()),
        Handed::TooLarge(bytes) => format!("too large: {bytes}"),
    })
}

#[test]
fn a_list_of_any_length_in_the_guests_memory_is_a_value() {
    assert_eq!(payload(&list("(list u8)", 0)).unwrap(), "None");
    assert_eq!(payload(&list("(list u8)", FUEL as i64)).unwrap(), "Some(97)");
    assert_eq!(payload(&list("(list u8)", FUEL as i64 + 1)).unwrap(), "too large: 65537");
    assert_eq!(payload(&list("(list u8)", (1 << 20) - 8)).unwrap(), "too large: 1048568");
    for (place, length) in [(8, (1 << 20) - 7), (8, -1), (-1, 2), (1 << 20, 1)] {
        let told = payload(&Call { place, ..list("(list u8)", length) });
        assert_eq!(told.unwrap_err(), "list pointer/length out of bounds of memory");
    }
}

#[test]
fn a_list_of_empty_texts_counts_as_the_host_would_hold_it() {
    let told = |length| {
        taken::<Handed<Vec<Text>>>(&Call { place: 512, ..list("(list string)", length) }, |_, it| match it {
            Handed::Whole(list) => list.len().to_string(),
            Handed::TooLarge(number) => format!("too large: {number}"),
        })
    };
    let fits = FUEL / size_of::<Text>();
    assert_eq!(told(fits as i64).unwrap(), fits.to_string());
    assert_eq!(told(fits as i64 + 1).unwrap(), format!("too large: {}", fits + 1));
    assert_eq!(told(100_000).unwrap(), "too large: 100000");
}

#[test]
fn a_text_is_whole_or_its_length() {
    let told = |call: &Call<'_>| taken::<Text<5>>(call, |_, it| format!("{:?}", it.0));
    assert_eq!(told(&text("abcdefgh", 5)).unwrap(), r#"Ok("abcde")"#);
    assert_eq!(told(&text("abcdefgh", 6)).unwrap(), "Err(6)");
    assert_eq!(told(&text("abcdefgh", 1_000_000)).unwrap(), "Err(1000000)");
    let data = r"a\00b\00c\00d\00e\00f\00";
    let wide = |length| Call { encoding: "utf16", data, ..text("", length) };
    assert_eq!(told(&wide(2)).unwrap(), r#"Ok("ab")"#);
    assert_eq!(told(&wide(5)).unwrap(), r#"Ok("abcde")"#);
    assert_eq!(told(&wide(6)).unwrap(), "Err(12)");
    let either = |length| Call { encoding: "latin1+utf16", data, ..text("", length) };
    assert_eq!(told(&either(3)).unwrap(), r#"Ok("a\0b")"#);
    assert_eq!(told(&either(i64::from(IS_WIDE) + 2)).unwrap(), r#"Ok("ab")"#);
    assert_eq!(told(&either(i64::from(IS_WIDE) + 6)).unwrap(), "Err(12)");
    // What fits as the guest has it, and is longer in UTF-8.
    assert_eq!(told(&Call { encoding: "utf16", ..text(r"\ac\20\ac\20", 2) }).unwrap(), "Err(6)");
    assert_eq!(told(&Call { encoding: "latin1+utf16", ..text(r"\ff\ff\ff", 3) }).unwrap(), "Err(6)");
    for outside in [text("", -1), text("", 1 << 20), wide(600_000), Call { place: -1, ..text("", 6) }] {
        assert_eq!(told(&outside).unwrap_err(), "string pointer/length out of bounds of memory");
    }
    assert!(told(&text(r"\ff", 1)).unwrap_err().contains("invalid utf-8"));
}

#[test]
fn a_text_is_cut_between_two_characters() {
    let told = |call: &Call<'_>| taken::<Cut<5>>(call, |_, it| it.0);
    assert_eq!(told(&text("abcdefgh", 4)).unwrap(), "abcd");
    assert_eq!(told(&text("abcdefgh", 1_000_000)).unwrap(), "abcde");
    for (data, cut) in [("abc€f", "abc"), ("ab€f", "ab€"), ("abcd€", "abcd"), ("a𝄞𝄞", "a𝄞"), ("ab𝄞𝄞", "ab")]
    {
        assert_eq!(told(&text(data, data.len() as i64)).unwrap(), cut);
    }
    // In UTF-16: `a`, then a character of two units.
    let wide = |data, length| Call { encoding: "utf16", data, ..text("", length) };
    let note = r"a\004\d8\1e\dd";
    assert_eq!(told(&wide(note, 3)).unwrap(), "a𝄞");
    assert_eq!(told(&wide(note, 1)).unwrap(), "a");
    let after_four = r"a\00b\00c\00d\004\d8\1e\dd";
    assert_eq!(told(&wide(after_four, 6)).unwrap(), "abcd");
    assert_eq!(told(&wide(r"a\00b\00c\00d\00e\00f\00", 6)).unwrap(), "abcde");
    assert_eq!(told(&wide(r"\ac\20\ac\20\ac\20", 3)).unwrap(), "€");
    assert_eq!(told(&Call { encoding: "latin1+utf16", ..text("abcdefgh", 8) }).unwrap(), "abcde");
    // Only what is kept must be a text.
    assert_eq!(told(&text(r"abcde\ff", 6)).unwrap(), "abcde");
    for data in [r"\ff", r"\80\80\80\80\80\80"] {
        assert!(told(&text(data, 6)).unwrap_err().contains("invalid utf-8"));
    }
    assert_eq!(told(&text("", -1)).unwrap_err(), "string pointer/length out of bounds of memory");
}

#[test]
fn of_a_list_the_beginning_is_taken() {
    let told = |length| {
        taken::<First<Cut<2>, 3>>(&Call { place: 512, ..list("(list string)", length) }, |_, it| {
            it.0.len().to_string()
        })
    };
    assert_eq!(told(2).unwrap(), "2");
    assert_eq!(told(100_000).unwrap(), "3");
    assert_eq!(told(1 << 20).unwrap_err(), "list pointer/length out of bounds of memory");
}
