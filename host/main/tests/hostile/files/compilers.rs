//! Valid components that take hours or all memory to compile, and their compilers.

use std::{
    io::Write,
    os::unix::process::ExitStatusExt,
    process::{Command, Stdio},
};

use super::*;

#[tokio::test]
async fn a_component_that_takes_too_long_to_compile_ends_with_its_compiler() {
    let files = Files::new();
    files.write("slow.wasm", &bombs::time());
    let mut slow = files.extension("slow.wasm");
    slow.limits.compile_timeout = std::time::Duration::from_secs(2);
    slow.limits.compile_memory = 1 << 36;
    let stage = files.start(slow).await;
    let cause = format!(
        "cannot start: `{}/slow.wasm` takes longer than the 2s of `compile-timeout` to compile: make sure of \
         the file before you raise that limit",
        files.path().display()
    );
    let allowed = 2_000_000_000;
    stage.failed("hostile", &Fault::new(&cause).limit("compile-timeout", allowed, allowed)).await;
}

#[tokio::test]
async fn a_component_that_takes_too_much_memory_to_compile_ends_with_its_compiler() {
    for bomb in [bombs::memory(), bombs::nested(20_000)] {
        let files = Files::new();
        files.write("large.wasm", &bomb);
        let mut large = files.extension("large.wasm");
        large.limits.compile_memory = 512 << 20;
        let stage = files.start(large).await;
        let cause = format!(
            "cannot start: `{}/large.wasm` takes more than the 512 MiB of `compile-memory` to compile: make sure \
         of the file before you raise that limit",
            files.path().display()
        );
        stage.failed("hostile", &Fault::new(&cause).limit("compile-memory", 512 << 20, 512 << 20)).await;
    }
}

#[tokio::test]
async fn a_component_that_compiles_to_too_much_code_is_refused() {
    let bombs =
        [(child(), bombs::code()), (Compilation::InProcess, bombs::code()), (child(), bombs::names(60_000))];
    for (compilation, bomb) in bombs {
        let mut files = Files::new();
        files.compilation = compilation;
        files.write("code.wasm", &bomb);
        let mut code = files.extension("code.wasm");
        code.limits.code_size = 1 << 20;
        let stage = files.start(code).await;
        let status = stage.status("hostile");
        let [failure] = &status.failures[..] else { panic!("{status:?}") };
        let hit = failure.limit.clone().unwrap();
        assert_eq!((hit.name.as_str(), hit.allowed), ("code-size", 1 << 20));
        let cause = format!(
            "cannot start: `{}/code.wasm` takes {} bytes when it is compiled, and `code-size` allows 1 MiB: make \
             sure of the file before you raise that limit",
            files.path().display(),
            hit.used
        );
        stage.failed("hostile", &Fault::new(&cause).limit("code-size", hit.used, 1 << 20)).await;
    }
}

#[test]
fn the_process_that_compiles_ends_with_whoever_started_it() {
    let start = || {
        let mut helper = Command::new(env!("CARGO_BIN_EXE_weir-compile-helper"));
        let mut helper = helper.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut stdin = helper.stdin.take().unwrap();
        stdin
            .write_all(b"{\"fit\":{\"kind\":\"Extension\",\"world\":null,\"answered\":null,\"exports\":{},\"has_messages\":false,\"features\":[]},\"memory\":1000000000,\"seconds\":100,\"target\":null,\"is_small\":false,\"lines\":false}\n")
            .unwrap();
        // More than a pipe holds: it has begun to read.
        stdin.write_all(&[0; 1 << 18]).unwrap();
        (helper, stdin)
    };
    // It waits for more until its starter is gone.
    let (mut helper, _open) = std::thread::spawn(start).join().unwrap();
    assert_eq!(helper.wait().unwrap().signal(), Some(9));
}
