//! Packages as they are written, damaged in every byte, and made by somebody who means harm.

use std::{
    fs,
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::{read, write};

const MOST: u64 = 1 << 20;

fn contents() -> Contents {
    Contents {
        id: "echo".to_owned(),
        version: "1.0.0".to_owned(),
        created: "1970-01-01T00:00:00Z".to_owned(),
        imports: vec!["wasi:cli/environment@0.2.3".to_owned()],
        exports: vec!["wasi:cli/run@0.2.3".to_owned()],
        documents: Documents { licence: Some("Free.\n".to_owned()), ..Documents::default() },
        signature: Some("weir signature 1\n".to_owned()),
    }
}

/// A directory with a component, and a package of it under this name.
fn packaged(name: &str) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (component, to) = (dir.path().join("echo.wasm"), dir.path().join(name));
    fs::write(&component, b"\0asm\x0d\0\x01\0").unwrap();
    write(&component, &contents(), &to).unwrap();
    (dir, to)
}

/// All files of a package, by their paths.
fn files(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![root.to_owned()]);
    while let Some(path) = open.pop() {
        match path.is_dir() {
            true => open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path())),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

fn refused(path: &Path) -> String {
    chain(&read(path, MOST).unwrap_err())
}

/// The error and its causes, as the command shows them.
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[test]
fn what_is_written_is_read_and_is_the_same_each_time() {
    for name in ["echo", "echo.tar"] {
        let (dir, path) = packaged(name);
        let package = read(&path, MOST).unwrap();
        assert_eq!(package.contents().unwrap(), contents(), "{name}");
        assert_eq!(fs::read(&package.component).unwrap(), fs::read(dir.path().join("echo.wasm")).unwrap());
        assert_eq!((package.size, package.sha256), (8, Digest::of(b"\0asm\x0d\0\x01\0")));
        let bytes = |path: &Path| files(path).iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
        let again = dir.path().join("again").with_extension(path.extension().unwrap_or_default());
        assert_eq!(write(&package.component, &contents(), &again).unwrap(), package.digest);
        assert_eq!(bytes(&path), bytes(&again), "{name}");
    }
}

#[test]
fn what_is_signed_later_takes_the_place_of_what_was_there() {
    for name in ["echo", "echo.tar"] {
        let (dir, path) = packaged(name);
        let package = read(&path, MOST).unwrap();
        package.write_signed("other\n", &path).unwrap();
        let signed = read(&path, MOST).unwrap();
        assert_eq!(
            signed.contents().unwrap(),
            Contents { signature: Some("other\n".to_owned()), ..contents() }
        );
        assert_ne!(signed.digest, package.digest);
        // Nothing is left over: the mark, the index, a manifest, a config and a component.
        assert_eq!(files(dir.path()).len(), if name == "echo" { 6 } else { 2 });
    }
}

#[test]
fn what_is_no_package_is_not_replaced() {
    let (dir, _) = packaged("echo");
    let taken = dir.path().join("taken");
    fs::create_dir(&taken).unwrap();
    let component = dir.path().join("echo.wasm");
    write(&component, &contents(), &taken).unwrap();
    fs::remove_dir_all(&taken).unwrap();
    fs::create_dir(&taken).unwrap();
    fs::write(taken.join("letter"), "").unwrap();
    // A layout with two images.
    let (_other, store) = packaged("store");
    let index = fs::read_to_string(store.join(INDEX)).unwrap();
    let image = &index[index.find("[{").unwrap() + 1..index.rfind(']').unwrap()];
    fs::write(store.join(INDEX), index.replace(image, &format!("{image},{image}"))).unwrap();
    for taken in [&taken, &component, &store] {
        let refused = write(&component, &contents(), taken);
        assert!(matches!(refused, Err(WriteError::InTheWay(_))), "{refused:?}");
    }
    assert!(taken.join("letter").exists());
}

/// Flips a bit of each of these bytes of a file in turn, and returns how many packages were still read.
fn flipped(file: &Path, package: &Path, is_chosen: impl Fn(usize, u8) -> bool) -> usize {
    let (good, bytes) = (read(package, MOST).unwrap(), fs::read(file).unwrap());
    let mut read_anyway = 0;
    for index in (0..bytes.len()).filter(|index| is_chosen(*index, bytes[*index])) {
        let mut flipped = bytes.clone();
        flipped[index] ^= 1 << (index % 8);
        fs::write(file, &flipped).unwrap();
        if let Ok(package) = read(package, MOST) {
            read_anyway += 1;
            assert_eq!(
                package.contents().unwrap(),
                good.contents().unwrap(),
                "byte {index} of {}",
                file.display()
            );
            assert_eq!((package.sha256, package.digest), (good.sha256, good.digest));
            assert_eq!(fs::read(&package.component).unwrap(), fs::read(&good.component).unwrap());
        }
    }
    fs::write(file, bytes).unwrap();
    read_anyway
}

#[test]
fn a_flipped_bit_is_found_or_changes_nothing() {
    let (_dir, path) = packaged("echo");
    for file in files(&path) {
        let read_anyway = flipped(&file, &path, |_, _| true);
        // Only annotations of the index say nothing: the tag, and the names of optional keys.
        let is_index = file.ends_with(INDEX);
        assert!(is_index || read_anyway == 0, "{read_anyway} of {}", file.display());
        assert!(read_anyway < 150, "{read_anyway} of {}", file.display());
    }
    let (_dir, path) = packaged("echo.tar");
    // Headers are what a tar adds. One byte of its long padding is as good as another.
    let read_anyway = flipped(&path, &path, |index, byte| index % if byte == 0 { 64 } else { 3 } == 0);
    // Only padding and the annotations of the index.
    assert!(read_anyway < 600, "{read_anyway}");
}

/// A tar of these headers, each with this content, before the entries of a package.
fn tar_with(change: impl Fn(&mut tar::Builder<Vec<u8>>)) -> (TempDir, PathBuf) {
    let (dir, good) = packaged("echo.tar");
    let mut tar = tar::Builder::new(Vec::new());
    change(&mut tar);
    let mut bytes = tar.into_inner().unwrap();
    bytes.truncate(bytes.len() - 1024);
    bytes.extend(fs::read(&good).unwrap());
    let path = dir.path().join("hostile.tar");
    fs::write(&path, bytes).unwrap();
    (dir, path)
}

/// A header whose name is written as it is.
fn header(name: &str, kind: tar::EntryType, size: u64) -> tar::Header {
    let mut header = tar::Header::new_ustar();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
    header.set_entry_type(kind);
    header.set_size(size);
    header.set_mode(0o644);
    header.set_cksum();
    header
}

#[test]
fn an_entry_that_could_do_harm_is_refused_by_its_name() {
    use tar::EntryType as E;
    let blob = format!("blobs/sha256/{}", Digest::of(b"x").hex());
    for (name, kind, why) in [
        ("../evil", E::Regular, "its path has a `..`"),
        ("blobs/../../evil", E::Regular, "its path has a `..`"),
        ("blobs/..", E::Directory, "its path has a `..`"),
        ("/etc/evil", E::Regular, "its path is absolute"),
        ("a\\b", E::Regular, "its name has characters that no package has"),
        ("link", E::Symlink, "it is a symbolic link"),
        ("link", E::Link, "it is a hard link"),
        ("tty", E::Char, "it is a device"),
        ("disk", E::Block, "it is a device"),
        ("pipe", E::Fifo, "it is a FIFO"),
        ("holes", E::GNUSparse, "it is sparse"),
        ("long", E::GNULongName, "its name is longer than a package needs"),
        ("other", E::new(b'Z'), "it is neither a file nor a directory"),
        ("./oci-layout", E::Regular, ""),
        (&blob, E::Regular, ""),
        (
            "blobs/sha256/xyz",
            E::Regular,
            "`sha256:xyz` is not `sha256:` and 64 lower-case hexadecimal digits",
        ),
        ("harmless.txt", E::Regular, "none"),
    ] {
        let (_dir, path) = tar_with(|tar| tar.append(&header(name, kind, 0), &b""[..]).unwrap());
        let shown = name.escape_debug();
        let expected = match why {
            // Found as it is unpacked a second time, or as what it says it is.
            "" if name == blob => "is damaged: its content has the digest".to_owned(),
            "" => "the entry `oci-layout` of the tar is refused: there is another of that name".to_owned(),
            why => format!("the entry `{shown}` of the tar is refused: {why}"),
        };
        match read(&path, MOST) {
            Ok(_) => assert_eq!(why, "none", "{name}"),
            Err(error) => assert!(chain(&error).contains(&expected), "{name}: {error}"),
        }
    }
}

#[test]
fn a_tar_that_is_too_much_is_refused_before_it_is_read() {
    let huge = |size| {
        tar_with(move |tar| {
            tar.append(&header("index.json", tar::EntryType::Regular, size), &b""[..]).unwrap()
        })
    };
    for size in [MOST + (64 << 20), 8 << 30] {
        let (_dir, path) = huge(size);
        assert_eq!(
            refused(&path),
            "the entry `index.json` of the tar is refused: all entries together are too large"
        );
    }
    // As many directories as there is patience for.
    let (_dir, path) = tar_with(|tar| {
        for number in 0..1000 {
            tar.append(&header(&format!("d{number}"), tar::EntryType::Directory, 0), &b""[..]).unwrap();
        }
    });
    assert_eq!(refused(&path), "the entry `d256` of the tar is refused: it is one too many, of at most 256");
    let (dir, path) = packaged("echo.tar");
    let bytes = fs::read(&path).unwrap();
    for end in [0, 100, 512, 700, 2000, bytes.len() / 2] {
        let cut = dir.path().join("cut.tar");
        fs::write(&cut, &bytes[..end]).unwrap();
        assert!(read(&cut, MOST).is_err(), "{end}");
    }
}

#[test]
fn attributes_may_say_when_but_not_where_or_how_much() {
    let with = |key: &'static str, value: &'static str| {
        tar_with(move |tar| tar.append_pax_extensions([(key, value.as_bytes())]).unwrap())
    };
    for (key, value) in [("mtime", "1.5"), ("LIBARCHIVE.xattr.a", "b")] {
        let (_dir, path) = with(key, value);
        assert_eq!(read(&path, MOST).unwrap().contents().unwrap(), contents(), "{key}");
    }
    for (key, value) in [("path", "../evil"), ("size", "1"), ("linkpath", "/"), ("GNU.sparse.size", "9")] {
        let (_dir, path) = with(key, value);
        let why = format!("it has the attribute `{key}`, which no package needs");
        assert!(refused(&path).contains(&why), "{}", refused(&path));
    }
}

#[test]
fn what_others_keep_in_a_directory_is_not_followed() {
    let (dir, path) = packaged("echo");
    let index = path.join(INDEX);
    let elsewhere = dir.path().join("elsewhere");
    fs::rename(&index, &elsewhere).unwrap();
    symlink(&elsewhere, &index).unwrap();
    assert!(refused(&path).contains("index.json"), "{}", refused(&path));
    fs::remove_file(&index).unwrap();
    let fifo = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &index, fifo, 0o600.into(), 0).unwrap();
    assert!(refused(&path).ends_with("it is not a regular file"), "{}", refused(&path));
    assert!(matches!(read(&index, MOST), Err(ReadError::OfOtherKind(_))));
}

#[test]
fn an_image_of_another_form_is_refused_in_words() {
    let text = |path: &Path| serde_json::from_slice::<serde_json::Value>(&fs::read(path).unwrap()).unwrap();
    let with_index = |change: &dyn Fn(&mut serde_json::Value)| {
        let (dir, path) = packaged("echo");
        let mut index = text(&path.join(INDEX));
        change(&mut index);
        fs::write(path.join(INDEX), index.to_string()).unwrap();
        let refused = refused(&path);
        drop(dir);
        refused
    };
    // With a manifest of these changes, and an index of it.
    let with_manifest = |change: &dyn Fn(&mut serde_json::Value)| {
        let (dir, path) = packaged("echo");
        let mut index = text(&path.join(INDEX));
        let digest = index["manifests"][0]["digest"].as_str().unwrap().replace("sha256:", "");
        let mut manifest = text(&path.join(BLOBS).join(digest));
        change(&mut manifest);
        let bytes = manifest.to_string().into_bytes();
        let digest = Digest::of(&bytes);
        index["manifests"][0]["digest"] = json!(digest);
        index["manifests"][0]["size"] = json!(bytes.len());
        fs::write(path.join(blob(&digest)), bytes).unwrap();
        fs::write(path.join(INDEX), index.to_string()).unwrap();
        let refused = refused(&path);
        drop(dir);
        refused
    };
    let said = |text: String, part: &str| assert!(text.contains(part), "{text}");
    said(with_index(&|it| it["manifests"] = json!([])), "it lists 0 images, and a package has one");
    said(
        with_index(&|it| {
            let one = it["manifests"][0].clone();
            it["manifests"] = json!([one, one]);
        }),
        "it lists 2 images",
    );
    said(
        with_index(&|it| it["manifests"][0]["mediaType"] = json!(INDEX_TYPE)),
        "something else than an image",
    );
    said(with_index(&|it| it["manifests"][0]["size"] = json!(1)), "more than the 1 bytes of its descriptor");
    said(with_index(&|it| it["manifests"][0]["size"] = json!(9999)), "and its descriptor says 9999");
    said(with_index(&|it| it["manifests"][0]["size"] = json!(u64::MAX)), "has more than 4194304 bytes");
    said(
        with_index(&|it| it["manifests"][0]["digest"] = json!("sha256:../../../etc/passwd")),
        "is not `sha256:`",
    );
    said(with_manifest(&|it| it["layers"] = json!([])), "it has not one layer");
    said(with_manifest(&|it| it["layers"][0]["mediaType"] = json!("text/plain")), "is read");
    said(with_manifest(&|it| it["config"]["mediaType"] = json!("text/plain")), "is read");
    said(with_manifest(&|it| it["layers"][0]["size"] = json!(MOST + 1)), "has more than 1048576 bytes");
    said(with_manifest(&|it| it["layers"][0]["digest"] = it["config"]["digest"].clone()), "`layerDigests`");
    said(with_manifest(&|it| it["annotations"][SIGNATURE] = json!("x".repeat(5000))), "more than 4096 bytes");
    let deep = format!("{{\"deep\":{}", "[".repeat(100_000));
    let (_dir, path) = packaged("echo");
    fs::File::options().write(true).open(path.join(INDEX)).unwrap().write_all(deep.as_bytes()).unwrap();
    said(refused(&path), "while parsing a list");
}
