//! Artifacts: compiled components, signed for other devices.
//!
//! An artifact is [`MAGIC`], the public key (32 bytes), the signature (64 bytes) and the signed part: [`SIGNED`] and
//! the [`Code`]. Signatures are Ed25519 (RFC 8032).

use ed25519_dalek::{PUBLIC_KEY_LENGTH, SIGNATURE_LENGTH, Signature, VerifyingKey};
use weir_config::TrustedKey;

use super::{
    code::{self, Code},
    error::LoadFault,
    input::ComponentInput,
};

/// The first bytes of an artifact. The last one is the version of the format.
pub(super) const MAGIC: &[u8; 8] = b"\0weir\0\0\x02";

/// Names the purpose of a signature: else something signed for another purpose could be run.
const SIGNED: &[u8] = b"weir artifact 2\n";

/// Bytes of all but the code and the contracts that it describes.
pub(super) const HEADER: usize =
    MAGIC.len() + PUBLIC_KEY_LENGTH + SIGNATURE_LENGTH + SIGNED.len() + code::HEADER;

/// The code in an artifact, if one of these keys has signed it. With any other key, the rest is not read.
pub(super) fn verify(input: &mut ComponentInput, trusted: &[TrustedKey]) -> Result<Code, LoadFault> {
    let start = input.start((MAGIC.len() + PUBLIC_KEY_LENGTH) as u64)?;
    let key =
        start.strip_prefix(MAGIC).and_then(|rest| rest.first_chunk()).ok_or(LoadFault::DamagedArtifact)?;
    let key = TrustedKey::from_bytes(*key);
    if !trusted.contains(&key) {
        return Err(LoadFault::Untrusted(key));
    }
    let mut artifact = input.read()?;
    let (_, rest) = artifact.split_at_checked(start.len()).ok_or(LoadFault::DamagedArtifact)?;
    let (signature, signed) =
        rest.split_first_chunk::<SIGNATURE_LENGTH>().ok_or(LoadFault::DamagedArtifact)?;
    let code = signed.strip_prefix(SIGNED).ok_or(LoadFault::DamagedArtifact)?;
    VerifyingKey::from_bytes(key.as_bytes())
        .and_then(|key| key.verify_strict(signed, &Signature::from_bytes(signature)))
        .map_err(|_| LoadFault::Forged)?;
    let header = artifact.len() - code.len();
    artifact.drain(..header);
    Ok(Code::signed(artifact))
}

#[cfg(feature = "compiler")]
pub(super) mod signing {
    //! Makes artifacts.

    use std::fmt;

    use ed25519_dalek::{
        Signer,
        pkcs8::{DecodePrivateKey, KeypairBytes, spki::der::pem::LineEnding},
    };

    use super::{MAGIC, SIGNED};
    use crate::program::random;
    use weir_config::TrustedKey;

    /// The private half of an Ed25519 key, as PKCS #8 (RFC 8410) in PEM, which `openssl genpkey` writes.
    #[derive(Clone)]
    pub struct SigningKey(ed25519_dalek::SigningKey);

    /// The text is not an Ed25519 private key as PKCS #8 in PEM.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("not a private Ed25519 key in PEM, which `weir keygen` makes")]
    pub struct NotAKey;

    impl SigningKey {
        /// A new key, from the kernel's randomness.
        ///
        /// # Errors
        ///
        /// Fails if the kernel has no randomness.
        pub fn generate() -> std::io::Result<Self> {
            Ok(Self(ed25519_dalek::SigningKey::from_bytes(&random()?)))
        }

        /// The key in a PEM text.
        ///
        /// # Errors
        ///
        /// Fails if the text is anything else.
        pub fn from_pem(pem: &str) -> Result<Self, NotAKey> {
            ed25519_dalek::SigningKey::from_pkcs8_pem(pem).map(Self).map_err(|_| NotAKey)
        }

        /// The PEM text of the key. Its holder can sign.
        ///
        /// # Errors
        ///
        /// Fails if the key cannot be encoded, which does not happen.
        pub fn to_pem(&self) -> Result<String, NotAKey> {
            use ed25519_dalek::pkcs8::EncodePrivateKey;
            // Version 1, without the public key: OpenSSL reads no other.
            let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
            bytes.to_pkcs8_pem(LineEnding::LF).map(|pem| pem.to_string()).map_err(|_| NotAKey)
        }

        /// The public half, with which devices verify this key's signatures.
        #[must_use]
        pub fn trusted_key(&self) -> TrustedKey {
            TrustedKey::from_bytes(self.0.verifying_key().to_bytes())
        }

        /// Makes the artifact of this code.
        pub(in super::super) fn sign(&self, code: &[u8]) -> Vec<u8> {
            let signed = [SIGNED, code].concat();
            let signature = self.0.sign(&signed).to_bytes();
            [MAGIC, self.trusted_key().as_bytes().as_slice(), &signature, &signed].concat()
        }
    }

    impl fmt::Debug for SigningKey {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "SigningKey({})", self.trusted_key())
        }
    }
}
