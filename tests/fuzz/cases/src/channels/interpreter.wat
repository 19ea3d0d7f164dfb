;; Serves `fuzz@1` with the operation `run`, which runs its payload. `interpreter.rs` fills in the imports.
;;
;;    0  words, and lists of them
;;  256  registers: 16 numbers, of which the first is the id of the request that brought the program
;;  512  what the last call returned
;; 4096  what is received
(module
  ;; IMPORTS
  (import "weir:iec/channel@0.1.0" "serve" (func $serve (param i32 i32 i32 i32 i32)))
  (import "weir:iec/channel@0.1.0" "receive" (func $receive (param i32)))
  (import "weir:iec/channel@0.1.0" "respond" (func $respond (param i64 i32 i32 i32 i32 i32 i32)))
  (memory (export "memory") 4)
  (data (i32.const 0) "echo@1..fuzz@1..nobody@1echo....run.....fuzz.a..fuzz.>..main....")
  ;; At 64 a list of `run`, `echo`, `fuzz.a`; at 88 a list of a field; at 104 three handles.
  (data (i32.const 64) "\20\00\00\00\03\00\00\00" "\18\00\00\00\04\00\00\00" "\28\00\00\00\06\00\00\00"
    "\18\00\00\00\04\00\00\00" "\20\00\00\00\03\00\00\00" "\01\00\00\00\02\00\00\00\03\00\00\00")
  (global $result i32 (i32.const 512))
  (global $free (mut i32) (i32.const 4096))
  ;; The program: its next byte, and its end.
  (global $next (mut i32) (i32.const 0))
  (global $end (mut i32) (i32.const 0))
  (table funcref (elem $CALLED $save))

  (func (export "cabi_realloc") (param $old i32) (param $old_size i32) (param $align i32) (param $size i32)
    (result i32)
    (local $place i32)
    (local.set $place
      (i32.and (i32.add (global.get $free) (i32.sub (local.get $align) (i32.const 1)))
        (i32.sub (i32.const 0) (local.get $align))))
    (global.set $free (i32.add (local.get $place) (local.get $size)))
    (if (i32.gt_u (global.get $free) (i32.const 262144)) (then (unreachable)))
    (local.get $place))

  (func (export "wasi:cli/run@0.2.12#run") (result i32)
    (call $serve (i32.const 8) (i32.const 6) (i32.const 64) (i32.const 1) (global.get $result))
    (loop $program
      (global.set $free (i32.const 4096))
      ;; option<message>: a message has its kind at 8, a request its id at 16 and its payload at 40.
      (call $receive (i32.const 512))
      (if (i32.eqz (i32.load8_u (i32.const 512))) (then (return (i32.const 0))))
      (br_if $program (i32.load8_u (i32.const 520)))
      (i64.store (i32.const 256) (i64.load (i32.const 528)))
      (global.set $next (i32.load (i32.const 552)))
      (global.set $end (i32.add (global.get $next) (i32.load (i32.const 556))))
      (block $done
        (loop $step
          (br_if $done (i32.ge_u (global.get $next) (global.get $end)))
          (call_indirect (i32.rem_u (i32.wrap_i64 (call $byte)) (i32.const $COUNT)))
          (br $step)))
      ;; If it has not answered by itself.
      (call $respond (i64.load (i32.const 256)) (i32.const 0)
        (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 1536))
      (br $program))
    (unreachable))

  ;; The next byte, or zero behind the end.
  (func $byte (result i64)
    (if (i32.ge_u (global.get $next) (global.get $end)) (then (return (i64.const 0))))
    (global.set $next (i32.add (global.get $next) (i32.const 1)))
    (i64.load8_u (i32.sub (global.get $next) (i32.const 1))))

  (func $argument (result i64)
    (local $first i64)
    (local.set $first (call $byte))
    (if (i64.lt_u (local.get $first) (i64.const 0xe0)) (then (return (local.get $first))))
    ;; What the last call returned, at an offset.
    (if (i64.eq (local.get $first) (i64.const 0xe0))
      (then (return (i64.load (i32.add (global.get $result) (i32.wrap_i64 (call $byte)))))))
    ;; A register.
    (if (i64.eq (local.get $first) (i64.const 0xe1))
      (then (return (i64.load (call $register)))))
    ;; Where the program goes on: bytes of any value.
    (if (i64.eq (local.get $first) (i64.const 0xe2))
      (then (return (i64.extend_i32_u (global.get $next)))))
    ;; Two bytes, as a high part: beyond every memory, and what is negative.
    (if (i64.eq (local.get $first) (i64.const 0xe3))
      (then (return (i64.or (i64.shl (call $byte) (i64.const 24)) (i64.shl (call $byte) (i64.const 56))))))
    ;; Two bytes.
    (i64.or (i64.shl (call $byte) (i64.const 8)) (call $byte)))

  ;; Keeps a part of what the last call returned.
  (func $save
    (i64.store (call $register) (i64.load (i32.add (global.get $result) (i32.wrap_i64 (call $byte))))))

  (func $register (result i32)
    (i32.add (i32.const 256) (i32.shl (i32.and (i32.wrap_i64 (call $byte)) (i32.const 15)) (i32.const 3))))

  ;; CALLS
)
