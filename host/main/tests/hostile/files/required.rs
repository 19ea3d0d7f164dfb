//! Where signatures are required, only what a trusted key signed runs, and nothing else is looked into.

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sha2::{Digest, Sha256};
use weir_host::{
    component::{self, LoadFault, Signature, SignatureError, SigningKey},
    config::{ArtifactHash, ComponentLock, Limits, LockedExtension, Traces},
    control::ControlError,
};

use super::*;

fn hash(content: &[u8]) -> ArtifactHash {
    ArtifactHash::from_bytes(Sha256::digest(content).into())
}

/// A component that signatures are required of, and the key that is trusted.
struct Signed {
    files: Files,
    key: SigningKey,
    component: Vec<u8>,
}

impl Signed {
    fn new() -> Self {
        let (mut files, key) = (Files::new(), SigningKey::generate().unwrap());
        files.main.require_signature = true;
        files.main.trusted_keys = vec![SigningKey::generate().unwrap().trusted_key(), key.trusted_key()];
        let component = wat::parse_str(good()).unwrap();
        files.write("a.wasm", &component);
        Self { files, key, component }
    }

    fn text(&self, key: &SigningKey, content: &[u8]) -> String {
        let (id, size) = ("hostile".parse().unwrap(), content.len() as u64);
        Signature::sign(key, id, "1.2.0", hash(content), size).unwrap().text()
    }

    fn sign(&self) {
        self.files.write("a.wasm.sig", self.text(&self.key, &self.component).as_bytes());
    }

    /// Checks the component as it is now, with a compiler that is not there: its fault shows that the compiler was to
    /// look at the component.
    fn fault(&self) -> LoadFault {
        let checked = component::check(&self.files.main, &self.files.extension("a.wasm"), &no_compiler());
        checked.unwrap_err().fault
    }

    fn is_admitted(&self) -> bool {
        matches!(self.fault(), LoadFault::Compiler(_))
    }
}

#[tokio::test]
async fn a_component_runs_only_with_the_signature_of_a_trusted_key() {
    let mut signed = Signed::new();
    signed.files.main.cache_dir = Some(signed.files.path().join("cache"));
    let unsigned =
        component::check(&signed.files.main, &signed.files.extension("a.wasm"), &child()).unwrap_err();
    let told = "`DIR/a.wasm` has no signature, which `main.require-signature` asks for: sign it with `weir sign`, and put \
                `DIR/a.wasm.sig` beside it";
    assert_eq!(unsigned.to_string(), told.replace("DIR", &signed.files.path().to_string_lossy()));
    signed.sign();
    let mut good = support::puppet("good");
    good.signed_as = Some("hostile".parse().unwrap());
    good.component = ComponentSource::Path(signed.files.path().join("good.wasm"));
    let puppet = fs::read(test_guests::path("puppet")).unwrap();
    signed.files.write("good.wasm", &puppet);
    signed.files.write("good.wasm.sig", signed.text(&signed.key, &puppet).as_bytes());
    let config = Config::new(signed.files.main.clone(), vec![signed.files.extension("a.wasm"), good]);
    let main = Main::builder(config).compilation(child()).start().await.unwrap();
    support::reached(&main, "hostile", ExtensionState::Stopped).await;
    main.shutdown().await.unwrap();

    // Its code is in the cache now, and still nothing runs without a signature.
    fs::remove_file(signed.files.path().join("a.wasm.sig")).unwrap();
    assert!(matches!(signed.fault(), LoadFault::Unsigned(_)));
    signed.files.main.require_signature = false;
    component::check(&signed.files.main, &signed.files.extension("a.wasm"), &no_compiler()).unwrap();
}

#[test]
fn each_reason_not_to_trust_a_signature_has_its_own_name_and_no_compiler_sees_the_component() {
    let mut signed = Signed::new();
    signed.sign();
    assert!(signed.is_admitted(), "{}", signed.fault());
    // Another component of the same size, and a longer one.
    let mut other = signed.component.clone();
    let last = other.len() - 1;
    other[last] ^= 1;
    signed.files.write("a.wasm", &other);
    assert!(matches!(signed.fault(), LoadFault::Signature(SignatureError::OtherHash { .. })));
    signed.files.write("a.wasm", &[&signed.component[..], b"\0\x01\0"].concat());
    assert!(matches!(signed.fault(), LoadFault::Signature(SignatureError::OtherSize { .. })));
    signed.files.write("a.wasm", &signed.component);

    let stranger = SigningKey::generate().unwrap();
    let untrusted = signed.text(&stranger, &signed.component);
    signed.files.write("a.wasm.sig", untrusted.as_bytes());
    assert!(
        matches!(signed.fault(), LoadFault::Signature(SignatureError::Untrusted(key)) if key == stranger.trusted_key())
    );
    // As if a trusted key had signed it.
    let lines: Vec<_> = untrusted.lines().collect();
    let trusted = signed.text(&signed.key, &signed.component);
    let claimed = untrusted.replace(lines[1], trusted.lines().nth(1).unwrap());
    signed.files.write("a.wasm.sig", claimed.as_bytes());
    assert!(matches!(signed.fault(), LoadFault::Signature(SignatureError::Forged)));
    signed.files.write("a.wasm.sig", &vec![b'a'; 100_000]);
    assert!(matches!(signed.fault(), LoadFault::Signature(SignatureError::Damaged)));

    // What is no file is not waited for.
    let path = signed.files.path().join("a.wasm.sig");
    fs::remove_file(&path).unwrap();
    mknodat(CWD, &path, FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert!(matches!(signed.fault(), LoadFault::SignatureFile { .. }));
    fs::remove_file(&path).unwrap();
    signed.files.write("real.sig", trusted.as_bytes());
    symlink("real.sig", &path).unwrap();
    assert!(matches!(signed.fault(), LoadFault::SignatureFile { .. }));
    fs::remove_file(&path).unwrap();

    // The component's own manifest has the last word on its name.
    let manifest = br#"{"schema":1,"id":"hostile","version":"1.1.0"}"#;
    let length = u8::try_from(14 + manifest.len()).unwrap();
    signed.component.extend([&[0, length, 13][..], b"weir:manifest", manifest].concat());
    signed.files.write("a.wasm", &signed.component);
    signed.sign();
    let LoadFault::OtherName(names) = signed.fault() else { panic!("{}", signed.fault()) };
    let [of_signature, own] = names.map(|(id, version)| format!("{id} {version}"));
    assert_eq!((&*of_signature, &*own), ("hostile 1.2.0", "hostile 1.1.0"));

    // What is in memory has its signature beside it in memory.
    signed.component = wat::parse_str(good()).unwrap();
    let mut in_memory = ExtensionConfig::from_bytes("hostile".parse().unwrap(), signed.component.clone());
    let checked = |extension: &ExtensionConfig| {
        component::check(&signed.files.main, extension, &no_compiler()).unwrap_err().fault
    };
    assert!(matches!(checked(&in_memory), LoadFault::UnsignedInMemory));
    in_memory.signature = Some(signed.text(&signed.key, &signed.component).into());
    assert!(matches!(checked(&in_memory), LoadFault::Compiler(_)));
}

#[test]
fn a_bit_flipped_in_the_signature_or_the_component_is_refused() {
    let signed = Signed::new();
    signed.sign();
    let text = signed.text(&signed.key, &signed.component).into_bytes();
    for bit in 0..text.len() * 8 {
        let mut flipped = text.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        signed.files.write("a.wasm.sig", &flipped);
        let fault = signed.fault();
        assert!(matches!(fault, LoadFault::Signature(_)), "bit {bit}: {fault}");
    }
    signed.sign();
    for bit in (0..signed.component.len() * 8).step_by(5) {
        let mut flipped = signed.component.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        signed.files.write("a.wasm", &flipped);
        let fault = signed.fault();
        let expected = match bit / 8 {
            // It is something else then.
            0..8 => matches!(fault, LoadFault::NotWasm | LoadFault::CoreModule),
            _ => matches!(fault, LoadFault::Signature(SignatureError::OtherHash { .. })),
        };
        assert!(expected, "bit {bit}: {fault}");
    }
}

#[test]
fn what_is_revoked_is_refused_by_name_artifacts_too() {
    let mut signed = Signed::new();
    signed.sign();
    signed.files.main.revoked = Some(signed.files.path().join("revoked.txt"));
    assert!(matches!(signed.fault(), LoadFault::Rules(_)), "{}", signed.fault());
    signed.files.write("revoked.txt", b"# nothing yet\n");
    assert!(signed.is_admitted());
    let key_line = signed.text(&signed.key, &[]).lines().nth(1).unwrap().to_owned();
    signed.files.write("revoked.txt", key_line.as_bytes());
    assert!(matches!(signed.fault(), LoadFault::RevokedKey(key) if key == signed.key.trusted_key()));
    let artifact = component::compile(
        &signed.files.path().join("a.wasm"),
        None,
        &Limits::max(),
        Traces::default(),
        &child(),
        &signed.key,
    );
    let artifact = artifact.unwrap();
    signed.files.write("a.wasm", &artifact);
    assert!(matches!(signed.fault(), LoadFault::RevokedKey(_)));
    for content in [artifact, signed.component.clone()] {
        signed.files.write("a.wasm", &content);
        signed.files.write("revoked.txt", format!("sha256 {}\n", hash(&content)).as_bytes());
        let fault = signed.fault();
        assert!(matches!(fault, LoadFault::RevokedComponent(found) if found == hash(&content)), "{fault}");
    }
}

#[tokio::test]
async fn what_is_revoked_while_it_runs_is_stopped_at_the_reload_and_a_damaged_list_changes_nothing() {
    let mut signed = Signed::new();
    signed.component = fs::read(test_guests::path("puppet")).unwrap();
    signed.files.write("a.wasm", &signed.component);
    signed.files.main.revoked = Some(signed.files.path().join("revoked.txt"));
    signed.sign();
    let config = || {
        let mut puppet = support::puppet("hostile");
        puppet.component = ComponentSource::Path(signed.files.path().join("a.wasm"));
        Config::new(signed.files.main.clone(), vec![puppet])
    };
    let unreadable = Main::builder(config()).compilation(child()).start().await.unwrap_err();
    assert!(unreadable.to_string().contains("which `main.revoked` names, cannot be read: "), "{unreadable}");
    signed.files.write("revoked.txt", b"");
    let main = Main::builder(config()).compilation(child()).start().await.unwrap();
    support::reached(&main, "hostile", ExtensionState::Ready).await;

    signed.files.write("revoked.txt", b"key 5\n");
    let refused = main.control().reload_with(config()).await.unwrap_err();
    let ControlError::NotConfigured(reason) = &refused else { panic!("{refused}") };
    assert!(
        reason.ends_with("has neither `key` nor `sha256` with 64 hexadecimal digits in line 1"),
        "{reason}"
    );
    assert_eq!(support::tell(&main, "hostile", "echo 1").await.unwrap(), "1");

    // The old key goes, and the component is signed with another one: it runs on.
    let (old, new) = (&signed.key, SigningKey::generate().unwrap());
    let with_both = || {
        let mut both = config();
        both.main.trusted_keys = vec![old.trusted_key(), new.trusted_key()];
        both
    };
    signed.files.write("revoked.txt", b"");
    let restarts = || main.control().status("hostile").unwrap().restarts;
    main.control().reload_with(with_both()).await.unwrap();
    signed.files.write("a.wasm.sig", signed.text(&new, &signed.component).as_bytes());
    signed.files.write("revoked.txt", signed.text(old, &[]).lines().nth(1).unwrap().as_bytes());
    let report = main.control().reload_with(with_both()).await.unwrap();
    assert!(report.failed.is_empty(), "{report:?}");
    assert_eq!((support::tell(&main, "hostile", "echo 2").await.unwrap(), restarts()), ("2".to_owned(), 0));

    // The new key too: nothing may run any more.
    let both = [old, &new].map(|key| signed.text(key, &[]).lines().nth(1).unwrap().to_owned());
    signed.files.write("revoked.txt", both.join("\n").as_bytes());
    let report = main.control().reload_with(with_both()).await.unwrap();
    let [failed] = &report.failed[..] else { panic!("{report:?}") };
    let reason = format!("is signed with `{}`, which `main.revoked` lists", new.trusted_key());
    assert!(failed.reason.contains(&reason), "{}", failed.reason);
    assert!(failed.reason.ends_with("; what runs may not run any more, and is stopped"), "{}", failed.reason);
    let reached = support::reached(&main, "hostile", ExtensionState::Failed).await.unwrap();
    assert!(reached.contains(&reason), "{reached}");
    let started = main.control().start("hostile").await.unwrap_err();
    assert!(started.to_string().contains(&reason), "{started}");
}

#[tokio::test]
async fn a_locked_main_runs_what_the_lock_lists_and_nothing_else() {
    let files = Files::new();
    let puppet = fs::read(test_guests::path("puppet")).unwrap();
    // A custom section named `v`.
    let other = [&puppet[..], &[0, 3, 1, b'v', 2]].concat();
    files.write("a.wasm", &puppet);
    files.write("b.wasm", &other);
    let extension = |id: &str| {
        let mut puppet = support::puppet(id);
        puppet.component = ComponentSource::Path(files.path().join(format!("{id}.wasm")));
        puppet
    };
    let config = || Config::new(files.main.clone(), vec![extension("a"), extension("b")]);
    let path = files.path().join("weir.lock");
    let start = || Main::builder(config()).compilation(child()).locked(&path).start();
    let missing = start().await.unwrap_err().to_string();
    assert!(missing.ends_with("weir.lock` is missing: make it with `weir lock`"), "{missing}");

    let (lock, warnings) = component::lock(&config(), &path, None).unwrap();
    assert_eq!(warnings, [""; 0]);
    lock.write(&path).unwrap();
    let main = start().await.unwrap();
    for id in ["a", "b"] {
        support::reached(&main, id, ExtensionState::Ready).await;
    }
    // Each has a component that only the other one may run.
    files.write("a.wasm", &other);
    let error = main.control().reload_extension("a").await.unwrap_err().to_string();
    let reason =
        format!("has the SHA-256 `{}`, which `{}` does not list for it", hash(&other), path.display());
    assert!(error.contains(&reason) && error.ends_with("; the version before serves on"), "{error}");
    let error = main.control().restart("a").await.unwrap_err().to_string();
    assert!(error.contains(&reason), "{error}");

    // A damaged lock changes nothing, and a new one holds at once.
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() - 1]).unwrap();
    let refused = main.control().reload_with(config()).await.unwrap_err().to_string();
    assert!(refused.contains("weir.lock` is damaged, or was changed by hand"), "{refused}");
    let mut lock = ComponentLock::default();
    lock.extensions.insert("a".parse().unwrap(), LockedExtension::new(hash(&other)));
    lock.write(&path).unwrap();
    main.control().reload_with(config()).await.unwrap();
    main.control().restart("a").await.unwrap();
    assert_eq!(support::tell(&main, "a", "echo 1").await.unwrap(), "1");
    let reason = support::reached(&main, "b", ExtensionState::Failed).await.unwrap();
    assert!(reason.contains("does not list for it"), "{reason}");
    main.shutdown().await.unwrap();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("Format 1", "Format 2")).unwrap();
    let newer = start().await.unwrap_err().to_string();
    assert!(newer.contains("has format 2, and this version of Weir reads format 1"), "{newer}");
}
