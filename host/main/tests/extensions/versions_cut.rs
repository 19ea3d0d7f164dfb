//! A power cut at any step of a change: in the end the version that holds serves, and nothing else.
//!
//! The device that loses power is another process: this test again, told by its environment.

use std::{
    env, fs,
    path::Path,
    process::{Command, ExitStatus},
};

use weir_host::control::Standing;

use super::versions::{Device, ask_until, serves_the_first, standing_of, start, versions};

/// The directory of the device that loses power, and its new version.
const DEVICE: &str = "WEIR_TEST_DEVICE";
const NEW: &str = "WEIR_TEST_NEW";

/// The fault point at which it does, which `weir-versions` counts.
const FAULT_POINT: &str = "WEIR_FAULT_POINT";

#[tokio::test]
async fn a_device_that_may_lose_power() {
    let (Some(dir), Some(new)) = (env::var_os(DEVICE), env::var(NEW).ok()) else { return };
    let main = start(dir.as_ref()).await;
    super::reload::write(&Path::new(&dir).join("a.wasm"), &test_guests::updated(&new));
    // Fails if the version does not come up.
    let _reloaded = main.control().reload_extension("a").await;
    ask_until(&main, 2, outcome(&new)).await;
    main.shutdown().await.unwrap();
}

fn outcome(new: &str) -> Standing {
    if new.starts_with("good") { Standing::Proven } else { Standing::Refused }
}

/// Runs the device until it has lost power, or is done.
fn run(dir: &Path, new: &str, fault_point: u32) -> ExitStatus {
    Command::new(env::current_exe().unwrap())
        .args(["versions_cut::a_device_that_may_lose_power", "--exact", "--quiet"])
        .envs([(DEVICE, dir.as_os_str()), (NEW, new.as_ref())])
        .env(FAULT_POINT, fault_point.to_string())
        .output()
        .unwrap()
        .status
}

/// Makes the state that `kept` has, as before each cut.
fn restore(device: &Device, kept: &Path) {
    let state = device.dir().join("state");
    for entry in fs::read_dir(&state).unwrap() {
        fs::remove_file(entry.unwrap().path()).unwrap();
    }
    copy(kept, &state);
    device.put("good");
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

async fn power_is_cut_at_each_step(new: &str, prove_for: &str) {
    // Failures alone decide, because a busy machine may be slow at any moment.
    let update = format!("update = {{ prove-for = '{prove_for}', min-requests = 1_000_000 }}");
    let (device, kept) = (Device::new(&update), tempfile::tempdir().unwrap());
    device.start_proven(0).await.shutdown().await.unwrap();
    copy(&device.dir().join("state"), kept.path());
    let mut cuts = 0;
    for fault_point in 1.. {
        restore(&device, kept.path());
        if run(device.dir(), new, fault_point).success() {
            break;
        }
        cuts += 1;
        device.put(new);
        let main = device.start().await;
        let answers = ask_until(&main, 2, outcome(new)).await;
        assert!(answers.trapped <= 2 && answers.errors == 0, "{fault_point}: {answers:?}");
        let versions = versions(&main);
        assert_eq!(standing_of(&versions, 1), Some(Standing::Proven), "{fault_point}");
        assert!(versions.versions.iter().all(|version| version.reason.is_some()), "{fault_point}");
        match outcome(new) {
            Standing::Refused => serves_the_first(&main).await,
            _ => assert_eq!(versions.serving, Some(2), "{fault_point}"),
        }
        main.shutdown().await.unwrap();
        let left = fs::read_dir(device.dir().join("state")).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
        assert!(left.is_empty(), "{fault_point}: {left:?}");
    }
    // Keeping a component and writing a record have five steps each, and there are more records than one.
    assert!(cuts >= 20, "{cuts}");
}

#[tokio::test]
async fn a_bad_version_gives_way_wherever_power_is_cut() {
    for new in ["fiftieth", "start", "data"] {
        power_is_cut_at_each_step(new, "1h").await;
    }
}

#[tokio::test]
async fn a_good_version_is_proven_wherever_power_is_cut() {
    power_is_cut_at_each_step("good2", "1s").await;
}
