//! What an operator's file allows to be installed: signatures, keys, and what was revoked.

use anyhow::bail;
use weir_host::{
    component::Signature,
    config::{ArtifactHash, MainConfig, Revoked},
};

/// Checks that the component of this hash and size, called `name`, may be installed. A signature is verified wherever
/// there is one.
pub(super) fn check(
    main: &MainConfig,
    name: &str,
    signature: Option<&Signature>,
    sha256: ArtifactHash,
    size: u64,
) -> anyhow::Result<()> {
    // What is revoked is said to be, whether its key is trusted or not.
    if let Some(list) = &main.revoked {
        let revoked = Revoked::read(list)?;
        if revoked.has_hash(&sha256) {
            bail!("`{name}` is revoked: `{}` lists its SHA-256", list.display());
        }
        if let Some(signature) = signature.filter(|signature| revoked.has_key(&signature.key)) {
            let key = signature.key;
            bail!("`{name}` is signed with the key `{key}`, which is revoked in `{}`", list.display());
        }
    }
    match signature {
        Some(signature) => {
            let verified = signature.verify(&main.trusted_keys, sha256, size);
            verified.map_err(|why| anyhow::anyhow!("`{name}` {why}"))?;
        }
        None if main.require_signature => {
            bail!("`{name}` has no signature, and `main.require-signature` asks for one: see `weir sign`")
        }
        None => {}
    }
    Ok(())
}
