(component
  (component $callee
    (core module $m
      (memory (export "memory") @PAGES@)
      (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 0))
      (func (export "take") (param i32 i32)))
    (core instance $m (instantiate $m))
    (func (export "take") (param "text" @TYPE@) (canon lift (core func $m "take")
      (memory (core memory $m "memory")) (realloc (core func $m "realloc")) @ENCODING@)))
  (component $caller
    (import "take" (func $take (param "text" @TYPE@)))
    (core module $memory (memory (export "memory") @PAGES@))
    (core instance $memory (instantiate $memory))
    (core func $take' (canon lower (func $take) (memory (core memory $memory "memory"))))
    (core module $m
      (import "host" "take" (func $take (param i32 i32)))
      (func (export "run") (result i32)
        (loop (call $take (i32.const 0) (i32.const @LENGTH@)) (br 0))
        (i32.const 0)))
    (core instance $main (instantiate $m (with "host" (instance (export "take" (func $take'))))))
    (func (export "run") (result (result)) (canon lift (core func $main "run"))))
  (instance $callee (instantiate $callee))
  (instance $caller (instantiate $caller (with "take" (func $callee "take"))))
  (instance $run (export "run" (func $caller "run")))
  (export "wasi:cli/run@0.2.12" (instance $run)))
