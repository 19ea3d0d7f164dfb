//! A lock is read as it was written, or not at all.

use super::*;

fn lock() -> ComponentLock {
    let hash = |byte| ArtifactHash::from_bytes([byte; 32]);
    let mut lock = ComponentLock::default();
    let storage = LockedExtension {
        version: Some("1.2.0".to_owned()),
        source: Some("oci:registry.example/\"storage\"\\\u{7f}:1".to_owned()),
        sha256: hash(1),
        falls_back_to: vec![hash(2), hash(3)],
    };
    lock.extensions.insert("storage".parse().unwrap(), storage);
    lock.extensions.insert("clock".parse().unwrap(), LockedExtension::new(hash(4)));
    lock.hooks.insert("/etc/weir/hooks.d/10-é.wasm".to_owned(), hash(5));
    lock
}

#[test]
fn a_lock_is_read_as_it_was_written() {
    insta::assert_snapshot!(lock().text());
    for lock in [lock(), ComponentLock::default()] {
        assert_eq!(ComponentLock::parse(lock.text().as_bytes()).unwrap(), lock);
        assert!(toml::from_str::<toml::Table>(&lock.text()).is_ok());
    }
}

#[test]
fn only_what_is_listed_may_run_as_that_extension_or_hook() {
    let (lock, hash) = (lock(), |byte| ArtifactHash::from_bytes([byte; 32]));
    let allows = |id: &str, byte| lock.allows(&id.parse().unwrap(), hash(byte));
    assert!(allows("storage", 1) && allows("storage", 2) && allows("storage", 3) && allows("clock", 4));
    assert!(!allows("storage", 4) && !allows("clock", 1) && !allows("other", 1));
    let path = Path::new("/etc/weir/hooks.d/10-é.wasm");
    assert!(lock.allows_hook(path, hash(5)));
    assert!(!lock.allows_hook(path, hash(1)) && !lock.allows_hook(Path::new("/etc/weir/other"), hash(5)));
}

#[test]
fn a_lock_lists_hooks_below_its_directory_wherever_that_is() {
    let hash = |byte| ArtifactHash::from_bytes([byte; 32]);
    let (built, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |dir: &tempfile::TempDir| dir.path().join("weir.lock");
    let hook = |dir: &tempfile::TempDir| dir.path().join("hooks.d/up/10-a.wasm");
    let mut lock = ComponentLock::at(&at(&built));
    let name = lock.hook(&hook(&built)).unwrap().to_owned();
    assert_eq!(name, "hooks.d/up/10-a.wasm");
    assert_eq!(lock.hook(Path::new("/usr/lib/a.wasm")), Some("/usr/lib/a.wasm"));
    lock.hooks.insert(name, hash(1));
    lock.write(&at(&built)).unwrap();
    std::fs::rename(at(&built), at(&other)).unwrap();
    let lock = ComponentLock::read(&at(&other)).unwrap();
    assert!(lock.allows_hook(&hook(&other), hash(1)));
    assert!(!lock.allows_hook(&hook(&other), hash(2)) && !lock.allows_hook(&hook(&built), hash(1)));
}

#[test]
fn a_new_lock_has_the_mode_of_the_old_one_and_takes_the_place_of_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let path_of = |name: &str| ComponentLock::path_of(&dir.path().join(name));
    assert!(path_of("weir.toml").ends_with("weir.lock") && path_of("weir").ends_with("weir.lock"));
    assert!(path_of("site.conf").ends_with("site.conf.lock") && path_of("a.lock").ends_with("a.lock.lock"));
    let path = path_of("weir.toml");
    lock().write(&path).unwrap();
    for mode in [0o640, 0o604] {
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        lock().write(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, mode);
    }
    std::fs::write(&path, "[[extension]]\n").unwrap();
    let error = lock().write(&path).unwrap_err().to_string();
    assert_eq!(error, "it is there, and is no lock: move it away");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "[[extension]]\n");
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file is left");
}

#[test]
fn a_bit_flipped_a_byte_missing_or_a_row_twice_is_refused() {
    let text = lock().text().into_bytes();
    for bit in 0..text.len() * 8 {
        let mut flipped = text.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let fault = ComponentLock::parse(&flipped).unwrap_err();
        let expected = match fault {
            ComponentLockFault::Damaged => true,
            ComponentLockFault::OtherFormat(_) => bit / 8 == FIRST.len(),
            _ => false,
        };
        assert!(expected, "bit {bit}: {fault}");
    }
    for length in 0..text.len() {
        assert!(
            matches!(ComponentLock::parse(&text[..length]), Err(ComponentLockFault::Damaged)),
            "{length}"
        );
    }
    let rows = "\n[[hook]]\npath = \"a\"\nsha256 = \"".to_owned() + &"a5".repeat(32) + "\"\n";
    let with = |rows: &str| format!("{FIRST}{FORMAT}\n{}\n{rows}", checksum_of(rows));
    assert!(ComponentLock::parse(with(&rows).as_bytes()).is_ok());
    for other in [rows.repeat(2), rows.replace("a5", "A5"), rows.replace("path", "file"), rows + "more = 1\n"]
    {
        assert!(matches!(ComponentLock::parse(with(&other).as_bytes()), Err(ComponentLockFault::Damaged)));
    }
}

#[test]
fn a_missing_a_newer_and_a_damaged_lock_say_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    let path = ComponentLock::path_of(&dir.path().join("weir.toml"));
    assert!(path.ends_with("weir.lock"));
    let error = || {
        let text = ComponentLock::read(&path).unwrap_err().to_string();
        text.replace(&*dir.path().to_string_lossy(), "DIR")
    };
    let missing = error();
    lock().write(&path).unwrap();
    assert_eq!(ComponentLock::read(&path).unwrap(), ComponentLock { dir: dir.path().to_owned(), ..lock() });
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    std::fs::write(&path, format!("{FIRST}2\nnew = 1\n")).unwrap();
    let newer = error();
    std::fs::write(&path, "[[extension]]\nid = \"a\"\n").unwrap();
    let damaged = error();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    insta::assert_snapshot!([missing, newer, damaged, error()].join("\n"));
}
