//! Signatures of components, as texts of a stranger.

use std::sync::LazyLock;

use weir_host::{
    component::{Signature, SigningKey},
    config::ArtifactHash,
    names::{ExtensionId, is_harmful},
};

/// The key that signs. Which one it is makes no difference to what is read.
static KEY: LazyLock<SigningKey> = LazyLock::new(|| SigningKey::generate().unwrap());

/// Reads the input as a signature. After `S`, it is an id, a version and changes, with a NUL between them: the target signs
/// with these, and then changes the text. Each change is three bytes: a place, its high byte first, and what is put there.
///
/// A signature is refused in words without control characters, or it is written as it was read. It holds for the component
/// and the key that it names, and for no other. What was changed after it was signed is refused.
pub fn signatures(data: &[u8]) {
    match data.split_first() {
        Some((b'S', fields)) => sign(fields),
        _ => read(data),
    }
}

fn read(text: &[u8]) {
    let signature = match Signature::parse(text) {
        Ok(signature) => signature,
        Err(error) => return assert!(!error.to_string().contains(is_harmful), "{error:?}"),
    };
    assert_eq!(signature.text().as_bytes(), text);
    let Signature { key, sha256, size, .. } = signature;
    assert_eq!(signature.verify(&[key], sha256, size), Ok(()));
    assert_ne!(signature.verify(&[], sha256, size), Ok(()));
    assert_ne!(signature.verify(&[KEY.trusted_key()], sha256, size.wrapping_add(1)), Ok(()));
    let other = ArtifactHash::from_bytes(sha256.as_bytes().map(|byte| !byte));
    assert_ne!(signature.verify(&[key], other, size), Ok(()));
}

fn sign(fields: &[u8]) {
    let fields: Vec<&[u8]> = fields.splitn(3, |byte| *byte == 0).collect();
    let [id, version, changes] = fields[..] else { return };
    let text = |bytes| std::str::from_utf8(bytes).ok();
    let id = text(id).and_then(|id| id.parse::<ExtensionId>().ok());
    let (Some(id), Some(version)) = (id, text(version)) else { return };
    let hash = ArtifactHash::from_bytes([0xa5; 32]);
    let signature = match Signature::sign(&KEY, id, version, hash, 8) {
        Ok(signature) => signature,
        Err(error) => return assert!(!error.to_string().contains(is_harmful), "{error:?}"),
    };
    let signed = signature.text().into_bytes();
    assert_eq!(Signature::parse(&signed).unwrap(), signature);
    read(&signed);
    let mut changed = signed.clone();
    for change in changes.chunks_exact(3) {
        let place = usize::from(change[0]) << 8 | usize::from(change[1]);
        let place = place % changed.len();
        changed[place] = change[2];
    }
    read(&changed);
    if changed != signed {
        assert!(Signature::parse(&changed).is_err(), "{}", changed.escape_ascii());
    }
}
