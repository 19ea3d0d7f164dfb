use std::os::unix::fs::symlink;

use super::*;

/// A directory, of which the name is no link's.
fn dir() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = fs::canonicalize(dir.path()).unwrap();
    (dir, path)
}

async fn is_changed(watch: &mut Watch) -> bool {
    tokio::time::timeout(QUIET * 5, watch.changed()).await.is_ok()
}

fn changed_after(change: impl FnOnce(&Path)) -> bool {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("src/deep")).unwrap();
    fs::create_dir(dir.path().join("target")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut watch = Watch::new(dir.path(), BTreeSet::new()).unwrap();
        change(dir.path());
        is_changed(&mut watch).await
    })
}

#[test]
fn a_change_of_a_source_at_any_depth_is_noticed() {
    assert!(changed_after(|dir| fs::write(dir.join("weir.toml"), "").unwrap()));
    assert!(changed_after(|dir| fs::write(dir.join("src/deep/lib.rs"), "").unwrap()));
    // As editors write a file.
    assert!(changed_after(|dir| {
        fs::write(dir.join("src/.lib.rs.new"), "").unwrap();
        fs::rename(dir.join("src/.lib.rs.new"), dir.join("src/lib.rs")).unwrap();
    }));
}

#[test]
fn what_tools_write_is_no_change() {
    assert!(!changed_after(|dir| {
        fs::write(dir.join("Cargo.lock"), "").unwrap();
        fs::write(dir.join("target/a.wasm"), "").unwrap();
        fs::write(dir.join("src/.lib.rs.swp"), "").unwrap();
        fs::create_dir(dir.join(".weir")).unwrap();
    }));
}

#[tokio::test]
async fn files_in_a_new_directory_are_watched_after_it_was_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let mut watch = Watch::new(dir.path(), BTreeSet::new()).unwrap();
    fs::create_dir(dir.path().join("new")).unwrap();
    watch.changed().await.unwrap();
    fs::write(dir.path().join("new/file.rs"), "").unwrap();
    watch.changed().await.unwrap();
}

#[tokio::test]
async fn a_source_that_is_written_with_the_content_that_it_has_is_no_change() {
    let (_dir, path) = dir();
    fs::write(path.join("lib.rs"), "one").unwrap();
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    fs::write(path.join("lib.rs"), "one").unwrap();
    assert!(!is_changed(&mut watch).await);
    assert_eq!(watch.built().await.unwrap(), DuringBuild::default());
    fs::write(path.join("lib.rs"), "two").unwrap();
    assert!(is_changed(&mut watch).await);
}

#[tokio::test]
async fn what_each_build_writes_starts_three_builds_and_then_none() {
    let (_dir, path) = dir();
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    let (stamp, source) = (path.join("stamp.txt"), path.join("lib.rs"));
    for build in 1..=5 {
        fs::write(&stamp, build.to_string()).unwrap();
        let during = watch.built().await.unwrap();
        assert_eq!(during.saved == [stamp.clone()], build < 3, "{during:?}");
        assert_eq!(during.written == [stamp.clone()], build == 3, "{during:?}");
    }
    assert!(!is_changed(&mut watch).await);
    // The author saves a source during that build.
    fs::write(&stamp, "6").unwrap();
    fs::write(&source, "new").unwrap();
    assert_eq!(watch.built().await.unwrap().saved, [source]);
    // Outside of a build, the file counts again.
    fs::write(&stamp, "by hand").unwrap();
    assert!(is_changed(&mut watch).await);
    fs::write(&stamp, "7").unwrap();
    assert_eq!(watch.built().await.unwrap().saved, [stamp]);
}

#[tokio::test]
async fn a_build_that_writes_a_new_file_each_time_does_not_go_on_for_ever() {
    let (_dir, path) = dir();
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    let mut builds = 0;
    loop {
        builds += 1;
        fs::write(path.join(format!("bundle.{builds}.js")), "").unwrap();
        if watch.built().await.unwrap().saved.is_empty() {
            break;
        }
    }
    assert_eq!(builds, OWN_NAMES_AFTER);
}

#[tokio::test]
async fn a_build_that_renames_its_file_each_time_does_not_go_on_for_ever() {
    let (_dir, path) = dir();
    fs::write(path.join("bundle.0.js"), "").unwrap();
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    for build in 1..=OWN_NAMES_AFTER {
        let name = |build| path.join(format!("bundle.{build}.js"));
        fs::rename(name(build - 1), name(build)).unwrap();
        assert_eq!(watch.built().await.unwrap().saved.is_empty(), build == OWN_NAMES_AFTER);
    }
}

#[tokio::test]
async fn different_files_that_are_saved_during_three_builds_are_the_authors() {
    let (_dir, path) = dir();
    let files = ["a.rs", "b.rs", "c.rs"].map(|name| path.join(name));
    for file in &files {
        fs::write(file, "").unwrap();
    }
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    for file in &files {
        fs::write(file, "saved").unwrap();
        assert_eq!(watch.built().await.unwrap().saved, std::slice::from_ref(file));
    }
}

#[tokio::test]
async fn builds_with_a_change_of_another_file_between_them_are_not_in_turn() {
    let (_dir, path) = dir();
    let (saved, other) = (path.join("a.rs"), path.join("b.rs"));
    fs::write(&saved, "").unwrap();
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    for build in 1..=4 {
        fs::write(&saved, build.to_string()).unwrap();
        assert_eq!(watch.built().await.unwrap().saved, std::slice::from_ref(&saved));
        fs::write(&other, build.to_string()).unwrap();
        watch.changed().await.unwrap();
    }
}

#[tokio::test]
async fn sources_behind_links_and_in_further_directories_are_watched() {
    let ((_dir, path), (_other, other)) = (dir(), dir());
    for directory in ["linked/deep", "dependency/src"] {
        fs::create_dir_all(other.join(directory)).unwrap();
    }
    fs::write(other.join("one.rs"), "").unwrap();
    symlink(other.join("linked"), path.join("src")).unwrap();
    symlink(other.join("one.rs"), path.join("one.rs")).unwrap();
    // A circle.
    symlink(&path, other.join("linked/back")).unwrap();
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    watch.follow([other.join("dependency")].into(), BTreeSet::new()).unwrap();
    assert!(!is_changed(&mut watch).await);
    for changed in ["linked/deep/lib.rs", "one.rs", "dependency/src/lib.rs"] {
        fs::write(other.join(changed), "changed").unwrap();
        assert!(is_changed(&mut watch).await, "{changed}");
    }
    // Beside a linked file.
    fs::write(other.join("two.rs"), "").unwrap();
    assert!(!is_changed(&mut watch).await);
}

#[tokio::test]
async fn a_directory_behind_a_link_with_too_many_files_is_left_out_and_the_project_is_watched_on() {
    let ((_dir, path), (_other, other)) = (dir(), dir());
    for file in 0..5 {
        fs::write(other.join(file.to_string()), "").unwrap();
    }
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    watch.most_sources = 5;
    symlink(&other, path.join("linked")).unwrap();
    assert!(!is_changed(&mut watch).await);
    assert_eq!(watch.left_out, [other].into());
    fs::write(path.join("lib.rs"), "").unwrap();
    assert!(is_changed(&mut watch).await);
    for file in 0..5 {
        fs::write(path.join(file.to_string()), "").unwrap();
    }
    assert!(watch.changed().await.is_err());
}

#[tokio::test]
async fn writes_into_a_directory_that_is_known_at_the_start_wake_nothing() {
    let (_dir, path) = dir();
    let data = path.join("data");
    fs::create_dir(&data).unwrap();
    let watch = Watch::new(&path, [data.clone()].into()).unwrap();
    fs::write(data.join("state"), "").unwrap();
    assert!(tokio::time::timeout(QUIET, watch.next_are_changes()).await.is_err());
}

#[tokio::test]
async fn what_is_known_to_be_written_is_no_source() {
    let (_dir, path) = dir();
    fs::create_dir_all(path.join("data")).unwrap();
    let mut watch = Watch::new(&path, BTreeSet::new()).unwrap();
    watch.follow(BTreeSet::new(), [path.join("data"), path.join("out.wasm")].into()).unwrap();
    fs::write(path.join("data/state"), "").unwrap();
    fs::write(path.join("out.wasm"), "").unwrap();
    assert!(!is_changed(&mut watch).await);
    fs::write(path.join("lib.rs"), "").unwrap();
    assert!(is_changed(&mut watch).await);
}
