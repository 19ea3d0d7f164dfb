// The start of an extension in place of libc's: link with `-nostartfiles`.
//
// With libc's, the linker runs all constructors again before each function that Main calls back, such as
// `cabi_realloc`. The constructor that looks up granted directories would call Main there, which is a trap.

extern void __wasm_call_ctors(void);
extern void __wasm_call_dtors(void);
extern int __main_void(void);
extern _Noreturn void __wasi_proc_exit(unsigned code);

__attribute__((export_name("_start"))) void _start(void) {
  __wasm_call_ctors();
  int code = __main_void();
  __wasm_call_dtors();
  if (code != 0) __wasi_proc_exit((unsigned)code);
}
