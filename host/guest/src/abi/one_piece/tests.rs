//! What is written in one piece is what wasmtime writes field by field.

use wasmtime::{Engine, Store, component::*};

use super::*;
use crate::abi::{HandlerError, Limit, Size};

/// The types of `wit/iec.wit`, and one import whose result a guest hands back as it lies in its memory.
const COMPONENT: &str = r#"
(component
  (type $limit' (record (field "name" string) (field "used" u64) (field "allowed" u64)))
  (import "limit" (type $limit (eq $limit')))
  (type $size' (record (field "bytes" u64) (field "allowed" u64)))
  (import "size" (type $size (eq $size')))
  (type $handler' (record (field "code" string) (field "message" string)))
  (import "handler-error" (type $handler (eq $handler')))
  (type $error' (variant
    (case "permission-denied" string) (case "unknown-contract" string) (case "no-provider" string)
    (case "not-ready" string) (case "timeout") (case "overloaded" string) (case "peer-gone") (case "trapped")
    (case "limit-exceeded" $limit) (case "would-deadlock" (list string)) (case "too-large" $size)
    (case "invalid" string) (case "handler" $handler)))
  (import "error" (type $error (eq $error')))
  (type $request' (record (field "id" u64) (field "sender" u32) (field "operation" u32)
    (field "remaining-ms" u32) (field "waited-us" u32) (field "payload" (list u8))))
  (import "request" (type $request (eq $request')))
  (type $response' (record (field "id" u64) (field "outcome" (result (list u8) (error $error)))))
  (import "response" (type $response (eq $response')))
  (type $event' (record (field "sender" u32) (field "subscription" u32) (field "topic" (option string))
    (field "sequence" u64) (field "lost" u64) (field "retained" bool) (field "waited-us" u32)
    (field "payload" (list u8))))
  (import "event" (type $event (eq $event')))
  (type $job' (record (field "id" u64) (field "queue" u32) (field "sender" u32) (field "deliveries" u32)
    (field "waited-us" u32) (field "payload" (list u8))))
  (import "job" (type $job (eq $job')))
  (type $message' (variant (case "request" $request) (case "response" $response) (case "event" $event)
    (case "job" $job)))
  (import "message" (type $message (eq $message')))
  (import "value" (func $value (result RESULT)))

  (core module $memory
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "realloc") (param $old i32) (param $old-size i32) (param $align i32) (param $size i32)
      (result i32)
      (local $place i32)
      (local.set $place (i32.and (i32.add (global.get $next) (i32.sub (local.get $align) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get $align))))
      (global.set $next (i32.add (local.get $place) (local.get $size)))
      (local.get $place)))
  (core instance $memory (instantiate $memory))
  (core func $value' (canon lower (func $value) (memory (core memory $memory "memory"))
    (realloc (core func $memory "realloc"))))
  (core module $main
    (import "" "memory" (memory 1))
    (import "" "value" (func $value (param i32)))
    (func (export "run") (result i32)
      (call $value (i32.const 64))
      (i32.store (i32.const 0) (i32.const 64))
      (i32.store (i32.const 4) (i32.const 4096))
      (i32.const 0)))
  (core instance $main (instantiate $main (with "" (instance
    (export "memory" (memory $memory "memory"))
    (export "value" (func $value'))))))
  (func (export "run") (result (list u8)) (canon lift (core func $main "run")
    (memory (core memory $memory "memory")))))
"#;

/// The guest's memory after it has got the value.
fn memory<T: Lower + 'static>(result: &str, value: impl Fn() -> T + Send + Sync + 'static) -> Vec<u8> {
    let engine = Engine::default();
    let component = wat::parse_str(COMPONENT.replace("RESULT", result)).unwrap();
    let component = Component::new(&engine, component).unwrap();
    let mut linker = Linker::<()>::new(&engine);
    linker.root().func_wrap("value", move |_, ()| Ok((value(),))).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &component).unwrap();
    let run = instance.get_typed_func::<(), (Vec<u8>,)>(&mut store, "run").unwrap();
    run.call(&mut store, ()).unwrap().0
}

fn messages() -> Vec<Message> {
    let payload = Bytes::from_static(b"a payload");
    let event = |topic| Event {
        sender: 0x0102_0304,
        subscription: 0x0506_0708,
        topic,
        sequence: u64::MAX - 1,
        lost: 3,
        retained: true,
        waited_us: 0x090a_0b0c,
        payload: payload.clone(),
    };
    vec![
        Message::Request(Request {
            id: 0x1122_3344_5566_7788,
            sender: 1,
            operation: 2,
            remaining_ms: u32::MAX,
            waited_us: 4,
            payload: payload.clone(),
        }),
        Message::Response(Response { id: 7, outcome: Ok(payload.clone()) }),
        Message::Response(Response { id: 8, outcome: Ok(Bytes::new()) }),
        Message::Response(Response { id: 9, outcome: Err(Error::Trapped) }),
        Message::Event(event(None)),
        Message::Event(event(Some("a.topic".to_owned()))),
        Message::Job(Job { id: 5, queue: 6, sender: 7, deliveries: 8, waited_us: 9, payload }),
    ]
}

fn errors() -> Vec<Error> {
    vec![
        Error::Timeout,
        Error::LimitExceeded(Limit { name: "memory".to_owned(), used: 1, allowed: u64::MAX }),
        Error::TooLarge(Size { bytes: 1, allowed: 2 }),
        Error::Handler(HandlerError { code: "c".to_owned(), message: "m".to_owned() }),
    ]
}

/// Both ways leave the same in memory.
fn assert_same<T: Words + std::fmt::Debug + 'static>(
    result: &str,
    make: impl Fn() -> T + Copy + Send + Sync + 'static,
) {
    let plain = memory(result, make);
    assert!(plain.iter().any(|byte| *byte != 0));
    assert!(memory(result, move || OnePiece(make())) == plain, "{:?}", make());
}

#[test]
fn a_message_in_one_piece_is_what_wasmtime_makes_of_it() {
    for place in 0..messages().len() {
        let message = move || messages().swap_remove(place);
        assert_same("(option $message)", move || Some(message()));
        assert_same("(result (option $message) (error $error))", move || Ok::<_, Error>(Some(message())));
        let plain =
            memory("(result (list $message) (error $error))", move || Ok::<_, Error>(vec![message()]));
        let pieces = move || Ok::<_, Error>(vec![OnePiece(message())]);
        assert!(memory("(result (list $message) (error $error))", pieces) == plain, "{:?}", message());
    }
}

#[test]
fn an_answer_in_one_piece_is_what_wasmtime_makes_of_it() {
    let result = "(result (list u8) (error $error))";
    assert_same(result, || Ok::<_, Error>(Bytes::from_static(b"an answer")));
    for place in 0..errors().len() {
        assert_same(result, move || Err::<Bytes, _>(errors().swap_remove(place)));
        assert_same("(result (option $message) (error $error))", move || {
            Err::<Option<Message>, _>(errors().swap_remove(place))
        });
    }
}

#[test]
fn a_stop_leaves_no_message_in_memory() {
    let nothing = memory("(option $message)", || OnePiece(None::<Message>));
    assert!(nothing.iter().all(|byte| *byte == 0));
}

#[test]
fn a_place_outside_of_memory_is_an_error() {
    let mut memory = [0; 16];
    assert!(slice(&mut memory, 8, 8).is_ok());
    for (offset, length) in [(8, 9), (17, 0), (usize::MAX, 1), (0, usize::MAX)] {
        assert!(slice(&mut memory, offset, length).is_err(), "{offset} {length}");
    }
}
