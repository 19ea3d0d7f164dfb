;; Serves `echo@1`, whose only operation, `echo`, answers with what it was sent.
(module
  (import "weir:iec/channel@0.1.0" "serve" (func $serve (param i32 i32 i32 i32 i32)))
  (import "weir:iec/channel@0.1.0" "receive" (func $receive (param i32)))
  (import "weir:iec/channel@0.1.0" "respond" (func $respond (param i64 i32 i32 i32 i32 i32 i32)))
  (memory (export "memory") 2)
  (data (i32.const 0) "echo@1..echo....\08\00\00\00\04\00\00\00")
  ;; There is one message at a time.
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (i32.const 1024))
  (func (export "wasi:cli/run@0.2.12#run") (result i32)
    (call $serve (i32.const 0) (i32.const 6) (i32.const 16) (i32.const 1) (i32.const 512))
    (loop $next
      ;; option<message>: a message has its kind at 8, a request its id at 16 and its payload at 40.
      (call $receive (i32.const 512))
      (if (i32.eqz (i32.load8_u (i32.const 512))) (then (return (i32.const 0))))
      (call $respond (i64.load (i32.const 528)) (i32.const 0)
        (i32.load (i32.const 552)) (i32.load (i32.const 556)) (i32.const 0) (i32.const 0) (i32.const 256))
      (br $next))
    (unreachable)))
