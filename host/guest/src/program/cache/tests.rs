use std::time::Duration;

use super::*;

const ROOM: usize = 1000;

fn cache(size: usize) -> (tempfile::TempDir, Cache) {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(dir.path().to_owned(), Some(size as u64));
    (dir, cache)
}

fn id(number: u8) -> EntryId {
    EntryId { component: ArtifactHash::from_bytes([number; 32]), engine: ArtifactHash::from_bytes([0; 32]) }
}

fn code(bytes: usize) -> Code {
    Code::compiled(vec![0; bytes])
}

fn has(cache: &Cache, number: u8) -> bool {
    cache.get(id(number), u64::MAX).unwrap().is_some()
}

#[test]
fn room_is_made_only_of_what_the_cache_has_written() {
    let (dir, cache) = cache(ROOM);
    let foreign = dir.path().join("storage.db");
    fs::write(&foreign, [1; 2 * ROOM]).unwrap();
    cache.put(id(1), &code(100)).unwrap();
    assert!(foreign.exists(), "a file of somebody else's was removed");
    assert!(has(&cache, 1), "files of others leave no room");
}

#[test]
fn a_key_of_somebody_elses_is_not_overwritten() {
    let (dir, cache) = cache(ROOM);
    let foreign = dir.path().join("key");
    let pem = "-----BEGIN PRIVATE KEY-----";
    fs::write(&foreign, pem).unwrap();
    let _refused = cache.put(id(1), &code(100));
    assert_eq!(fs::read_to_string(&foreign).unwrap_or_default(), pem);
}

#[test]
fn what_was_just_compiled_is_kept_where_the_clock_was_set_back() {
    let (dir, cache) = cache(ROOM);
    cache.put(id(1), &code(500)).unwrap();
    let before = fs::File::open(dir.path().join(id(1).file_name())).unwrap();
    before.set_modified(SystemTime::now() + Duration::from_secs(60 * 60 * 24 * 365)).unwrap();
    cache.put(id(2), &code(500)).unwrap();
    assert!(has(&cache, 2), "it is compiled at every start until the clock has caught up");
}

#[test]
fn code_that_fits_only_without_its_header_pushes_nothing_out() {
    let (_dir, cache) = cache(ROOM);
    cache.put(id(1), &code(100)).unwrap();
    cache.put(id(2), &code(ROOM)).unwrap_err();
    assert!(has(&cache, 1));
}

#[test]
fn what_is_just_allowed_is_found() {
    let (_dir, cache) = cache(ROOM);
    cache.put(id(1), &code(HEADER + 100)).unwrap();
    assert!(cache.get(id(1), 100).unwrap().is_some());
    assert!(cache.get(id(1), 99).unwrap().is_none());
}

#[test]
fn what_makes_room_is_told() {
    let (_dir, cache) = cache(ROOM);
    assert_eq!(cache.put(id(1), &code(500)).unwrap(), Room::Free);
    assert_eq!(cache.put(id(1), &code(400)).unwrap(), Room::Free, "it replaces itself");
    assert_eq!(cache.put(id(2), &code(600)).unwrap(), Room::Made);
    assert!(!has(&cache, 1));
}

#[test]
fn the_size_by_default_follows_the_file_system_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let disk = statvfs(dir.path()).unwrap();
    let tenth = disk.f_frsize * disk.f_blocks / 10;
    let cache = Cache::new(dir.path().join("not/there/yet"), None);
    assert_eq!(cache.size(), tenth.clamp(64 << 20, 4 << 30));
}
