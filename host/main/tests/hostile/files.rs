//! Attacks by a file before anything of it runs. Those that no compiler sees are in `extensions/refused.rs`.

mod cached;
mod compilers;
mod contracts;
mod required;
mod signed;

use std::{fs, os::unix::fs::symlink, path::Path};

use tempfile::TempDir;
use weir_host::{
    Config, ExtensionConfig, Main, MainConfig,
    component::Compilation,
    config::{ComponentSource, RestartPolicy},
    control::ExtensionState,
};

use super::{
    bombs,
    crafted::program,
    stage::{Fault, Stage},
    support::{self, PATIENCE},
};

/// As in `weir run`.
fn child() -> Compilation {
    Compilation::Child { program: env!("CARGO_BIN_EXE_weir-compile-helper").into(), arguments: Vec::new() }
}

/// A helper that does not exist.
fn no_compiler() -> Compilation {
    Compilation::Child { program: "/nonexistent/compile-helper".into(), arguments: Vec::new() }
}

struct Files {
    dir: TempDir,
    main: MainConfig,
    compilation: Compilation,
}

impl Files {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut main = MainConfig::default();
        main.request_timeout = PATIENCE;
        Self { dir, main, compilation: child() }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.path().join(name), content).unwrap();
    }

    fn write_text(&self, name: &str, text: &str) {
        self.write(name, &wat::parse_str(text).unwrap_or_else(|error| panic!("{error}")));
    }

    fn extension(&self, name: &str) -> ExtensionConfig {
        let mut extension = ExtensionConfig::new("hostile".parse().unwrap(), self.path().join(name));
        extension.restart.policy = RestartPolicy::Never;
        extension.limits.compile_timeout = PATIENCE;
        extension.limits.ready_timeout = PATIENCE;
        extension
    }

    async fn start(&self, hostile: ExtensionConfig) -> Stage {
        let mut good = support::puppet("good");
        if let Some(dir) = &self.main.plugin_dir {
            let path = dir.join("puppet.wasm");
            fs::copy(good.component.path().unwrap(), &path).unwrap();
            good.component = ComponentSource::Path(path);
        }
        let config = Config::new(self.main.clone(), vec![hostile, good]);
        let main = Main::builder(config).compilation(self.compilation.clone()).start().await.unwrap();
        Stage { main }
    }

    /// Expects a refusal for `cause`, with `DIR` for the directory.
    async fn refused(&self, hostile: ExtensionConfig, cause: &str) {
        let cause = format!("cannot start: {}", cause.replace("DIR", &self.path().to_string_lossy()));
        self.start(hostile).await.failed("hostile", &Fault::new(&cause)).await;
    }

    /// Expects a refusal without reading the file.
    async fn refused_unread(&self, hostile: ExtensionConfig, cause: &str) {
        let cause = format!("cannot start: {}", cause.replace("DIR", &self.path().to_string_lossy()));
        self.start(hostile).await.failed("hostile", &Fault::new(&cause).unread()).await;
    }
}

fn good() -> String {
    program(r#"(func (export "run") (result i32) i32.const 0)"#)
}

#[tokio::test]
async fn a_file_over_its_limit_is_refused_unread() {
    let files = Files::new();
    // Sparse: to read it would take the whole memory limit.
    fs::File::create(files.path().join("huge.wasm")).unwrap().set_len(100 << 20).unwrap();
    let cause = "`DIR/huge.wasm` has 104857600 bytes, and `file-size` allows 16 MiB: make sure of the file before you raise that limit";
    let cause = format!("cannot start: {}", cause.replace("DIR", &files.path().to_string_lossy()));
    let stage = files.start(files.extension("huge.wasm")).await;
    stage.failed("hostile", &Fault::new(&cause).unread().limit("file-size", 100 << 20, 16 << 20)).await;
}

#[tokio::test]
async fn types_that_multiply_or_nest_without_end_are_refused() {
    let files = Files::new();
    let twice = |t: usize| format!("(type $t{} (tuple $t{t} $t{t}))", t + 1);
    let multiplied: String = (0..60).map(twice).collect();
    files.write_text(
        "multiplied.wasm",
        &format!("(component (type $t0 (list u8)) {multiplied} {})", bombs::RUN),
    );
    files.refused(files.extension("multiplied.wasm"), "`DIR/multiplied.wasm` does not compile: failed to parse WebAssembly module: effective type size exceeds the \
             limit of 1000000 (at offset 0x56)").await;
    files.write("deep.wasm", &bombs::deep_types(5000));
    files.refused(files.extension("deep.wasm"), "`DIR/deep.wasm` does not compile: failed to parse WebAssembly module: type nesting is too deep (at offset 0xf7)").await;
}

/// A component can make resources of its own without any call of the host.
#[tokio::test]
async fn handles_of_its_own_end_at_what_the_class_has() {
    let files = Files::new();
    let hoards = r#"(component
        (type $r (resource (rep i32)))
        (core func $new (canon resource.new $r))
        (core func $drop (canon resource.drop $r))
        (core module $m
            (import "" "new" (func $new (param i32) (result i32)))
            (import "" "drop" (func $drop (param i32)))
            (func (export "run") (result i32)
                (local $n i32)
                ;; What is dropped does not count.
                (loop $again
                    (call $drop (call $new (i32.const 0)))
                    (br_if $again (i32.ne (local.tee $n (i32.add (local.get $n) (i32.const 1))) (i32.const 20000))))
                (loop $again (drop (call $new (i32.const 0))) (br $again))
                (i32.const 0)))
        (core instance $i (instantiate $m
            (with "" (instance (export "new" (func $new)) (export "drop" (func $drop))))))
        (func $run (result (result)) (canon lift (core func $i "run")))
        (instance $run (export "run" (func $run)))
        (export "wasi:cli/run@0.2.0" (instance $run)))"#;
    files.write_text("hoards.wasm", hoards);
    let stage = files.start(files.extension("hoards.wasm")).await;
    let fault = Fault::new("trapped: `handles` of 8192 used up").limit("handles", 8192, 8192);
    stage.failed("hostile", &fault).await;
}

#[tokio::test]
async fn what_is_no_file_or_is_reached_through_a_link_is_refused() {
    let mut files = Files::new();
    files.main.plugin_dir = Some(files.path().join("plugins"));
    let elsewhere = files.path().join("elsewhere");
    for dir in ["elsewhere", "plugins", "plugins/directory"] {
        fs::create_dir(files.path().join(dir)).unwrap();
    }
    files.write_text("elsewhere/good.wasm", &good());
    files.write_text("plugins/good.wasm", &good());
    let plugins = files.path().join("plugins");
    symlink(elsewhere.join("good.wasm"), plugins.join("link.wasm")).unwrap();
    symlink("good.wasm", plugins.join("inner-link.wasm")).unwrap();
    symlink(&elsewhere, plugins.join("way")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, plugins.join("fifo"), rustix::fs::Mode::RUSR).unwrap();
    std::os::unix::net::UnixListener::bind(plugins.join("socket")).unwrap();
    for name in ["directory", "link.wasm", "inner-link.wasm", "fifo", "socket"] {
        let extension = files.extension(&format!("plugins/{name}"));
        files.refused_unread(extension, &format!("`DIR/plugins/{name}` is not a regular file")).await;
    }
    files
        .refused_unread(
            files.extension("plugins/way/good.wasm"),
            "`DIR/plugins/way/good.wasm` is reached through `DIR/plugins/way`, which is a symlink or no directory",
        )
        .await;
    files
        .refused_unread(
            files.extension("plugins/good.wasm/good.wasm"),
            "`DIR/plugins/good.wasm/good.wasm` is reached through `DIR/plugins/good.wasm`, which is a symlink or no \
             directory",
        )
        .await;
    // A link to the plugin directory itself is the operator's.
    symlink(&plugins, files.path().join("current")).unwrap();
    files.main.plugin_dir = Some(files.path().join("current"));
    files.start(files.extension("current/good.wasm")).await.finished("hostile").await;

    files.main.plugin_dir = None;
    let mut device = files.extension("");
    device.component = ComponentSource::Path("/dev/null".into());
    files.refused_unread(device, "`/dev/null` is not a regular file").await;
}

#[tokio::test]
async fn another_file_than_the_one_pinned_is_refused() {
    let files = Files::new();
    files.write_text("good.wasm", &good());
    let mut pinned = files.extension("good.wasm");
    pinned.sha256 = Some("5e0b2a4cb0a4b4a0ab7a5a5b2a3c9f6dd1c0b6f4e6f0a1b2c3d4e5f60718293a".parse().unwrap());
    let found = weir_host::component::inspect(pinned.component.path().unwrap()).unwrap().sha256;
    let cause = format!("`DIR/good.wasm` has the SHA-256 `{found}`, which is not the one that `sha256` pins");
    files.refused(pinned.clone(), &cause).await;
    pinned.sha256 = Some(found);
    files.start(pinned).await.finished("hostile").await;
}

#[tokio::test]
async fn without_its_helper_nothing_is_compiled_and_the_error_names_it() {
    let mut files = Files::new();
    files.write_text("good.wasm", &good());
    files.main.cache_size = Some(0);
    files.compilation = no_compiler();
    let cause = "`DIR/good.wasm` was not compiled: cannot start `/nonexistent/compile-helper`: No such file or \
                 directory (os error 2)";
    let cause = format!("cannot start: {}", cause.replace("DIR", &files.path().to_string_lossy()));
    let config = Config::new(files.main.clone(), vec![files.extension("good.wasm")]);
    let main = Main::builder(config).compilation(no_compiler()).start().await.unwrap();
    assert_eq!(main.control().status("hostile").unwrap().reason, Some(cause));
}
