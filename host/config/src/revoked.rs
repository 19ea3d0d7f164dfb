//! The operator's list of what must never run again: keys and components. Main does not look at the file's permissions.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    component::{ArtifactHash, TrustedKey},
    loader::read_text,
};

/// The most bytes of a list: enough for 10,000 lines.
const MAX_BYTES: u64 = 1 << 20;

/// What must never run again. As text: lines `key` and `sha256`, each with 64 hexadecimal digits after a space, as
/// signatures have them; empty lines, and comments that begin with `#`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revoked {
    keys: BTreeSet<[u8; 32]>,
    hashes: BTreeSet<ArtifactHash>,
}

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}`, which `main.revoked` names, {reason}", path.display())]
pub struct RevokedError {
    path: PathBuf,
    reason: String,
}

impl Revoked {
    /// Reads the list in a file.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is too large, or a line is not understood. A list that is not understood in
    /// whole could lack the line that matters.
    pub fn read(path: &Path) -> Result<Self, RevokedError> {
        let failed = |reason| RevokedError { path: path.to_owned(), reason };
        let text = read_text(path, MAX_BYTES).map_err(|error| failed(format!("cannot be read: {error}")))?;
        Self::parse(&text).map_err(|line| {
            failed(format!("has neither `key` nor `sha256` with 64 hexadecimal digits in line {line}"))
        })
    }

    /// Reads the text of a list, or returns the number of the first line that is not understood.
    fn parse(text: &str) -> Result<Self, usize> {
        let mut revoked = Self::default();
        for (number, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (kind, digits) = line.split_once(' ').ok_or(number + 1)?;
            let hash: ArtifactHash = digits.parse().map_err(|_| number + 1)?;
            match kind {
                "key" => drop(revoked.keys.insert(*hash.as_bytes())),
                "sha256" => drop(revoked.hashes.insert(hash)),
                _ => return Err(number + 1),
            }
        }
        Ok(revoked)
    }

    /// Whether what this key signed may not run, where its signature is checked.
    #[must_use]
    pub fn has_key(&self, key: &TrustedKey) -> bool {
        self.keys.contains(key.as_bytes())
    }

    /// Whether the component or artifact with this hash may not run.
    #[must_use]
    pub fn has_hash(&self, hash: &ArtifactHash) -> bool {
        self.hashes.contains(hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_hashes_are_read_between_comments() {
        let text = format!("# lost in May\nkey {}\n\n  sha256 {}  \r\n", "a5".repeat(32), "B6".repeat(32));
        let revoked = Revoked::parse(&text).unwrap();
        let (key, hash) = (TrustedKey::from_bytes([0xa5; 32]), ArtifactHash::from_bytes([0xb6; 32]));
        assert!(revoked.has_key(&key) && revoked.has_hash(&hash));
        assert!(!revoked.has_key(&TrustedKey::from_bytes([0xb6; 32])));
        assert!(!revoked.has_hash(&ArtifactHash::from_bytes([0xa5; 32])));
        assert_eq!(Revoked::parse(""), Ok(Revoked::default()));
    }

    #[test]
    fn a_line_that_is_not_understood_fails_by_its_number() {
        let hash = "a5".repeat(32);
        for line in [
            &*hash,
            "key",
            "key ",
            &format!("keys {hash}"),
            &format!("key {hash} # x"),
            "sha256 zz",
            "\u{fffd}",
        ] {
            assert_eq!(Revoked::parse(&format!("# a\nkey {hash}\n{line}\n")), Err(3), "{line}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_used_is_an_error_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("revoked.txt");
        let error = || {
            let text = Revoked::read(&path).unwrap_err().to_string();
            text.replace(&*dir.path().to_string_lossy(), "DIR")
        };
        let missing = error();
        std::fs::write(&path, vec![b'\n'; 1 << 20]).unwrap();
        assert_eq!(Revoked::read(&path).unwrap(), Revoked::default());
        std::fs::write(&path, vec![b'\n'; (1 << 20) + 1]).unwrap();
        let too_large = error();
        std::fs::write(&path, "\nkey 5\n").unwrap();
        insta::assert_snapshot!([missing, too_large, error()].join("\n"), @r"
        `DIR/revoked.txt`, which `main.revoked` names, cannot be read: No such file or directory (os error 2)
        `DIR/revoked.txt`, which `main.revoked` names, cannot be read: it is larger than 1 MiB
        `DIR/revoked.txt`, which `main.revoked` names, has neither `key` nor `sha256` with 64 hexadecimal digits in line 2
        ");
    }
}
