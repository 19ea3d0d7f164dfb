//! The wrong thing in the cache, or no cache.

use std::{
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
};

use weir_host::{MainConfig, logs::Level};

use super::*;

struct Cached {
    files: Files,
}

impl Cached {
    fn new() -> Self {
        let mut files = Files::new();
        files.main.cache_dir = Some(files.path().join("cache"));
        files.write_text("good.wasm", &good());
        Self { files }
    }

    fn dir(&self) -> PathBuf {
        self.files.path().join("cache")
    }

    fn entries(&self) -> Vec<PathBuf> {
        let mut entries: Vec<_> =
            fs::read_dir(self.dir()).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.retain(|path| !path.ends_with("weir-cache.key"));
        entries.sort();
        entries
    }

    fn entry(&self) -> PathBuf {
        let entries = self.entries();
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        entry.clone()
    }

    /// Runs the component; returns Main's warnings.
    async fn run(&self, compilation: Compilation) -> Vec<String> {
        let mut hostile = self.files.extension("good.wasm");
        hostile.id = "good".parse().unwrap();
        let config = Config::new(self.files.main.clone(), vec![hostile]);
        let main = Main::builder(config).compilation(compilation).start().await.unwrap();
        let reason = support::reached(&main, "good", ExtensionState::Stopped).await;
        assert_eq!(reason, None);
        let lines = main.control().logs();
        main.shutdown().await.unwrap();
        let dir = self.files.path().to_string_lossy().into_owned();
        let warnings = lines.iter().filter(|line| line.level == Level::Warn);
        warnings.map(|line| line.message.replace(&dir, "DIR")).collect()
    }

    /// Expects a fresh compilation with this warning, which then serves.
    async fn heals(&self, why: &str) {
        let warnings = self.run(child()).await;
        assert_eq!(warnings, [format!("compiled again, because the cached code cannot be used: {why}")]);
        self.serves().await;
    }

    /// Expects no compilation.
    async fn serves(&self) {
        assert_eq!(self.run(no_compiler()).await, [""; 0]);
    }
}

#[tokio::test]
async fn what_was_compiled_is_kept_for_this_user_alone_and_serves_the_next_start() {
    let cached = Cached::new();
    assert_eq!(cached.run(child()).await, [""; 0]);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&cached.dir()), 0o700);
    assert_eq!((mode(&cached.entry()), mode(&cached.dir().join("weir-cache.key"))), (0o600, 0o600));
    cached.serves().await;
    // Also after compiling in Main.
    let other = Cached::new();
    assert_eq!(other.run(Compilation::InProcess).await, [""; 0]);
    other.serves().await;
}

#[tokio::test]
async fn an_entry_that_was_changed_is_compiled_afresh() {
    let cached = Cached::new();
    cached.run(child()).await;
    let entry = cached.entry();
    let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
    let why = format!("`DIR/cache/{name}` was changed, or written by somebody else");
    let good = fs::read(&entry).unwrap();
    for bit in [0, 7 * 8, 8 * 8, 39 * 8 + 7, 40 * 8, good.len() * 4, good.len() * 8 - 1] {
        let mut flipped = fs::read(&entry).unwrap();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&entry, flipped).unwrap();
        cached.heals(&why).await;
    }
    for length in [0, 7, 8, 39, 40, 41, good.len() - 1] {
        fs::write(&entry, &good[..length]).unwrap();
        cached.heals(&why).await;
    }
    // From another device, for the same component.
    let other = Cached::new();
    other.run(child()).await;
    fs::copy(other.entry(), &entry).unwrap();
    cached.heals(&why).await;
    // From this device, for another component.
    cached.files.write_text("good.wasm", &program(r#"(func (export "run") (result i32) i32.const 1)"#));
    let mut failing = cached.files.extension("good.wasm");
    failing.id = "good".parse().unwrap();
    let config = Config::new(cached.files.main.clone(), vec![failing]);
    Main::builder(config).compilation(child()).start().await.unwrap().shutdown().await.unwrap();
    let [a, b] = &cached.entries()[..] else { panic!() };
    let (ours, theirs) = if *a == entry { (a, b) } else { (b, a) };
    fs::copy(theirs, ours).unwrap();
    cached.files.write_text("good.wasm", &super::good());
    cached.heals(&why).await;
}

#[tokio::test]
async fn an_entry_of_another_version_processor_or_configuration_is_compiled_afresh() {
    let cached = Cached::new();
    cached.run(child()).await;
    let entry = cached.entry();
    let name = entry.file_name().unwrap().to_str().unwrap();
    let (component, engine) = name.rsplit_once('-').unwrap();
    let other =
        format!("{component}-{}", engine.chars().rev().filter(char::is_ascii_hexdigit).collect::<String>());
    fs::rename(&entry, entry.with_file_name(other)).unwrap();
    cached.heals("it was compiled by another version, for another processor or with other settings").await;
    // Both stay: another Main may use the other version.
    assert_eq!(cached.entries().len(), 2);
}

#[tokio::test]
async fn a_key_that_others_may_know_is_exchanged() {
    let cached = Cached::new();
    cached.run(child()).await;
    let key = cached.dir().join("weir-cache.key");
    let name = cached.entry().file_name().unwrap().to_str().unwrap().to_owned();
    let why = format!("`DIR/cache/{name}` was changed, or written by somebody else");
    let mut known = fs::read(&key).unwrap();

    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    cached.heals(&why).await;
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    assert_ne!(fs::read(&key).unwrap(), known);

    for wrong in [&b""[..], b"short", &[0; 65]] {
        known = fs::read(&key).unwrap();
        fs::write(&key, wrong).unwrap();
        cached.heals(&why).await;
        assert_ne!(fs::read(&key).unwrap(), known);
    }
    fs::remove_file(&key).unwrap();
    cached.heals(&why).await;
}

#[tokio::test]
async fn without_a_usable_cache_extensions_run_and_main_says_why() {
    let mut cached = Cached::new();
    let file = cached.files.path().join("file");
    fs::write(&file, "").unwrap();
    let unused = |read: &str, kept: &str| {
        [
            format!("compiled again, because the cached code cannot be used: {read}"),
            format!("the compiled code is not kept for the next start: {kept}"),
        ]
    };
    // A file in the way.
    cached.files.main.cache_dir = Some(file.join("cache"));
    let why = "`DIR/file/cache` cannot be used: Not a directory (os error 20)";
    assert_eq!(cached.run(child()).await, unused(why, why));
    cached.files.main.cache_dir = Some(file);
    let why = "`DIR/file` must be a directory that this user owns and nobody else can write to";
    assert_eq!(cached.run(child()).await, unused(why, why));
    // Missing, where nobody can make one.
    cached.files.main.cache_dir = Some("/proc/weir-cache".into());
    let why = "`/proc/weir-cache` cannot be used: No such file or directory (os error 2)";
    assert_eq!(cached.run(child()).await, unused("", why)[1..]);
    // Writable by others.
    let shared = cached.files.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    cached.files.main.cache_dir = Some(shared);
    let why = "`DIR/shared` must be a directory that this user owns and nobody else can write to";
    assert_eq!(cached.run(child()).await, unused(why, why));
    // A directory instead of the entry, and a FIFO instead of the key.
    cached.files.main.cache_dir = Some(cached.dir());
    cached.run(child()).await;
    let (entry, key) = (cached.entry(), cached.dir().join("weir-cache.key"));
    fs::remove_file(&key).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, &key, rustix::fs::Mode::RUSR).unwrap();
    let name = entry.file_name().unwrap().to_str().unwrap().to_owned();
    cached.heals(&format!("`DIR/cache/{name}` was changed, or written by somebody else")).await;
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    let warnings = cached.run(child()).await;
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}

#[tokio::test]
async fn what_was_not_used_for_longest_makes_room() {
    let cached = Cached::new();
    cached.run(child()).await;
    // Older, so removed first; one is left by a Main killed while writing.
    for name in ["weir-cache-0", "weir-cache-1", ".weir-cache-2"] {
        fs::write(cached.dir().join(name), vec![0; 400_000]).unwrap();
        let file = fs::File::options().write(true).open(cached.dir().join(name)).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    let first = cached.entry_besides(&["weir-cache-0", "weir-cache-1", ".weir-cache-2"]);
    cached
        .files
        .write_text("good.wasm", &format!("{} ;; another", good()).replace("i32.const 0", "i32.const 0 nop"));
    let mut main: MainConfig = cached.files.main.clone();
    main.cache_size = Some(1 << 20);
    let config = Config::new(main, vec![cached.files.extension("good.wasm")]);
    let main = Main::builder(config).compilation(child()).start().await.unwrap();
    support::reached(&main, "hostile", ExtensionState::Stopped).await;
    let left = cached.entries();
    assert!(left.contains(&first), "{left:?}");
    assert_eq!(left.len(), 4, "{left:?}");
}

#[tokio::test]
async fn mains_that_share_a_cache_do_each_other_no_harm() {
    let cached = Cached::new();
    let runs = (0..4).map(|_| cached.run(child()));
    let warnings = futures_util::future::join_all(runs).await.concat();
    assert_eq!(warnings, [""; 0]);
    cached.serves().await;
    assert_eq!(cached.entries().len(), 1);
}

impl Cached {
    fn entry_besides(&self, others: &[&str]) -> PathBuf {
        let mut entries = self.entries();
        entries.retain(|path| !others.iter().any(|other| path.ends_with(other)));
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        entry.clone()
    }
}
