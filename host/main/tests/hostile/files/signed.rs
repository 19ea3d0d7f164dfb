//! Precompiled artifacts as plugins.

use weir_host::{
    component::{self, CompileTarget, CompileTargetError, LoadFault, SigningKey},
    config::{Limits, Traces},
};

use super::*;

fn artifact(files: &Files, key: &SigningKey) -> Vec<u8> {
    files.write_text("good.wasm", &good());
    component::compile(
        &files.path().join("good.wasm"),
        None,
        &Limits::max(),
        Traces::default(),
        &child(),
        key,
    )
    .unwrap()
}

#[tokio::test]
async fn an_artifact_of_a_trusted_key_runs_where_nothing_compiles() {
    let mut files = Files::new();
    let key = SigningKey::generate().unwrap();
    files.write("good.cwasm", &artifact(&files, &key));
    files.main.trusted_keys = vec![SigningKey::generate().unwrap().trusted_key(), key.trusted_key()];
    let config = Config::new(
        files.main.clone(),
        vec![files.extension("good.cwasm"), {
            let mut component = files.extension("good.wasm");
            component.id = "component".parse().unwrap();
            component
        }],
    );
    let main = Main::builder(config).compilation(Compilation::PrecompiledOnly).start().await.unwrap();
    support::reached(&main, "hostile", ExtensionState::Stopped).await;
    let cause = "cannot start: `DIR/good.wasm` must be compiled, and this Main runs only artifacts: `weir compile` \
                 makes them";
    let cause = cause.replace("DIR", &files.path().to_string_lossy());
    assert_eq!(support::reached(&main, "component", ExtensionState::Failed).await, Some(cause));
}

#[tokio::test]
async fn compiled_code_without_a_trusted_signature_is_refused() {
    let mut files = Files::new();
    let (ours, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let artifact = artifact(&files, &ours);
    let start = 8 + 32 + 64 + b"weir artifact 3\n".len();
    let length = |at: usize| {
        let bytes = artifact[start + at..].first_chunk().unwrap();
        usize::try_from(u64::from_le_bytes(*bytes)).unwrap()
    };
    // Those of the contracts and of what measures fuel.
    let header = start + 24 + 64 + length(8) + length(16);
    files.write("bare.cwasm", &artifact[header..]);
    files
        .refused_unread(
            files.extension("bare.cwasm"),
            "`DIR/bare.cwasm` is compiled code without a signature: `weir compile` signs what it compiles",
        )
        .await;
    files.write("good.cwasm", &artifact);
    let untrusted = format!(
        "`DIR/good.cwasm` is signed with `{}`, which `main.trusted-keys` does not list",
        ours.trusted_key()
    );
    files.refused(files.extension("good.cwasm"), &untrusted).await;
    files.main.trusted_keys = vec![other.trusted_key()];
    files.refused(files.extension("good.cwasm"), &untrusted).await;

    // As if the other had signed it.
    let mut claimed = artifact.clone();
    claimed[8..40].copy_from_slice(other.trusted_key().as_bytes());
    files.write("claimed.cwasm", &claimed);
    files.refused(files.extension("claimed.cwasm"), "`DIR/claimed.cwasm` does not match its signature").await;
}

#[test]
fn an_artifact_of_which_one_bit_is_wrong_or_a_byte_is_missing_is_refused() {
    let mut files = Files::new();
    let key = SigningKey::generate().unwrap();
    files.main.trusted_keys = vec![key.trusted_key()];
    let artifact = artifact(&files, &key);
    let fault = |content: &[u8]| {
        files.write("a.cwasm", content);
        component::check(&files.main, &files.extension("a.cwasm"), &Compilation::PrecompiledOnly)
            .map_err(|e| e.fault)
    };
    fault(&artifact).unwrap();
    let bits = (0..120 * 8).chain((120 * 8..artifact.len() * 8).step_by(4999));
    for bit in bits {
        let mut flipped = artifact.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let fault = fault(&flipped).unwrap_err();
        let expected = match bit / 8 {
            0..7 => matches!(fault, LoadFault::NotWasm),
            7 => matches!(fault, LoadFault::OtherFormat(_)),
            8..40 => matches!(fault, LoadFault::Untrusted(_)),
            40..104 => matches!(fault, LoadFault::Forged),
            104..120 => matches!(fault, LoadFault::DamagedArtifact),
            _ => matches!(fault, LoadFault::Forged),
        };
        assert!(expected, "bit {bit}: {fault}");
    }
    for length in (8..130).chain((130..artifact.len()).step_by(997)) {
        let fault = fault(&artifact[..length]).unwrap_err();
        assert!(matches!(fault, LoadFault::DamagedArtifact | LoadFault::Forged), "{length}: {fault}");
    }
    let longer = [&artifact[..], b"\0"].concat();
    assert!(matches!(fault(&longer).unwrap_err(), LoadFault::Forged));
}

#[test]
fn an_artifact_for_another_processor_is_refused_by_name() {
    let mut files = Files::new();
    let key = SigningKey::generate().unwrap();
    files.main.trusted_keys = vec![key.trusted_key()];
    files.write_text("good.wasm", &good());
    let compiled = |target: &str| {
        component::compile(
            &files.path().join("good.wasm"),
            Some(&CompileTarget::new(Some(target), None).unwrap()),
            &Limits::max(),
            Traces::default(),
            &child(),
            &key,
        )
    };
    let unknown = CompileTarget::new(Some("toaster-unknown-none"), None).unwrap_err();
    assert!(matches!(unknown, CompileTargetError::Unknown { .. }), "{unknown}");
    // A target that builds for one architecture can make.
    let other = if cfg!(target_arch = "x86_64") { "x86_64-apple-darwin" } else { "aarch64-apple-darwin" };
    files.write("other.cwasm", &compiled(other).unwrap());
    let error = component::check(&files.main, &files.extension("other.cwasm"), &child()).unwrap_err();
    let LoadFault::OtherTarget(targets) = &error.fault else { panic!("{error}") };
    assert_eq!(targets[0].triple(), other);
    let advice = format!("`weir compile --target {} --address-space large` makes it", targets[1].triple());
    assert!(error.fault.to_string().ends_with(&advice), "{error}");
}
