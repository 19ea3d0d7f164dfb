(component
  (import "weir:iec/lifecycle@0.1.0" (instance $lifecycle (export "ready" (func))))
  (import "weir:iec/peers@0.1.0" (instance $peers (export "own-name" (func (result string)))))
  (import "weir:iec/events@0.1.0" (instance $events
    (type $limit' (record (field "name" string) (field "used" u64) (field "allowed" u64)))
    (export "limit" (type $limit (eq $limit')))
    (type $size' (record (field "bytes" u64) (field "allowed" u64)))
    (export "size" (type $size (eq $size')))
    (type $handler-error' (record (field "code" string) (field "message" string)))
    (export "handler-error" (type $handler-error (eq $handler-error')))
    (type $error' (variant
      (case "permission-denied" string) (case "unknown-contract" string) (case "no-provider" string)
      (case "not-ready" string) (case "timeout") (case "overloaded" string) (case "peer-gone")
      (case "trapped") (case "limit-exceeded" $limit) (case "would-deadlock" (list string))
      (case "too-large" $size) (case "invalid" string) (case "handler" $handler-error)))
    (export "error" (type $error (eq $error')))
    (export "subscribe" (func (param "pattern" string) (result (result u32 (error $error)))))))
  (core func $ready (canon lower (func $lifecycle "ready")))
  (core module $memory
    (import "host" "ready" (func $ready))
    (memory (export "memory") 1)
    (func $realloc (export "realloc") (param i32 i32 i32 i32) (result i32) @BODY@))
  (core instance $memory (instantiate $memory
    (with "host" (instance (export "ready" (func $ready))))))
  (core func $own-name (canon lower (func $peers "own-name")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core func $subscribe (canon lower (func $events "subscribe")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core module $main
    (import "host" "own-name" (func $own-name (param i32)))
    (import "host" "subscribe" (func $subscribe (param i32 i32 i32)))
    (func $own-name-once (call $own-name (i32.const 1024)))
    (func $subscribe-once (call $subscribe (i32.const 0) (i32.const 0) (i32.const 1024)))
    (func (export "run") (result i32) (call $@CALL@-once) (i32.const 0)))
  (core instance $main (instantiate $main (with "host" (instance
    (export "own-name" (func $own-name)) (export "subscribe" (func $subscribe))))))
  (func $run (result (result)) (canon lift (core func $main "run")))
  (instance $run (export "run" (func $run)))
  (export "wasi:cli/run@0.2.12" (instance $run)))
