//! Main where there is little address space.

use std::{fs, process::Command};

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::support::{Running, configured, own_cache, places};

/// What addresses of 39 bits reach, in KiB.
const OF_39_BITS: &str = "536870912";

/// Main with 200 extensions, in a process that may have no more than that.
fn with_200(setting: &str) -> Running {
    let extension = |number: u32| {
        // One may grow out of what its memory reserves, 64 MiB.
        let memory = if number == 7 { "limits.memory = \"100 MiB\"\n" } else { "" };
        format!(
            "[[extension]]\nid = \"e{number}\"\npath = \"puppet.wasm\"\nfulfills = [\"e{number}@1\"]\n\
             config.contract = \"e{number}@1\"\nrestart.policy = \"never\"\n{memory}"
        )
    };
    let extensions: String = (0..200).map(extension).collect();
    let dir = configured(&format!("{setting}\n{extensions}"));
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v {OF_39_BITS}; exec \"$0\" run weir.toml");
    command.args(["-c", &limited, env!("CARGO_BIN_EXE_weir")]).current_dir(dir.path()).env_clear();
    command.envs(places(dir.path()));
    Running::spawn(dir, command)
}

#[test]
fn in_39_bits_of_addresses_200_extensions_start_without_being_told() {
    let mut main = with_200("");
    let reason = main.until("memories reserve little address space");
    assert!(reason.contains("this process is limited to 4 TiB of it or less"), "{reason}");
    let ready = main.until("extensions are ready");
    assert!(ready.contains("200 of 200 extensions are ready"), "{ready}");
    for number in [0, 199] {
        let contract = format!("e{number}@1");
        assert_eq!(main.weir(&["call", &contract, "run", "--raw", "own-name"]).good(), format!("e{number}"));
    }
    for bytes in ["3000000", "80000000"] {
        assert_eq!(
            main.weir(&["call", "e7@1", "run", "--raw", &format!("reserve {bytes}")]).good(),
            "reserved"
        );
    }
}

#[test]
fn with_large_reservations_they_do_not_all_start() {
    let mut main = with_200("address-space = \"large\"");
    let failed = main.until("failed: cannot start");
    let advice =
        "for want of addresses (raise `ulimit -v` or `vm.max_map_count`, or see `main.address-space`)";
    assert!(failed.contains(advice), "{failed}");
    let ready = main.until("extensions are ready");
    assert!(!ready.contains("200 of 200"), "there was room for all: {ready}");
}

#[test]
fn what_was_compiled_for_one_class_is_compiled_again_for_the_other() {
    let extension = "[[extension]]\nid = \"puppet\"\npath = \"puppet.wasm\"\nfulfills = [\"puppet@1\"]\n";
    let dir = configured(extension);
    let cache = own_cache(dir.path());
    let mut dir = Some(dir);
    let mut entries = Vec::new();
    for setting in ["large", "small", "large"] {
        let there = dir.take().unwrap();
        let config = there.path().join("weir.toml");
        let text = fs::read_to_string(&config).unwrap();
        let others: Vec<_> = text.lines().filter(|line| !line.starts_with("address-space")).collect();
        let text = others.join("\n").replacen("[main]", &format!("[main]\naddress-space = \"{setting}\""), 1);
        fs::write(&config, text).unwrap();
        let main = Running::start(there);
        assert_eq!(main.weir(&["call", "puppet@1", "run", "--raw", "echo here"]).good(), "here");
        assert_eq!(main.weir(&["shutdown"]).code, 0);
        dir = Some(main.into_dir());
        entries.push(fs::read_dir(&cache).unwrap().count());
    }
    assert_eq!(entries, [2, 3, 3], "the key, and an entry for each class");
}

/// Leaves this process no room for the stack of one more thread, 2 MiB.
fn take_addresses_away(pid: u32) {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let used = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let used: u64 = used.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    let limit = Rlimit { current: Some((used + 1024) * 1024), ..getrlimit(Resource::As) };
    prlimit(Pid::from_raw(pid.try_into().unwrap()), Resource::As, limit).unwrap();
}

#[test]
fn out_of_addresses_main_still_tells_what_it_knows_without_a_new_thread() {
    // Nothing is compiled or loaded: threads that have ended leave their stacks to the next ones.
    let main = Running::with("[[extension]]\nid = \"idle\"\npath = \"puppet.wasm\"\nautostart = false\n");
    take_addresses_away(main.pid());
    // It reads files, so it needs a thread: there is none.
    let plan = main.weir(&["plan"]);
    assert_eq!(plan.code, 8, "{plan:?}");
    assert!(plan.stderr.contains("overloaded: cannot put the report together: "), "{plan:?}");
    let listed = main.weir(&["ps"]).good();
    assert!(listed.lines().any(|line| line.starts_with("idle ")), "{listed}");
    assert_eq!(main.json(&["ps", "--json"])["extensions"][0]["id"], "idle");
    let metrics = main.weir(&["metrics"]).good();
    assert!(metrics.contains("weir_extension_state{extension=\"idle\",state=\"stopped\"}"), "{metrics}");
}
