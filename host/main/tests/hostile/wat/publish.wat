(component
  (import "weir:iec/events@0.1.0" (instance $events
    (type $receipt' (record (field "delivered" u32) (field "shed" u32) (field "refused" u32)))
    (export "receipt" (type $receipt (eq $receipt')))
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
    (type $options' (record (field "timeout-ms" (option u32)) (field "parent" (option u64))))
    (export "options" (type $options (eq $options')))
    (export "publish"
      (func (param "topic" string) (param "payload" (list u8)) (param "options" $options) (result (result $receipt (error $error)))))))
  (core module $memory
    (memory (export "memory") 1)
    (data (i32.const 0) "topic\ff\fe")
    (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 2048)))
  (core instance $memory (instantiate $memory))
  (core func $publish (canon lower (func $events "publish")
    (memory (core memory $memory "memory")) (realloc (core func $memory "realloc"))))
  (core module $main
    (import "host" "publish" (func $publish (param i32 i32 i32 i32 i32 i32 i32 i64 i32)))
    (func (export "run") (result i32) (call $publish @ARGUMENTS@) (i32.const 0)))
  (core instance $main (instantiate $main (with "host" (instance (export "publish" (func $publish))))))
  (func $run (result (result)) (canon lift (core func $main "run")))
  (instance $run (export "run" (func $run)))
  (export "wasi:cli/run@0.2.12" (instance $run)))
