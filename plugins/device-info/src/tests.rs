//! The whole extension on files of its own, and on those of the test machine.

use std::fs;

use weir_sdk::testing::Harness;

use super::*;

fn device(files: &[(&str, &str)]) -> (tempfile::TempDir, Harness) {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let main = Harness::new(extension(root.path()));
    (root, main)
}

#[test]
fn files_are_read_each_time_that_somebody_asks() {
    let (root, main) = device(&[("proc/loadavg", "0.5 0 0 1/1 1\n")]);
    assert_eq!(main.call(device_info::LOAD, &Empty {}).unwrap().one, 0.5);
    fs::write(root.path().join("proc/loadavg"), "2.5 0 0 1/1 1\n").unwrap();
    assert_eq!(main.call(device_info::LOAD, &Empty {}).unwrap().one, 2.5);
}

#[test]
fn a_file_that_is_missing_or_odd_is_named_and_the_others_are_served() {
    let (_root, main) = device(&[("proc/uptime", "12.5 20\n"), ("proc/meminfo", "MemTotal: lots\n")]);
    let error = main.call(device_info::MEMORY, &Empty {}).unwrap_err();
    assert_eq!(error.code(), "unavailable");
    assert!(error.to_string().ends_with("proc/meminfo` does not say `MemTotal`"), "{error}");
    let error = main.call(device_info::CPU, &Empty {}).unwrap_err();
    assert!(error.to_string().contains("proc/cpuinfo"), "{error}");
    assert_eq!(main.call(device_info::UPTIME, &Empty {}).unwrap().seconds, 12.5);
}

#[test]
fn the_os_release_of_etc_comes_before_that_of_usr_lib() {
    let kernel = ("proc/sys/kernel/osrelease", "6.1.0\n");
    let (root, main) = device(&[kernel, ("etc/os-release", "ID=local"), ("usr/lib/os-release", "ID=vendor")]);
    assert_eq!(main.call(device_info::OS, &Empty {}).unwrap().id, "local");
    fs::remove_file(root.path().join("etc/os-release")).unwrap();
    let os = main.call(device_info::OS, &Empty {}).unwrap();
    assert_eq!((os.id.as_str(), os.kernel.as_str()), ("vendor", "6.1.0"));
}

#[cfg(target_os = "linux")]
#[test]
fn the_files_of_this_machine_are_understood() {
    let main = Harness::new(extension("/"));
    let memory = main.call(device_info::MEMORY, &Empty {}).unwrap();
    assert!(memory.available_kib <= memory.total_kib);
    assert!(main.call(device_info::UPTIME, &Empty {}).unwrap().seconds > 0.0);
    let cores = std::thread::available_parallelism().unwrap().get();
    assert!(usize::try_from(main.call(device_info::CPU, &Empty {}).unwrap().cores).unwrap() >= cores);
    main.call(device_info::LOAD, &Empty {}).unwrap();
    assert_ne!(main.call(device_info::OS, &Empty {}).unwrap().kernel, "");
}
