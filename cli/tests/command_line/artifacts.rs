//! `weir keygen`, `weir compile`, and Main's cache.

use std::{
    env, fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    thread,
};

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use tempfile::TempDir;

use super::support::{Running, done, weir, with_own_component};

const PUPPET: &str = r#"
[[extension]]
id = "puppet"
path = "puppet.wasm"
fulfills = ["puppet@1"]
"#;

fn keygen(dir: &Path) -> String {
    done(weir(dir).args(["keygen", "release.key"])).good()
}

/// A device that trusts a key, and an artifact signed with it.
fn device() -> (TempDir, PathBuf) {
    let dir = with_own_component("");
    let trusted = keygen(dir.path());
    let extension = PUPPET.replace("puppet.wasm", "puppet.cwasm");
    fs::write(dir.path().join("weir.toml"), format!("[main]\n{trusted}{extension}")).unwrap();
    let compile = ["compile", "puppet.wasm", "--key", "release.key"];
    assert_eq!(done(weir(dir.path()).args(compile)).good(), "");
    fs::remove_file(dir.path().join("puppet.wasm")).unwrap();
    let artifact = dir.path().join("puppet.cwasm");
    (dir, artifact)
}

#[test]
fn a_key_is_made_once_and_for_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let line = keygen(dir.path());
    let public = line.strip_prefix("trusted-keys = [\"").and_then(|rest| rest.strip_suffix("\"]\n")).unwrap();
    assert_eq!(public.len(), 44, "{public}");
    let key = dir.path().join("release.key");
    assert_eq!(fs::metadata(&key).unwrap().mode() & 0o777, 0o600);
    let made = fs::read_to_string(&key).unwrap();
    assert!(made.starts_with("-----BEGIN PRIVATE KEY-----\n"), "another format");

    let again = done(weir(dir.path()).args(["keygen", "release.key"]));
    let refused = "error: cannot make the key `release.key`: File exists (os error 17)\n";
    assert_eq!((again.code, again.stdout.as_str(), again.stderr.as_str()), (1, "", refused));
    assert_eq!(fs::read_to_string(&key).unwrap(), made);
    assert_eq!(done(weir(dir.path()).args(["keygen", "--public", "release.key"])).good(), line);
    fs::write(dir.path().join("other.key"), "-----BEGIN PUBLIC KEY-----\n").unwrap();
    let other = done(weir(dir.path()).args(["keygen", "--public", "other.key"]));
    let refused = "error: cannot use the key `other.key`: not a private Ed25519 key in PEM, which `weir keygen` makes\n";
    assert_eq!((other.code, other.stderr.as_str()), (1, refused));
}

/// Does the work as on a kernel without Landlock and seccomp.
fn on_an_old_kernel<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let calls = [libc::SYS_landlock_create_ruleset, libc::SYS_seccomp].map(|call| (call, Vec::new())).into();
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let this = env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, unknown, this).unwrap();
    let program = BpfProgram::try_from(filter).unwrap();
    let filtered = move || {
        // For this thread, and the processes that it starts.
        apply_filter(&program).unwrap();
        work()
    };
    thread::scope(|scope| scope.spawn(filtered).join().unwrap())
}

#[test]
fn what_the_machine_lacks_to_confine_the_compiler_is_told_by_each_verb_that_compiles() {
    let dir = with_own_component(PUPPET);
    keygen(dir.path());
    fs::create_dir(dir.path().join("hooks.d")).unwrap();
    fs::copy(test_guests::path("hook"), dir.path().join("hooks.d/10-hook.wasm")).unwrap();
    let warning = "warning: the process that compiles goes without landlock, seccomp, which this machine does not \
                   have or does not allow: an attack on the compiler would get further\n";
    let verbs = [
        "compile puppet.wasm --key release.key --target aarch64-unknown-linux-gnu",
        "check weir.toml",
        "hooks run hooks.d",
    ];
    for verb in verbs {
        let done = on_an_old_kernel(|| done(weir(dir.path()).args(verb.split(' '))));
        assert_eq!((done.code, done.stderr.as_str()), (0, warning), "{verb}: {}", done.stdout);
    }
    // What is kept takes no compiler.
    let again = on_an_old_kernel(|| done(weir(dir.path()).args(["check", "weir.toml"])));
    assert_eq!(again.good(), "`puppet` is ok\n");
}

#[test]
fn what_is_compiled_and_signed_elsewhere_runs_on_the_device_that_trusts_the_key() {
    let (dir, artifact) = device();
    assert_eq!(done(weir(dir.path()).args(["check", "weir.toml"])).good(), "`puppet` is ok\n");
    let main = Running::start(dir);
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "echo here"]).good(), "here");
    let hash = main.json(&["status", "--json", "puppet"])["hash"].clone();
    assert_eq!(main.weir(&["shutdown"]).code, 0);
    assert_eq!(fs::read_dir(main.path().join("cache")).unwrap().count(), 0, "nothing was compiled");

    // The pin is the hash of the file, an artifact or not.
    let config = main.path().join("weir.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, format!("{text}sha256 = {hash}\n")).unwrap();
    assert_eq!(main.weir(&["check", "weir.toml"]).good(), "`puppet` is ok\n");
    let mut bytes = fs::read(&artifact).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&artifact, bytes).unwrap();
    let pinned = main.weir(&["check", "weir.toml"]);
    let (fault, place) = pinned.stderr.split_once('\n').unwrap();
    assert!(fault.ends_with(", which is not the one that `sha256` pins"), "{}", pinned.stderr);
    assert!(place.contains(" | sha256 = "), "{}", pinned.stderr);
    fs::write(&config, text).unwrap();
    let forged = main.weir(&["check", "weir.toml"]);
    let (fault, place) = forged.stderr.split_once('\n').unwrap();
    assert!(fault.ends_with("/puppet.cwasm` does not match its signature"), "{}", forged.stderr);
    assert!(place.contains(" | path = "), "{}", forged.stderr);
}

#[test]
#[cfg(feature = "cross-compiler")]
fn devices_of_every_kind_can_be_compiled_for() {
    let dir = with_own_component(PUPPET);
    keygen(dir.path());
    for target in ["aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl", "pulley32"] {
        let compile =
            ["compile", "puppet.wasm", "--key", "release.key", "--target", target, "--output", "other.cwasm"];
        assert_eq!(done(weir(dir.path()).args(compile)).good(), "");
        assert!(dir.path().join("other.cwasm").is_file());
    }
    let compile = ["compile", "puppet.wasm", "--key", "release.key", "--target", "toaster"];
    let refused = done(weir(dir.path()).args(compile));
    let why = "error: there is no target `toaster`: Unrecognized architecture: toaster\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (1, why));
    assert!(!dir.path().join("puppet.cwasm").exists());
}

#[test]
fn what_was_compiled_serves_the_next_start() {
    let mut main = Running::start(with_own_component(PUPPET));
    let cached = || -> Vec<_> {
        let files = fs::read_dir(main.path().join("cache")).unwrap().map(|file| file.unwrap());
        files.map(|file| (file.file_name(), file.metadata().unwrap().ino())).collect()
    };
    let before = cached();
    assert_eq!(before.len(), 2, "the key and one entry: {before:?}");
    assert_eq!(main.weir(&["restart", "puppet"]).code, 0);
    assert_eq!(cached(), before);
    assert_eq!(main.weir(&["shutdown"]).code, 0);
    let (_, log) = main.wait();
    assert!(!log.contains("WARN"), "{log}");
}

#[test]
fn a_disk_without_room_for_the_cache_costs_a_warning() {
    let dir = with_own_component(PUPPET);
    let path = dir.path().to_owned();
    // With a limit of 256 KiB per file, compiled code does not fit, but a memory image does.
    let mut command = std::process::Command::new("sh");
    let limited = "trap '' XFSZ; ulimit -f 512; exec \"$0\" run weir.toml";
    command.args(["-c", limited, env!("CARGO_BIN_EXE_weir")]).current_dir(&path).env_clear();
    command.envs(super::support::places(&path));
    let mut main = Running::spawn(dir, command);
    let warning = main.until("WARN");
    let why = "[puppet] the compiled code is not kept for the next start: `";
    assert!(warning.contains(why) && warning.contains("File too large (os error 27)"), "{warning}");
    main.until("extensions are ready");
    assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "echo here"]).good(), "here");
    let left: Vec<_> =
        fs::read_dir(path.join("cache")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(left, ["weir-cache.key"]);
}
