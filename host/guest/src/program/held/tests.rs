//! When a loaded file is read again.

use std::{fs, os::unix::fs::symlink, path::PathBuf, time::SystemTime};

use tempfile::TempDir;
use weir_config::{ComponentSource, Limits, MainConfig};

use super::*;
use crate::program::{Compilation, LoadError, LoadFault, Programs, Runtime, Sources};

fn programs() -> Programs {
    let sources =
        Sources::new(&MainConfig::default(), Arc::default(), Compilation::default(), Arc::default());
    Programs::new(Runtime::new(crate::AddressClass::Large).unwrap(), sources, 1)
}

/// A program in a directory in a directory.
fn new() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("in/it.wasm");
    fs::create_dir(dir.path().join("in")).unwrap();
    fs::copy(test_guests::path("hook"), &path).unwrap();
    (dir, path)
}

/// The same, some time after its last change.
async fn old() -> (TempDir, PathBuf) {
    let (dir, path) = new();
    // The kernel's time of a change cannot be set back.
    while !FileStamp::of(&path).unwrap().is_settled(SystemTime::now()) {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    (dir, path)
}

fn wanted<'w>(dir: &'w TempDir, component: &'w ComponentSource, limits: &'w Limits) -> LoadRequest<'w> {
    LoadRequest::of_hook("it", component, dir.path(), limits)
}

#[tokio::test]
async fn an_old_file_is_not_read_again_as_long_as_somebody_holds_what_was_loaded_of_it() {
    let (programs, limits, (dir, path)) = (programs(), Limits::default(), old().await);
    let component = ComponentSource::Path(path.clone());
    let wanted = wanted(&dir, &component, &limits);
    let loaded = programs.load(wanted).await.unwrap();
    let again = programs.held.unchanged(wanted).unwrap();
    assert!(Arc::ptr_eq(&loaded.program, &again.program));
    programs.read_again(&component);
    assert!(programs.held.unchanged(wanted).is_none());
    drop((loaded, again, programs.load(wanted).await.unwrap()));
    assert!(programs.held.unchanged(wanted).is_none());
}

#[tokio::test]
async fn a_file_that_has_just_been_changed_is_read_again() {
    let (programs, limits, (dir, path)) = (programs(), Limits::default(), new());
    let component = ComponentSource::Path(path.clone());
    let wanted = wanted(&dir, &component, &limits);
    let _loaded = programs.load(wanted).await.unwrap();
    assert!(programs.held.unchanged(wanted).is_none());
}

#[tokio::test]
async fn a_change_is_seen_that_neither_size_nor_time_of_modification_show() {
    let (programs, limits, (dir, path)) = (programs(), Limits::default(), old().await);
    let component = ComponentSource::Path(path.clone());
    let wanted = wanted(&dir, &component, &limits);
    let loaded = programs.load(wanted).await.unwrap();
    let (before, content) = (fs::metadata(&path).unwrap(), fs::read(&path).unwrap());
    let put = |content: &[u8]| {
        fs::write(&path, content).unwrap();
        fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(before.modified().unwrap())
            .unwrap();
    };
    put(&vec![0; content.len()]);
    assert!(matches!(programs.load(wanted).await, Err(LoadError { fault: LoadFault::NotWasm, .. })));
    put(&content);
    assert!(Arc::ptr_eq(&programs.load(wanted).await.unwrap().program, &loaded.program));
}

#[tokio::test]
async fn nothing_leads_to_a_known_file_that_would_not_have_led_to_it_at_first() {
    let (programs, limits, (dir, path)) = (programs(), Limits::default(), old().await);
    let component = ComponentSource::Path(path.clone());
    let wanted = wanted(&dir, &component, &limits);
    let _loaded = programs.load(wanted).await.unwrap();
    let (inner, moved) = (dir.path().join("in"), dir.path().join("moved"));
    fs::rename(&inner, &moved).unwrap();
    symlink(&moved, &inner).unwrap();
    assert!(matches!(programs.load(wanted).await, Err(LoadError { fault: LoadFault::Detour(_), .. })));
    let elsewhere = tempfile::tempdir().unwrap();
    let outside = LoadRequest { plugin_dir: Some(elsewhere.path()), ..wanted };
    assert!(matches!(programs.load(outside).await, Err(LoadError { fault: LoadFault::Outside, .. })));
}

#[tokio::test]
async fn a_known_file_is_refused_where_it_would_have_been_at_first() {
    let (programs, limits, (dir, path)) = (programs(), Limits::default(), old().await);
    let component = ComponentSource::Path(path.clone());
    let wanted = wanted(&dir, &component, &limits);
    let _loaded = programs.load(wanted).await.unwrap();
    let pinned = LoadRequest { sha256: Some(ArtifactHash::from_bytes([7; 32])), ..wanted };
    assert!(matches!(programs.load(pinned).await, Err(LoadError { fault: LoadFault::Pinned(_), .. })));
    let small = |change: fn(&mut Limits)| {
        let mut limits = limits.clone();
        change(&mut limits);
        limits
    };
    let file = small(|limits| limits.file_size = 1);
    let refused = programs.load(LoadRequest { limits: &file, ..wanted }).await;
    assert!(matches!(refused, Err(LoadError { fault: LoadFault::TooLarge { .. }, .. })));
    let code = small(|limits| limits.code_size = 1);
    let refused = programs.load(LoadRequest { limits: &code, ..wanted }).await;
    assert!(matches!(refused, Err(LoadError { fault: LoadFault::CodeTooLarge { .. }, .. })));
}

#[tokio::test]
async fn the_same_content_in_files_and_in_memory_shares_one_program() {
    let (programs, limits, (dir, path)) = (programs(), Limits::default(), new());
    let content = fs::read(&path).unwrap();
    let sources = [
        ComponentSource::Bytes(content.clone().into()),
        ComponentSource::Path(path),
        ComponentSource::Bytes(content.into()),
    ];
    let mut loaded = Vec::new();
    for source in &sources {
        loaded.push(programs.load(wanted(&dir, source, &limits)).await.unwrap());
    }
    assert!(loaded.iter().all(|other| Arc::ptr_eq(&other.program, &loaded[0].program)));
}
