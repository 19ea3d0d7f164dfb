//! Versions that do not read each other's data: it is kept before its form changes, and comes back only if an operator
//! says so. Whoever writes here is the test, in the name of the extension.

use std::{env, fs, path::Path, process::Command, time::Duration};

use weir_host::{
    Main,
    control::{ControlError, ExtensionState, Standing, VersionError},
};

use super::versions::{Device, ask, ask_until, serves_the_first, standing_of, start, versions, why};

/// The directory of the device that loses power.
const DEVICE: &str = "WEIR_TEST_DATA_DEVICE";

/// Failures alone decide, because a busy machine may be slow at any moment.
const UPDATE: &str = "update = { prove-for = '1h', min-requests = 1_000_000 }";
const DATA_TOO: &str = "update = { prove-for = '1h', min-requests = 1_000_000, data-too = true }";
const STORES: &str = "grants.stores = ['notes']\n[store.notes]";

/// A device on which version 1.0.0 has written `old`.
async fn device(update: &str, more: &str) -> (Device, Main) {
    let device = Device::new(update);
    device.configure(update, &format!("{more}\n{STORES}"));
    let main = device.start_proven(0).await;
    write(&main, "old").await;
    (device, main)
}

fn put(device: &Device, name: &str) {
    super::reload::write(&device.dir().join("a.wasm"), &test_guests::updated_to(name, "1.2.0"));
}

async fn write(main: &Main, value: &str) {
    let bucket = main.control().bucket("notes", "a").unwrap();
    bucket.change(vec![("form".to_owned(), Some(value.to_owned().into()))]).await.unwrap();
}

async fn read(main: &Main) -> String {
    let bucket = main.control().bucket("notes", "a").unwrap();
    let value = bucket.get("form".to_owned(), u64::MAX).await.unwrap().unwrap();
    String::from_utf8(value.to_vec()).unwrap()
}

async fn until(main: &Main, state: ExtensionState) {
    until_within(main, "a", state, super::support::PATIENCE).await;
}

async fn until_within(main: &Main, id: &str, state: ExtensionState, time: Duration) {
    let is_there = async {
        while main.control().status(id).unwrap().state != state {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let in_time = tokio::time::timeout(time, is_there).await;
    assert!(in_time.is_ok(), "{:#?}\n{:#?}", main.control().status(id), versions(main));
}

/// Waits for both instances, and less than one waits that cannot get at the data.
async fn both_are_ready(main: &Main) {
    for id in ["a", "a.2"] {
        until_within(main, id, ExtensionState::Ready, Duration::from_secs(8)).await;
    }
}

#[tokio::test]
async fn a_bad_version_whose_data_nobody_else_reads_is_held_until_an_operator_restores_the_data() {
    let (device, main) = device(UPDATE, "").await;
    put(&device, "fiftieth");
    main.control().reload_extension("a").await.unwrap();
    write(&main, "new").await;
    ask_until(&main, 2, Standing::Refused).await;
    until(&main, ExtensionState::Failed).await;
    main.shutdown().await.unwrap();
    let main = device.start().await;
    until(&main, ExtensionState::Failed).await;
    let reason = main.control().status("a").unwrap().reason.unwrap();
    assert!(reason.contains("`weir rollback a 1 --data-too`"), "{reason}");
    assert_eq!(read(&main).await, "new");
    let refused = main.control().roll_back("a", None).await.unwrap_err();
    assert!(matches!(refused, ControlError::Version(VersionError::Data { .. })), "{refused}");
    main.control().roll_back_with_data("a", None).await.unwrap();
    serves_the_first(&main).await;
    assert_eq!(read(&main).await, "old");
    main.shutdown().await.unwrap();
    let main = device.start().await;
    serves_the_first(&main).await;
    assert_eq!((read(&main).await.as_str(), versions(&main).data.unwrap().snapshots.len()), ("old", 0));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn where_the_operator_allows_it_the_data_comes_back_with_the_version() {
    for more in ["", "reload = 'overlap'"] {
        let (device, main) = device(DATA_TOO, more).await;
        put(&device, "fiftieth");
        main.control().reload_extension("a").await.unwrap();
        assert_eq!(versions(&main).data.unwrap().snapshots.len(), 1);
        write(&main, "new").await;
        ask_until(&main, 2, Standing::Refused).await;
        serves_the_first(&main).await;
        assert_eq!(read(&main).await, "old");
        main.shutdown().await.unwrap();
    }
}

#[tokio::test]
async fn a_version_that_does_not_come_up_and_writes_nothing_gives_way_by_itself() {
    let (device, main) = device(UPDATE, "").await;
    put(&device, "start");
    main.control().reload_extension("a").await.unwrap_err();
    serves_the_first(&main).await;
    assert!(why(&versions(&main), 2).starts_with("it did not come up: "), "{:?}", versions(&main));
    assert_eq!(read(&main).await, "old");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_good_version_goes_back_past_its_data_only_with_it() {
    let (device, main) = device(UPDATE, "").await;
    let control = main.control();
    put(&device, "good2");
    control.reload_extension("a").await.unwrap();
    control.accept_version("a").await.unwrap();
    write(&main, "new").await;
    let refused = control.roll_back("a", None).await.unwrap_err().to_string();
    assert!(refused.contains("With --data-too the data of"), "{refused}");
    // An older file changes nothing either.
    device.put("good");
    let restarts = control.status("a").unwrap().restarts;
    let refused = control.reload_extension("a").await.unwrap_err().to_string();
    assert!(refused.contains("cannot read the extension's data"), "{refused}");
    assert_eq!((ask(main.client(), 5).await.good, versions(&main).serving), (5, Some(2)));
    assert_eq!(control.status("a").unwrap().restarts, restarts);
    control.roll_back_with_data("a", Some(1)).await.unwrap();
    serves_the_first(&main).await;
    assert_eq!(read(&main).await, "old");
    // The way forward is open, too, and begins with the data that is there.
    put(&device, "good2");
    control.reload_extension_now("a").await.unwrap();
    assert_eq!((read(&main).await.as_str(), versions(&main).serving), ("old", Some(2)));
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn instances_that_share_the_data_change_together() {
    let (device, main) = device(UPDATE, "instances = 2").await;
    let control = main.control();
    put(&device, "good2");
    let refused = control.reload_extension("a").await.unwrap_err().to_string();
    assert!(refused.contains("`weir stop a`"), "{refused}");
    serves_the_first(&main).await;
    control.stop("a").await.unwrap();
    control.start("a").await.unwrap();
    both_are_ready(&main).await;
    assert_eq!((versions(&main).serving, versions(&main).canary), (Some(2), None));
    write(&main, "new").await;
    assert!(control.roll_back("a", None).await.is_err());
    control.roll_back_with_data("a", None).await.unwrap();
    both_are_ready(&main).await;
    serves_the_first(&main).await;
    assert_eq!(read(&main).await, "old");
    // Both start at once with what is there.
    main.shutdown().await.unwrap();
    let main = device.start().await;
    both_are_ready(&main).await;
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_device_with_data_that_may_lose_power() {
    let Some(dir) = env::var_os(DEVICE) else { return };
    let main = start(dir.as_ref()).await;
    super::reload::write(&Path::new(&dir).join("a.wasm"), &test_guests::updated_to("fiftieth", "1.2.0"));
    match main.control().status("a.2") {
        Err(_) => main.control().reload_extension("a").await.unwrap(),
        Ok(_) => {
            main.control().stop("a").await.unwrap();
            main.control().start("a").await.unwrap();
        }
    }
    write(&main, "new").await;
    ask_until(&main, 2, Standing::Refused).await;
    serves_the_first(&main).await;
    assert_eq!(read(&main).await, "old");
    main.shutdown().await.unwrap();
}

#[tokio::test]
async fn wherever_power_is_cut_the_version_that_serves_reads_its_data() {
    cut_power_everywhere("").await;
}

#[tokio::test]
async fn wherever_power_is_cut_all_instances_read_their_data() {
    cut_power_everywhere("instances = 2").await;
}

async fn cut_power_everywhere(more: &str) {
    let mut cuts = 0;
    for fault_point in 1.. {
        let (device, main) = device(DATA_TOO, more).await;
        main.shutdown().await.unwrap();
        let child = Command::new(env::current_exe().unwrap())
            .args(["versions_data::a_device_with_data_that_may_lose_power", "--exact", "--quiet"])
            .env(DEVICE, device.dir())
            .env("WEIR_FAULT_POINT", fault_point.to_string())
            .output()
            .unwrap();
        if child.status.success() {
            break;
        }
        cuts += 1;
        put(&device, "fiftieth");
        let main = device.start().await;
        ask_until(&main, 2, Standing::Refused).await;
        serves_the_first(&main).await;
        assert_eq!(read(&main).await, "old", "{fault_point}");
        assert_eq!(standing_of(&versions(&main), 1), Some(Standing::Proven), "{fault_point}");
        main.shutdown().await.unwrap();
        let left = fs::read_dir(device.dir().join("state")).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with("weir-data-")).collect();
        assert!(left.is_empty(), "{fault_point}: {left:?}");
    }
    assert!(cuts >= 40, "{cuts}");
}
