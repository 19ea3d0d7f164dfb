//! An abandoned compiler process ends, and Main survives one that misbehaves. Alone in its process, because it counts
//! its children.

#![expect(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use weir_host::{
    Config, ExtensionConfig, Main, MainConfig,
    component::{self, Compilation, LoadFault, SigningKey},
    config::{Limits, RestartPolicy, Traces},
    control::ExtensionState,
};

const PATIENCE: Duration = Duration::from_secs(20);

/// The tests count the children of their process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Nothing is found that another test has compiled.
fn uncached() -> MainConfig {
    let mut main = MainConfig::default();
    main.cache_size = Some(0);
    main
}

fn deaf() -> Compilation {
    Compilation::Child { program: "/bin/sleep".into(), arguments: vec!["1000".into()] }
}

fn extension(dir: &TempDir) -> ExtensionConfig {
    let path = dir.path().join("a.wasm");
    fs::write(&path, wat::parse_str("(component)").unwrap()).unwrap();
    let mut extension = ExtensionConfig::new("a".parse().unwrap(), path);
    extension.restart.policy = RestartPolicy::Never;
    extension.autostart = false;
    extension.limits.compile_timeout = Duration::from_secs(60 * 60);
    extension
}

async fn main_with(extension: ExtensionConfig) -> Main {
    let config = Config::new(uncached(), vec![extension]);
    Main::builder(config).compilation(deaf()).start().await.unwrap()
}

/// Child processes, dead or alive.
fn children() -> Vec<String> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |task: &Path| fs::read_to_string(task.join("children")).unwrap_or_default();
    let children: String = tasks.map(|task| of(&task.unwrap().path())).collect();
    let state = |pid: &str| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    children.split_whitespace().map(state).collect()
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: {:?}", children());
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_stop_while_it_is_loaded_ends_the_compiler() {
    let _alone = ALONE.lock().await;
    let dir = tempfile::tempdir().unwrap();
    let main = main_with(extension(&dir)).await;
    let control = main.control();
    let stopped = async {
        until("it is compiled", || children().len() == 1).await;
        control.stop("a").await.unwrap();
    };
    let (started, ()) = tokio::join!(control.start("a"), stopped);
    started.unwrap_err();
    until("the compiler is gone", || children().is_empty()).await;
}

#[tokio::test]
async fn a_reload_that_is_given_up_ends_the_compiler() {
    let _alone = ALONE.lock().await;
    let dir = tempfile::tempdir().unwrap();
    let main = main_with(extension(&dir)).await;
    let control = main.control();
    let stopped = async {
        until("it is compiled", || children().len() == 1).await;
        control.stop("a").await.unwrap();
    };
    let (reloaded, ()) = tokio::join!(control.reload_extension("a"), stopped);
    reloaded.unwrap_err();
    until("the compiler is gone", || children().is_empty()).await;
}

#[test]
fn a_main_that_has_shut_down_leaves_no_compiler_dead_or_alive() {
    let _alone = ALONE.blocking_lock();
    let dir = tempfile::tempdir().unwrap();
    let mut extension = extension(&dir);
    extension.autostart = true;
    let config = Config::new(uncached(), vec![extension]);
    // From a program without tokio.
    let (main, _started) = Main::builder(config).compilation(deaf()).launch().unwrap();
    while children().is_empty() {
        std::thread::yield_now();
    }
    drop(main);
    let begun = Instant::now();
    while !children().is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", children());
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn what_takes_as_long_to_compile_as_failures_count_is_not_compiled_for_ever() {
    let _alone = ALONE.lock().await;
    let dir = tempfile::tempdir().unwrap();
    let mut bomb = extension(&dir);
    bomb.autostart = true;
    // In proportion to the defaults: `compile-timeout` and `restart.window` are a minute each.
    bomb.limits.compile_timeout = Duration::from_millis(100);
    bomb.restart.policy = RestartPolicy::OnFailure;
    bomb.restart.window = Duration::from_millis(100);
    bomb.restart.backoff = Duration::from_millis(1);
    let config = Config::new(uncached(), vec![bomb]);
    let (main, _started) = Main::builder(config).compilation(deaf()).launch().unwrap();
    let status = || main.control().status("a").unwrap();
    let has_ended = || matches!(status().state, ExtensionState::Quarantined | ExtensionState::Failed);
    until("it comes to an end", || has_ended() || status().restarts > 10).await;
    assert!(has_ended(), "compiled {} times, and will be again", status().restarts);
}

#[test]
fn a_file_that_has_no_room_in_the_compiler_is_refused_for_its_memory() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("padded.wasm");
    let mut component = wat::parse_str("(component)").unwrap();
    // A custom section of 60 MiB, as interpreters carry for their libraries.
    let bytes: u32 = 60 << 20;
    component.push(0);
    component
        .extend([0x7f & bytes, bytes >> 7 & 0x7f, bytes >> 14 & 0x7f, bytes >> 21].map(|part| part as u8));
    let last = component.len() - 1;
    component[last - 3..last].iter_mut().for_each(|byte| *byte |= 0x80);
    component.resize(component.len() + bytes as usize, 0);
    fs::write(&path, component).unwrap();
    let mut limits = Limits::max();
    limits.compile_memory = 64 << 20;
    let helper = env!("CARGO_BIN_EXE_weir-compile-helper").into();
    let child = Compilation::Child { program: helper, arguments: Vec::new() };
    let key = SigningKey::generate().unwrap();
    let error = component::compile(&path, None, &limits, Traces::default(), &child, &key).unwrap_err();
    assert!(matches!(error.fault, LoadFault::CompileMemory(_)), "{error}");
}
