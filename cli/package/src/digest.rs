//! SHA-256 digests, as OCI writes them, and copies that are hashed and bounded.

use std::{
    fmt,
    io::{self, Read, Write},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256, written as `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest([u8; 32]);

/// The text is no digest that Weir takes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not `sha256:` and 64 lower-case hexadecimal digits")]
pub struct DigestError(String);

/// The bytes are more than may be copied.
#[derive(Debug, thiserror::Error)]
#[error("it has more than {0} bytes")]
pub(crate) struct TooMany(u64);

impl Digest {
    /// The digest of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The 32 bytes.
    #[must_use]
    pub fn bytes(&self) -> [u8; 32] {
        self.0
    }

    /// The 64 hexadecimal digits alone.
    #[must_use]
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let refused = || DigestError(shown(text));
        let digits = text.strip_prefix("sha256:").ok_or_else(refused)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| refused())?;
        let digest = Self(bytes);
        // One digest has one spelling.
        if digest.hex() == digits { Ok(digest) } else { Err(refused()) }
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

/// The beginning of a text of others, with what is not ASCII or could play with a terminal escaped.
pub(crate) fn shown(text: &str) -> String {
    let escaped = |character: char| match character {
        ' '..='~' => character.to_string(),
        other => other.escape_default().to_string(),
    };
    text.chars().take(256).map(escaped).collect()
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Copies all of `from`, and returns how many bytes that were, with their digest. Fails as soon as there are more than
/// `most` bytes, of which none too many is written.
///
/// # Errors
///
/// Fails if reading or writing does, and with [`io::ErrorKind::FileTooLarge`] if there are too many.
pub fn copy(from: &mut impl Read, to: &mut impl Write, most: u64) -> io::Result<(u64, Digest)> {
    let (mut hash, mut copied) = (Sha256::new(), 0_u64);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok((copied, Digest(hash.finalize().into()))),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        copied = copied.saturating_add(read as u64);
        if copied > most {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, TooMany(most)));
        }
        let read = buffer.get(..read).unwrap_or_default();
        hash.update(read);
        to.write_all(read)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_has_one_spelling() {
        let digest = Digest::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((digest.to_string().as_str(), text.parse()), (text, Ok(digest)));
        let upper = text.replace("ba78", "BA78");
        for other in [&*upper, &text[7..], &text[..70], "sha512:00", "", "sha256:\u{1b}é"] {
            let shown = other.replace("\u{1b}é", "\\u{1b}\\u{e9}");
            assert_eq!(other.parse::<Digest>(), Err(DigestError(shown)));
        }
    }

    #[test]
    fn a_copy_ends_at_its_bound() {
        let copied = |most| {
            let mut to = Vec::new();
            let done = copy(&mut &b"abc"[..], &mut to, most).map_err(|error| error.to_string());
            (done, to)
        };
        assert_eq!(copied(3), (Ok((3, Digest::of(b"abc"))), b"abc".to_vec()));
        assert_eq!(copied(2), (Err("it has more than 2 bytes".to_owned()), Vec::new()));
    }
}
