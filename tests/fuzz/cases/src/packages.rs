//! Packages of components, as directories and as tars.

use std::{fs, path::Path};

use tar::{EntryType, Header};
use weir_host::names::is_harmful;
use weir_package::{Digest, read, write};

/// The most bytes of a component.
const MOST: u64 = 1 << 16;

/// Reads the input as a package. After `R`, it is a tar. After `T`, it is the entries of a tar, with a NUL between them:
/// each is the kind's letter, the name and, after a line feed, the content. Else it is the texts of a layout, with a NUL
/// between them: index, manifest, config and component. In those, `@0` to `@3` stand for digest and size of one of them.
///
/// A package that is read is written as one that reads the same, and its component has its digest. Any other is refused in
/// words without control characters. Nothing is written beside it.
pub fn packages(data: &[u8]) {
    let scratch = crate::scratch();
    let path = scratch.path().join("package");
    match data.split_first() {
        Some((b'R', tar)) => fs::write(&path, tar).unwrap(),
        Some((b'T', entries)) => fs::write(&path, tar_of(entries)).unwrap(),
        _ => lay_out(data, &path),
    }
    let result = read(&path, MOST);
    assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 1);
    let package = match result {
        Ok(package) => package,
        Err(error) => return assert!(!error.to_string().contains(is_harmful), "{error:?}"),
    };
    let component = fs::read(&package.component).unwrap();
    assert_eq!((Digest::of(&component), component.len() as u64), (package.sha256, package.size));
    let Ok(contents) = package.contents() else { return };
    for name in ["again", "again.tar"] {
        let again = scratch.path().join(name);
        // What was read may become too large to be written: its escapes are our own.
        if let Ok(digest) = write(&package.component, &contents, &again) {
            let read = read(&again, MOST).unwrap();
            assert_eq!((read.contents().unwrap(), read.sha256), (contents.clone(), package.sha256));
            assert_eq!(read.digest, digest);
        }
    }
}

fn tar_of(entries: &[u8]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for entry in entries.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
        let (head, content) = match entry.iter().position(|byte| *byte == b'\n') {
            Some(end) => (&entry[..end], &entry[end + 1..]),
            None => (entry, &[][..]),
        };
        let mut header = Header::new_ustar();
        let name = head.get(1..).unwrap_or_default();
        let length = name.len().min(100);
        header.as_mut_bytes()[..length].copy_from_slice(&name[..length]);
        header.set_entry_type(EntryType::new(head.first().copied().unwrap_or_default()));
        header.set_size(content.len() as u64);
        header.set_cksum();
        tar.append(&header, content).unwrap();
    }
    tar.into_inner().unwrap()
}

fn lay_out(data: &[u8], to: &Path) {
    let blobs = to.join("blobs/sha256");
    fs::create_dir_all(&blobs).unwrap();
    fs::write(to.join("oci-layout"), r#"{"imageLayoutVersion":"1.0.0"}"#).unwrap();
    let texts: Vec<&[u8]> = data.splitn(4, |byte| *byte == 0).collect();
    let mut known: Vec<(usize, String)> = Vec::new();
    // From the component to the index, since each names those after it.
    for (number, text) in texts.iter().enumerate().rev() {
        let mut text = text.to_vec();
        for (number, descriptor) in &known {
            let token = format!("@{number}");
            while let Some(at) = text.windows(2).position(|two| two == token.as_bytes()) {
                text.splice(at..at + 2, descriptor.bytes());
            }
        }
        let digest = Digest::of(&text);
        known.push((number, format!(r#""digest":"{digest}","size":{}"#, text.len())));
        let path = if number == 0 { to.join("index.json") } else { blobs.join(digest.hex()) };
        fs::write(path, text).unwrap();
    }
}
