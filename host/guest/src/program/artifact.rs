//! Artifacts: compiled components, signed for other devices.
//!
//! An artifact is [`MAGIC`], the public key (32 bytes), the signature (64 bytes) and the signed part: [`SIGNED`] and
//! the [`Code`]. Signatures are Ed25519 (RFC 8032).

use ed25519_dalek::{PUBLIC_KEY_LENGTH, SIGNATURE_LENGTH, Signature, VerifyingKey};
use weir_config::{ArtifactHash, TrustedKey};

use super::{
    code::{self, Code},
    error::LoadFault,
    input::ComponentInput,
};
use crate::engine::CompileTarget;

/// The version of the format.
pub(super) const FORMAT: u8 = 3;

/// The first bytes of an artifact.
pub(super) const MAGIC: &[u8; 8] = &[0, b'w', b'e', b'i', b'r', 0, 0, FORMAT];

/// The text that the signed part begins with. It names the purpose, so that nothing signed for another purpose is run.
const SIGNED: &[u8] = b"weir artifact 3\n";

/// How many bytes come before the signature.
const KEY_END: usize = MAGIC.len() + PUBLIC_KEY_LENGTH;

/// Bytes of an artifact without its code, kernel and described contracts.
pub(super) const HEADER: usize = KEY_END + SIGNATURE_LENGTH + SIGNED.len() + code::HEADER;

/// What an artifact says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactFacts {
    /// The size of the file, in bytes.
    pub bytes: u64,
    /// The hash of the file.
    pub sha256: ArtifactHash,
    /// The target that the artifact was compiled for.
    pub target: CompileTarget,
    /// The public half of the key that signed the artifact.
    pub key: TrustedKey,
    /// Whether the signature is right. If not, the file was changed, or was not signed with this key.
    pub is_signed: bool,
}

/// Returns the code in an artifact, if one of these keys has signed it, and fails otherwise. If the artifact names
/// another key, the rest is not read.
pub(super) fn verify(input: &mut ComponentInput, trusted: &[TrustedKey]) -> Result<Code, LoadFault> {
    let key = signer(input)?;
    if !trusted.contains(&key) {
        return Err(LoadFault::Untrusted(key));
    }
    let mut artifact = input.read()?;
    let header = {
        let (signature, signed) = parts(&artifact).ok_or(LoadFault::DamagedArtifact)?;
        let code = signed.strip_prefix(SIGNED).ok_or(LoadFault::DamagedArtifact)?;
        if !is_signed(&key, signature, signed) {
            return Err(LoadFault::Forged);
        }
        artifact.len() - code.len()
    };
    artifact.drain(..header);
    Ok(Code::signed(artifact))
}

/// Returns what an artifact says of itself, whether its key is trusted or not and whether its signature is right or
/// not.
pub(super) fn described(input: &mut ComponentInput) -> Result<ArtifactFacts, LoadFault> {
    let key = signer(input)?;
    let artifact = input.read()?;
    let (signature, signed) = parts(&artifact).ok_or(LoadFault::DamagedArtifact)?;
    let code = signed.strip_prefix(SIGNED).ok_or(LoadFault::DamagedArtifact)?;
    let target = Code::target_in(code).ok_or(LoadFault::DamagedArtifact)?;
    let is_signed = is_signed(&key, signature, signed);
    Ok(ArtifactFacts { bytes: input.bytes, sha256: input.hash, target, key, is_signed })
}

/// Reads the key that an artifact claims to be signed with. Fails if the artifact has another format or is cut off.
pub(super) fn signer(input: &mut ComponentInput) -> Result<TrustedKey, LoadFault> {
    let start = input.start(KEY_END as u64)?;
    let (magic, key) = start.split_first_chunk().ok_or(LoadFault::DamagedArtifact)?;
    match magic {
        MAGIC => {}
        [.., format] => return Err(LoadFault::OtherFormat(*format)),
    }
    let key = key.first_chunk().ok_or(LoadFault::DamagedArtifact)?;
    Ok(TrustedKey::from_bytes(*key))
}

/// Returns the signature and the signed part, or none if the artifact is too short.
fn parts(artifact: &[u8]) -> Option<(&[u8; SIGNATURE_LENGTH], &[u8])> {
    artifact.get(KEY_END..)?.split_first_chunk()
}

fn is_signed(key: &TrustedKey, signature: &[u8; SIGNATURE_LENGTH], signed: &[u8]) -> bool {
    VerifyingKey::from_bytes(key.as_bytes())
        .and_then(|key| key.verify_strict(signed, &Signature::from_bytes(signature)))
        .is_ok()
}

#[cfg(feature = "compiler")]
pub(super) mod signing {
    //! Makes artifacts.

    use std::fmt;

    use ed25519_dalek::{
        Signer,
        pkcs8::{DecodePrivateKey, KeypairBytes, spki::der::pem::LineEnding},
    };

    use super::{MAGIC, SIGNATURE_LENGTH, SIGNED};
    use weir_config::TrustedKey;
    use weir_private_dir::random;

    /// The private half of an Ed25519 key, as PKCS #8 (RFC 8410) in PEM, which `openssl genpkey` writes.
    #[derive(Clone)]
    pub struct SigningKey(ed25519_dalek::SigningKey);

    /// The text is not an Ed25519 private key as PKCS #8 in PEM.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
    #[error("not a private Ed25519 key in PEM, which `weir keygen` makes")]
    pub struct NotAKey;

    impl SigningKey {
        /// Makes a new key from the kernel's randomness.
        ///
        /// # Errors
        ///
        /// Fails if the kernel has no randomness.
        pub fn generate() -> std::io::Result<Self> {
            Ok(Self(ed25519_dalek::SigningKey::from_bytes(&random()?)))
        }

        /// Reads the key in a PEM text.
        ///
        /// # Errors
        ///
        /// Fails if the text is anything else.
        pub fn from_pem(pem: &str) -> Result<Self, NotAKey> {
            ed25519_dalek::SigningKey::from_pkcs8_pem(pem).map(Self).map_err(|_| NotAKey)
        }

        /// Returns the PEM text of the key. Whoever has this text can sign.
        ///
        /// # Errors
        ///
        /// Fails if the key cannot be encoded, which does not happen.
        pub fn to_pem(&self) -> Result<String, NotAKey> {
            use ed25519_dalek::pkcs8::EncodePrivateKey;
            // Version 1 of the format, without the public key, because OpenSSL reads no other.
            let bytes = KeypairBytes { secret_key: self.0.to_bytes(), public_key: None };
            bytes.to_pkcs8_pem(LineEnding::LF).map(|pem| pem.to_string()).map_err(|_| NotAKey)
        }

        /// Returns the public half, with which devices verify this key's signatures.
        #[must_use]
        pub fn trusted_key(&self) -> TrustedKey {
            TrustedKey::from_bytes(self.0.verifying_key().to_bytes())
        }

        /// Signs this message, which must begin with its purpose.
        pub(in super::super) fn signature(&self, message: &[u8]) -> [u8; SIGNATURE_LENGTH] {
            self.0.sign(message).to_bytes()
        }

        /// Makes the artifact of this code.
        pub(in super::super) fn sign(&self, code: &[u8]) -> Vec<u8> {
            let signed = [SIGNED, code].concat();
            let signature = self.signature(&signed);
            [MAGIC, self.trusted_key().as_bytes().as_slice(), &signature, &signed].concat()
        }
    }

    impl fmt::Debug for SigningKey {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "SigningKey({})", self.trusted_key())
        }
    }
}
