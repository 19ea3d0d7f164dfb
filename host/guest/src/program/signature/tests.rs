//! Only the exact text of a signature counts.

use proptest::prelude::*;

use super::*;

/// Made with another implementation, OpenSSL 3.0: `openssl pkeyutl -sign -rawin -inkey KEY -in LINES`.
const OF_OPENSSL: &str = include_str!("tests/openssl.sig");

#[test]
fn a_signature_of_openssl_is_verified() {
    let signature = Signature::parse(OF_OPENSSL.as_bytes()).unwrap();
    assert_eq!(signature.text(), OF_OPENSSL);
    assert_eq!((signature.id.as_str(), signature.version.to_string()), ("storage", "1.2.0-rc.1".to_owned()));
    let (key, hash, size) = (signature.key, signature.sha256, signature.size);
    assert_eq!(signature.verify(&[key], hash, size), Ok(()));
    let other = TrustedKey::from_bytes([7; 32]);
    assert_eq!(signature.verify(&[other], hash, size), Err(SignatureError::Untrusted(key)));
    assert_eq!(signature.verify(&[], hash, size), Err(SignatureError::Untrusted(key)));
    let found = ArtifactHash::from_bytes([7; 32]);
    assert_eq!(
        signature.verify(&[other, key], found, size),
        Err(SignatureError::OtherHash(Box::new([hash, found])))
    );
    assert_eq!(
        signature.verify(&[key], hash, size + 1),
        Err(SignatureError::OtherSize { signed: size, found: size + 1 })
    );
}

#[test]
fn every_flipped_bit_and_every_missing_or_added_byte_is_refused() {
    let text = OF_OPENSSL.as_bytes();
    for bit in 0..text.len() * 8 {
        let mut flipped = text.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let error = Signature::parse(&flipped).unwrap_err();
        let expected = match error {
            SignatureError::Damaged | SignatureError::Forged => true,
            SignatureError::OtherFormat(_) => bit / 8 == "weir signature ".len(),
            _ => false,
        };
        assert!(expected, "bit {bit}: {error}");
    }
    for length in 0..text.len() {
        assert_eq!(Signature::parse(&text[..length]), Err(SignatureError::Damaged), "{length}");
    }
    for more in ["\n", " ", "\0", "x", "signature 00\n", OF_OPENSSL] {
        assert!(Signature::parse(&[text, more.as_bytes()].concat()).is_err(), "{more:?}");
    }
}

#[test]
fn another_text_of_the_same_signature_is_refused() {
    let key = OF_OPENSSL.lines().nth(1).unwrap();
    for other in [
        OF_OPENSSL.replace('\n', "\r\n"),
        OF_OPENSSL.replace(key, &key.to_uppercase().replace("KEY", "key")),
        OF_OPENSSL.replace("size ", "size 0"),
        OF_OPENSSL.replace("size ", "size +"),
        OF_OPENSSL.replace("id storage", "id  storage"),
        OF_OPENSSL.replace("id storage\n", ""),
        OF_OPENSSL.replace("weir signature 1", "weir signature 01"),
        format!("\u{feff}{OF_OPENSSL}"),
    ] {
        let error = Signature::parse(other.as_bytes()).unwrap_err();
        assert!(
            matches!(error, SignatureError::Damaged | SignatureError::OtherFormat(_)),
            "{error}: {other}"
        );
    }
    let long = OF_OPENSSL.replace("version 1", &format!("version 1{}", "0".repeat(1000)));
    assert_eq!(Signature::parse(long.as_bytes()), Err(SignatureError::Damaged));
}

#[test]
fn a_key_of_small_order_signs_nothing() {
    // The neutral element verifies anything unless verification is strict.
    let key = format!("key 01{}", "00".repeat(31));
    let signature = format!("signature 01{}", "00".repeat(63));
    let lines: Vec<_> = OF_OPENSSL.lines().collect();
    let text = [lines[0], &key, lines[2], lines[3], lines[4], lines[5], &signature, ""].join("\n");
    assert_eq!(Signature::parse(text.as_bytes()), Err(SignatureError::Forged));
}

#[cfg(feature = "compiler")]
#[test]
fn what_is_signed_is_read_as_it_was() {
    let key = crate::SigningKey::generate().unwrap();
    let hash = ArtifactHash::from_bytes([0xa5; 32]);
    for version in ["0.0.0", "1.2.3", "1.0.0-alpha.1+build.5"] {
        let signed = Signature::sign(&key, "storage".parse().unwrap(), version, hash, u64::MAX).unwrap();
        assert_eq!(signed.key, key.trusted_key());
        assert_eq!(Signature::parse(signed.text().as_bytes()), Ok(signed));
    }
    let most = "a".repeat(Signature::MAX_VERSION);
    for version in ["", "1", "1.2", "v1.2.3", "01.2.3", "1.2.3\nsize 5", &format!("1.0.0-{most}")] {
        assert!(Signature::sign(&key, "storage".parse().unwrap(), version, hash, 5).is_err(), "{version}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in prop::collection::vec(any::<u8>(), 0..2000)) {
        prop_assert!(Signature::parse(&text).is_err());
    }
}
