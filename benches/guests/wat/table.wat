;; Grows its table, and when that is refused fills it, for ever. No Rust program can.
(component
  (import "weir:iec/lifecycle@0.1.0" (instance $lifecycle (export "ready" (func))))
  (core func $ready (canon lower (func $lifecycle "ready")))
  (core instance $host (export "ready" (func $ready)))
  (core module $code
    (import "host" "ready" (func $ready))
    (table $table 1 funcref)
    (func (export "run") (result i32)
      call $ready
      (loop $again
        (if (i32.eq (table.grow $table (ref.null func) (i32.const 65536)) (i32.const -1))
          (then (table.fill $table (i32.const 0) (ref.null func) (table.size $table))))
        (br $again))
      unreachable))
  (core instance $program (instantiate $code (with "host" (instance $host))))
  (func $run (result (result)) (canon lift (core func $program "run")))
  (instance $command (export "run" (func $run)))
  (export "wasi:cli/run@0.2.12" (instance $command)))
