;; Arithmetic that cannot be left out: `rounds` steps of Marsaglia's xorshift64, with his seed.
(module
  (func (export "spin") (param $rounds i64) (result i64)
    (local $x i64)
    (local.set $x (i64.const 88172645463325252))
    (loop $again
      (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 13))))
      (local.set $x (i64.xor (local.get $x) (i64.shr_u (local.get $x) (i64.const 7))))
      (local.set $x (i64.xor (local.get $x) (i64.shl (local.get $x) (i64.const 17))))
      (local.set $rounds (i64.sub (local.get $rounds) (i64.const 1)))
      (br_if $again (i64.gt_s (local.get $rounds) (i64.const 0))))
    (local.get $x)))
