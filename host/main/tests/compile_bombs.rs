//! Compiling a component costs Main no memory. Alone in its process, which it measures.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "shared with the hostile tests")]
#[path = "hostile/bombs.rs"]
mod bombs;

use std::{fs, path::Path, time::Duration};

use weir_host::{
    Config, ExtensionConfig, Main, MainConfig, component::Compilation, config::RestartPolicy,
    control::ExtensionState,
};

/// Growth of Main's peak resident memory, in bytes.
const ALLOWED: u64 = 5 << 20;

#[tokio::test]
async fn no_bomb_moves_the_memory_of_main() {
    let dir = tempfile::tempdir().unwrap();
    let padded = {
        // Valid but for its end, so that all of it is read.
        let mut component = wat::parse_str("(component)").unwrap();
        component.extend(b"\0\xff\xff\xff\x06\x01a");
        component.resize(14 << 20, 0);
        component
    };
    let bombs = [
        ("time", bombs::time(), "`compile-timeout`"),
        ("memory", bombs::memory(), "`compile-memory`"),
        ("nested", bombs::nested(20_000), "`compile-memory`"),
        ("code", bombs::code(), "`code-size`"),
        ("padded", padded, "does not compile"),
        ("names", bombs::names(60_000), "`code-size`"),
    ];
    let extension = |name: &str| {
        let mut extension = ExtensionConfig::new(name.parse().unwrap(), dir.path().join(name));
        extension.autostart = false;
        extension.restart.policy = RestartPolicy::Never;
        // Slow ones need memory, too: each has only one of the two.
        let (seconds, memory) = if name == "time" { (2, 1 << 36) } else { (120, 512 << 20) };
        extension.limits.compile_timeout = Duration::from_secs(seconds);
        extension.limits.compile_memory = memory;
        extension.limits.code_size = 1 << 20;
        extension
    };
    fs::write(dir.path().join("warm-up"), wat::parse_str("(component)").unwrap()).unwrap();
    for (name, component, _) in &bombs {
        fs::write(dir.path().join(name), component).unwrap();
    }
    let names = bombs.iter().map(|(name, ..)| *name).chain(["warm-up"]);
    let mut main = MainConfig::default();
    main.cache_size = Some(0);
    let config = Config::new(main, names.map(extension).collect());
    let helper = env!("CARGO_BIN_EXE_weir-compile-helper").into();
    let compilation = Compilation::Child { program: helper, arguments: Vec::new() };
    let main = Main::builder(config).compilation(compilation).start().await.unwrap();
    main.control().start("warm-up").await.unwrap_err();
    for (name, _, why) in bombs {
        let before = resident("VmRSS");
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let refused = main.control().start(name).await.unwrap_err().to_string();
        assert!(refused.contains(why), "{name}: {refused}");
        let grown = resident("VmHWM").saturating_sub(before);
        eprintln!("{name}: {} KiB at most", grown / 1024);
        assert!(grown <= ALLOWED, "{name}: {grown} bytes more");
        assert_eq!(main.control().status(name).unwrap().state, ExtensionState::Failed);
        assert_eq!(children(), 0, "{name}: its compiler is gone");
    }
}

fn resident(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Child processes, dead or alive.
fn children() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let of = |task: &Path| {
        fs::read_to_string(task.join("children")).unwrap_or_default().split_whitespace().count()
    };
    tasks.map(|task| of(&task.unwrap().path())).sum()
}
