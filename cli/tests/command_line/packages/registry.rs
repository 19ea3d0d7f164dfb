//! The program for registries: how it is found, what it is told, and how it ends.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use rustix::process::{Pid, Signal, kill_process};

use super::{super::support::done, Place};

#[test]
fn a_registry_is_spoken_to_by_its_own_program() {
    let place = Place::new();
    let bin = place.path("bin");
    fs::create_dir(&bin).unwrap();
    let mut add = std::process::Command::new(own_weir(&bin));
    add.current_dir(place.dir.path()).env_clear().env("PATH", &bin);
    let without = done(add.args(["add", "oci://registry/echo:1.0.0", "--config", "device/weir.toml"]));
    assert_ne!(without.code, 0, "{}", without.stdout);
    let why = "`oci://registry/echo:1.0.0` needs the program `weir-registry`, which is neither beside `weir`";
    assert!(without.stderr.contains(why), "{}", without.stderr);
}

#[test]
fn a_signal_ends_the_program_for_registries_too_and_leaves_nothing() {
    for signal in [Signal::TERM, Signal::INT] {
        let place = Place::new();
        let (bin, tmp) = (place.path("bin"), place.path("tmp"));
        fs::create_dir(&bin).unwrap();
        fs::create_dir(&tmp).unwrap();
        let own = own_weir(&bin);
        let script = "#!/bin/sh\nfor last; do :; done\nmkdir \"$last\"\necho $$ > started\nexec sleep 600\n";
        put_registry(&bin, script);
        let add = std::process::Command::new(&own)
            .current_dir(place.dir.path())
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin".as_ref()), ("TMPDIR", tmp.as_os_str())])
            .args(["add", "oci://registry/echo:1.0.0", "--config", "device/weir.toml"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let started = || fs::read_to_string(place.path("started")).is_ok_and(|pid| pid.ends_with('\n'));
        while !started() {
            std::thread::yield_now();
        }
        let pid = fs::read_to_string(place.path("started")).unwrap();
        kill_process(Pid::from_child(&add), signal).unwrap();
        let ended = add.wait_with_output().unwrap();
        assert!(!ended.status.success());
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "error: interrupted\n");
        assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0);
        assert!(!Path::new("/proc").join(pid.trim()).exists());
        assert!(!place.file().contains("echo"));
    }
}

/// Another `weir` in this directory, which finds programs beside it there.
fn own_weir(bin: &Path) -> PathBuf {
    let own = bin.join("weir");
    fs::hard_link(env!("CARGO_BIN_EXE_weir"), &own)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_weir"), &own).map(drop))
        .unwrap();
    own
}

/// Makes this script the program for registries.
fn put_registry(bin: &Path, script: &str) {
    fs::write(bin.join("weir-registry"), script).unwrap();
    fs::set_permissions(bin.join("weir-registry"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_the_environment_says_of_registries_reaches_the_program_for_them() {
    let place = Place::new();
    let bin = place.path("bin");
    fs::create_dir(&bin).unwrap();
    // The program beside `weir` comes before all others.
    let own = own_weir(&bin);
    let script = "#!/bin/sh\nfor last; do :; done\n[ \"$WEIR_REGISTRY_TIMEOUT\" = 1h ] || exit 6\n\
                  mkdir \"$last\" && tar -xf echo-1.0.0.tar -C \"$last\"\n";
    put_registry(&bin, script);
    let add = |variable: &str| {
        let mut command = std::process::Command::new(&own);
        command.current_dir(place.dir.path()).env_clear().env("PATH", "/usr/bin:/bin").env(variable, "1h");
        done(command.args(["add", "oci://registry/echo:1.0.0", "--config", "device/weir.toml"]))
    };
    let late = add("OTHER");
    assert_ne!(late.code, 0, "{}", late.stdout);
    assert!(late.stderr.contains("`oci://registry/echo:1.0.0` was not pulled"), "{}", late.stderr);
    add("WEIR_REGISTRY_TIMEOUT").good();
    assert!(place.file().contains("# from oci://registry/echo:1.0.0"));
}
