//! What a program beside Main reads of refused versions.

use super::*;
use crate::tests::{Device, extension, hash};

#[test]
fn what_was_refused_is_told_while_main_has_the_directory() {
    let device = Device::on_disk();
    let config = extension("a", "");
    device.prove(&config, 1);
    device.fail(&config, 2);
    let dir = device.path("");
    let told = refused(&dir, &config, hash(2)).unwrap();
    assert_eq!(told, "version 1 would run in place of this one: version 2 was refused: it trapped");
    for other in [1, 3] {
        assert_eq!(refused(&dir, &config, hash(other)), None);
    }
    assert_eq!(refused(&dir, &extension("b", ""), hash(2)), None);
    assert_eq!(refused(&dir.join("absent"), &config, hash(2)), None);
    assert_eq!(refused(&dir, &extension("a", "wants = ['c@1']"), hash(2)), None);
}

#[test]
fn a_look_changes_nothing_in_the_directory() {
    let device = Device::on_disk();
    let config = extension("a", "");
    device.prove(&config, 1);
    device.fail(&config, 2);
    let files = || {
        let entries = std::fs::read_dir(device.path("")).unwrap().map(|entry| entry.unwrap());
        let mut files: Vec<_> =
            entries.map(|entry| (entry.file_name(), entry.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let before = files();
    refused(&device.path(""), &config, hash(2)).unwrap();
    assert_eq!(files(), before);
}

#[test]
fn a_record_that_was_changed_tells_nothing() {
    let device = Device::on_disk();
    let config = extension("a", "");
    device.prove(&config, 1);
    device.fail(&config, 2);
    let record = device.path("weir-versions-a");
    let text = std::fs::read_to_string(&record).unwrap();
    std::fs::write(&record, text.replace("it trapped", "it trippd")).unwrap();
    assert_eq!(refused(&device.path(""), &config, hash(2)), None);
}
