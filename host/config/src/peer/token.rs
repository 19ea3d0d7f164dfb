//! Hashes of the tokens that peers show.

use std::{fmt, str::FromStr};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Why a text is not the hash of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenHashError {
    /// Not in the notation of one. The text may be the token itself, so the message leaves it out.
    #[error(
        "this is not the hash of a token: `sha256:` and 64 hexadecimal digits, as `sha256sum` shows them"
    )]
    Notation,
    /// The SHA-256 of no bytes.
    #[error("this is the hash of an empty token, which proves nothing")]
    Empty,
}

/// The SHA-256 of a token. As text: `sha256:` and 64 lowercase hexadecimal digits.
///
/// A token is a long random text, so its plain hash tells nothing about it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    const PREFIX: &'static str = "sha256:";

    /// The hash of a token's bytes.
    #[must_use]
    pub fn of(token: &str) -> Self {
        Self(Sha256::digest(token.as_bytes()).into())
    }

    /// Whether the token has this hash. Takes the same time for all tokens of a length. An empty token never matches.
    #[must_use]
    pub fn matches(&self, token: &str) -> bool {
        !token.is_empty() && bool::from(self.0.ct_eq(&Self::of(token).0))
    }
}

impl FromStr for TokenHash {
    type Err = TokenHashError;

    fn from_str(text: &str) -> Result<Self, TokenHashError> {
        let digits = text.strip_prefix(Self::PREFIX).ok_or(TokenHashError::Notation)?;
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| TokenHashError::Notation)?;
        if Self(bytes) == Self::of("") { Err(TokenHashError::Empty) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", Self::PREFIX, hex::encode(self.0))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TokenHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    const OF_ABC: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_token_matches_its_own_hash_only() {
        let hash = TokenHash::of("abc");
        assert!(hash.matches("abc"));
        for other in ["", "abd", "abc\n", "abcabc", OF_ABC] {
            assert!(!hash.matches(other), "{other:?}");
        }
        assert!(!TokenHash::of("").matches(""));
    }

    #[test]
    fn a_hash_is_read_as_it_is_shown() {
        assert_eq!(TokenHash::of("abc").to_string(), OF_ABC);
        assert_eq!(OF_ABC.parse(), Ok(TokenHash::of("abc")));
        let capitals = OF_ABC.to_uppercase().replace("SHA256", "sha256");
        assert_eq!(capitals.parse(), Ok(TokenHash::of("abc")));
    }

    #[test]
    fn what_is_no_hash_or_the_hash_of_nothing_is_refused() {
        for text in ["", "sha256:", "abc", &OF_ABC[7..], &OF_ABC[..70], &format!("{OF_ABC}0"), "sha512:00"] {
            assert_eq!(text.parse::<TokenHash>(), Err(TokenHashError::Notation), "{text}");
        }
        assert_eq!(TokenHash::of("").to_string().parse::<TokenHash>(), Err(TokenHashError::Empty));
    }
}
