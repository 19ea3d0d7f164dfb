//! Programs whose languages need more of WebAssembly than Weir has on: Kotlin, with the compiler of Maven's central
//! repository, and C++ with exceptions, with Zig's compiler from PyPI.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, ensure};

use crate::{
    files,
    full_http::venv,
    run::{output, run, target_dir},
    setup::{self, JAVA},
};

const KOTLIN: &str = "2.4.20";
const ZIG: &str = "ziglang==0.17.1";

/// The compiler of Kotlin, and the standard library for WASI: group and file in the repository, and the file's SHA-256.
const JARS: [(&str, &str, &str); 5] = [
    (
        "kotlin/",
        "kotlin-compiler-embeddable-2.4.20.jar",
        "cf97161430683fb9af96dc6a7017ffae1fe8737b80d12eee11f2fe3e76f8ded8",
    ),
    (
        "kotlin/",
        "kotlin-reflect-1.6.10.jar",
        "3277ac102ae17aad10a55abec75ff5696c8d109790396434b496e75087854203",
    ),
    (
        "kotlin/",
        "kotlin-stdlib-2.4.20.jar",
        "2226de463d309d4a5500a481320b3dea515a6981dcae1def531fbc158884e25f",
    ),
    (
        "kotlinx/",
        "kotlinx-coroutines-core-jvm-1.8.0.jar",
        "9860906a1937490bf5f3b06d2f0e10ef451e65b95b269f22daf68a3d1f5065c5",
    ),
    (
        "kotlin/",
        "kotlin-stdlib-wasm-wasi-2.4.20.klib",
        "519d98bf2d40acb36dd12b6b64f1c8c4c1f60910468d770379b671e2424d3ebd",
    ),
];

/// The library of the program, which is not part of the compiler.
const LIBRARY: &str = "kotlin-stdlib-wasm-wasi";

/// Writes each file to the directory, unless it is there and whole.
const DOWNLOAD: &str = "
import hashlib, pathlib, sys, urllib.request
for url, digest in zip(sys.argv[2::2], sys.argv[3::2]):
    path = pathlib.Path(sys.argv[1], url.rsplit('/', 1)[1])
    is_right = lambda data: hashlib.sha256(data).hexdigest() == digest
    if not (path.exists() and is_right(path.read_bytes())):
        data = urllib.request.urlopen(url, timeout=300).read()
        assert is_right(data), f'{url} is not the file that it was'
        path.write_bytes(data)
";

/// A program for WASI 0.1 in Kotlin.
pub(super) fn kotlin() -> Result<PathBuf> {
    setup::require(&[&JAVA])?;
    let directory = target_dir()?.join("programs/kotlin");
    files::make_directory(&directory)?;
    let mut download = Command::new("python3");
    download.args(["-c", DOWNLOAD]).arg(&directory);
    for (group, file, digest) in JARS {
        let (name, version) = file.rsplit_once('-').context("a file without a version")?;
        let (version, _) = version.rsplit_once('.').context("a file without a type")?;
        let url =
            format!("https://repo.maven.apache.org/maven2/org/jetbrains/{group}{name}/{version}/{file}");
        download.args([&url, digest]);
    }
    run(&mut download)?;
    let source = directory.join("main.kt");
    files::write(&source, include_str!("main.kt"))?;
    let jars =
        JARS.iter().filter(|(_, file, _)| file.ends_with(".jar")).map(|(_, file, _)| directory.join(file));
    let compile = |to: &Path, arguments: &[&str]| {
        let mut java = Command::new("java");
        java.arg("-cp")
            .arg(env::join_paths(jars.clone())?)
            .arg("org.jetbrains.kotlin.cli.js.KotlinWasmCompiler");
        java.args(["-Xwasm-target=wasm-wasi", "-libraries"])
            .arg(directory.join(format!("{LIBRARY}-{KOTLIN}.klib")));
        java.arg("-ir-output-dir").arg(to).args(["-ir-output-name", "main"]).args(arguments).arg(&source);
        run(&mut java)
    };
    let (library, program) = (directory.join("library"), directory.join("program"));
    compile(&library, &["-nopack"])?;
    compile(&program, &["-Xir-produce-js", "-Xir-dce", &format!("-Xinclude={}", library.display())])?;
    Ok(program.join("main.wasm"))
}

/// The parts of LLVM's libraries that raise exceptions. Zig leaves them out of its own.
const RUNTIME: [&str; 3] =
    ["libcxxabi/src/cxa_exception.cpp", "libcxxabi/src/cxa_personality.cpp", "libunwind/src/Unwind-wasm.c"];

/// The tag of exceptions of C++, as LLVM's compiler runtime defines it.
const TAG: &str = ".globl __cpp_exception\n.tagtype __cpp_exception i32\n__cpp_exception:\n";

/// A program for WASI 0.1 in C++, with exceptions as in WebAssembly 3.0.
pub(super) fn cpp() -> Result<PathBuf> {
    let directory = target_dir()?.join("programs/cpp");
    files::make_directory(&directory)?;
    let python = venv(&directory.join("zig"), ZIG)?;
    let find = "import ziglang, pathlib; print(pathlib.Path(ziglang.__file__).parent / 'lib')";
    let library = output(Command::new(&python).args(["-c", find]))?;
    let library = Path::new(library.trim());
    ensure!(library.exists(), "there is no `{}`", library.display());
    files::write(&directory.join("tag.s"), TAG)?;
    files::write(&directory.join("main.cpp"), include_str!("main.cpp"))?;
    let mut build = Command::new(&python);
    build.args(["-m", "ziglang", "c++", "-target", "wasm32-wasi", "-O2", "-fwasm-exceptions"]);
    build.args(["-mexception-handling", "-mllvm", "-wasm-enable-eh", "-mllvm", "-wasm-use-legacy-eh=false"]);
    for include in ["libcxxabi/include", "libcxx/src", "libunwind/include"] {
        build.arg("-I").arg(library.join(include));
    }
    build.args([
        "-D_LIBCXXABI_BUILDING_LIBRARY",
        "-D_LIBCPP_BUILDING_LIBRARY",
        "-DLIBCXX_BUILDING_LIBCXXABI",
    ]);
    build.args(["-D_LIBCXXABI_HAS_NO_THREADS", "-D_LIBUNWIND_HIDE_SYMBOLS"]);
    build.args(RUNTIME.map(|file| library.join(file))).args(["main.cpp", "tag.s", "-o", "cpp.wasm"]);
    run(build.current_dir(&directory))?;
    Ok(directory.join("cpp.wasm"))
}
