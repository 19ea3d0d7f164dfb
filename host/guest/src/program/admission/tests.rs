//! What is admitted, at first and when the rules have changed.

use std::fs;

use futures_util::FutureExt;
use tempfile::TempDir;
use weir_config::{Limits, Traces};

use super::*;
use crate::{
    SigningKey,
    program::{Compilation, Runtime, SignatureError, Sources, compile, tests::wanted},
};

/// A file, the signature beside it and a list of what is revoked.
struct Signed {
    dir: TempDir,
    key: SigningKey,
    main: MainConfig,
}

impl Signed {
    fn new(content: &[u8]) -> Self {
        let (dir, key) = (tempfile::tempdir().unwrap(), SigningKey::generate().unwrap());
        let mut main = MainConfig::default();
        (main.require_signature, main.trusted_keys) = (true, vec![key.trusted_key()]);
        main.revoked = Some(dir.path().join("revoked.txt"));
        let signed = Self { dir, key, main };
        signed.write("it.wasm", content);
        signed.write("revoked.txt", b"");
        signed
    }

    fn write(&self, name: &str, content: &[u8]) {
        fs::write(self.dir.path().join(name), content).unwrap();
    }

    fn component(&self) -> ComponentSource {
        ComponentSource::Path(self.dir.path().join("it.wasm"))
    }

    fn hash(&self) -> ArtifactHash {
        ComponentInput::open(&self.component(), None, (&Limits::default()).into()).unwrap().hash
    }

    fn sign(&self, id: &str) {
        let size = fs::metadata(self.dir.path().join("it.wasm")).unwrap().len();
        let signature = Signature::sign(&self.key, id.parse().unwrap(), "1.2.0", self.hash(), size).unwrap();
        self.write("it.wasm.sig", signature.text().as_bytes());
    }

    fn revoke_key(&self) {
        self.write(
            "revoked.txt",
            format!("key {}\n", hex::encode(self.key.trusted_key().as_bytes())).as_bytes(),
        );
    }

    fn rules(&self) -> Rules {
        Rules::read(&self.main, None).unwrap()
    }

    /// Asks whether the extension `a` may run it.
    fn admit(&self, signed_as: Option<&ExtensionId>) -> Result<Voucher, LoadFault> {
        let (component, limits, id) = (self.component(), Limits::default(), "a".parse().unwrap());
        let wanted = LoadRequest { extension: Some(&id), signed_as, ..wanted(&component, &limits) };
        let candidate = Candidate::from(wanted);
        let mut input = candidate.open().unwrap();
        let voucher = candidate.admit(&mut input, &self.rules())?;
        assert!(self.rules().admits(wanted, input.hash, &voucher));
        Ok(voucher)
    }

    fn programs(&self) -> (Programs, Arc<Admission>) {
        let admission = Arc::new(Admission::new(&self.main, None).unwrap());
        let sources = Sources::new(&self.main, admission.clone(), Compilation::default(), Arc::default());
        (Programs::new(Runtime::new(crate::AddressClass::Large).unwrap(), sources, 1), admission)
    }
}

fn worker() -> Vec<u8> {
    fs::read(test_guests::path("worker")).unwrap()
}

/// The start of an artifact of this key.
fn artifact(key: &SigningKey) -> Vec<u8> {
    [artifact::MAGIC.as_slice(), key.trusted_key().as_bytes(), &[0; 200]].concat()
}

#[tokio::test]
async fn an_artifact_does_not_load_again_once_its_key_is_not_trusted_although_it_runs() {
    let mut signed = Signed::new(&worker());
    let path = signed.dir.path().join("it.wasm");
    let compiled =
        compile(&path, None, &Limits::max(), Traces::default(), &Compilation::default(), &signed.key);
    signed.write("it.wasm", &compiled.unwrap());
    let (programs, admission) = signed.programs();
    let (component, limits) = (signed.component(), Limits::default());
    let wanted = wanted(&component, &limits);
    let running = programs.load(wanted).await.unwrap();
    signed.main.trusted_keys.clear();
    admission.set(signed.rules());
    assert!(!programs.admits(wanted, &running));
    let fault = programs.load(wanted).await.unwrap_err().fault;
    assert!(matches!(fault, LoadFault::Untrusted(key) if key == signed.key.trusted_key()), "{fault}");
}

#[tokio::test]
async fn what_is_revoked_while_it_loads_does_not_run() {
    let signed = Signed::new(&worker());
    signed.sign("a");
    let (programs, admission) = signed.programs();
    let (component, limits) = (signed.component(), Limits::default());
    let mut loading = Box::pin(programs.load(wanted(&component, &limits)));
    assert!(loading.as_mut().now_or_never().is_none());
    signed.write("revoked.txt", format!("sha256 {}\n", signed.hash()).as_bytes());
    admission.set(signed.rules());
    let fault = loading.await.unwrap_err().fault;
    assert!(matches!(fault, LoadFault::RevokedComponent(_)), "{fault}");
}

#[test]
fn a_component_must_be_signed_as_the_extension_that_runs_it_or_as_its_table_says() {
    let mut signed = Signed::new(&worker());
    signed.sign("a");
    let (logger, storage) = ("logger".parse().unwrap(), "storage".parse().unwrap());
    signed.admit(None).unwrap();
    signed.sign("logger");
    let fault = signed.admit(None).unwrap_err();
    assert!(matches!(fault, LoadFault::OtherId(_)), "{fault}");
    assert_eq!(
        fault.to_string(),
        "is signed as `logger`, and the extension runs what is signed as `a`: set `signed-as = \"logger\"` for the \
         extension if it is the right component"
    );
    let voucher = signed.admit(Some(&logger)).unwrap();
    assert!(matches!(signed.admit(Some(&storage)), Err(LoadFault::OtherId(_))));
    // What runs may not run on when its table changes, or as a hook it may.
    let (component, limits) = (signed.component(), Limits::default());
    let (rules, hook) = (signed.rules(), wanted(&component, &limits));
    assert!(rules.admits(hook, signed.hash(), &voucher));
    assert!(!rules.admits(LoadRequest { extension: Some(&storage), ..hook }, signed.hash(), &voucher));
    signed.main.require_signature = false;
    signed.admit(None).unwrap();
}

#[test]
fn a_revoked_key_counts_even_where_no_signature_is_required() {
    let mut signed = Signed::new(&worker());
    signed.sign("a");
    let required = signed.admit(None).unwrap();
    signed.main.require_signature = false;
    signed.main.trusted_keys.clear();
    let voucher = signed.admit(None).unwrap();
    let (component, limits) = (signed.component(), Limits::default());
    let wanted = wanted(&component, &limits);
    // Nobody needs to trust what needs no signature.
    assert!(signed.rules().admits(wanted, signed.hash(), &required));
    signed.revoke_key();
    assert!(matches!(signed.admit(None), Err(LoadFault::RevokedKey(_))));
    assert!(!signed.rules().admits(wanted, signed.hash(), &voucher));
    // What is no signature of the component says nothing.
    signed.write("it.wasm.sig", b"-----BEGIN PGP SIGNATURE-----\n");
    let voucher = signed.admit(None).unwrap();
    signed.main.require_signature = true;
    assert!(!signed.rules().admits(wanted, signed.hash(), &voucher));
}

#[test]
fn an_artifact_may_have_a_signature_beside_it_that_names_its_version() {
    let mut signed = Signed::new(&[]);
    signed.write("it.wasm", &artifact(&signed.key));
    assert_eq!(signed.admit(None).unwrap().signature, None);
    signed.sign("a");
    let signature = signed.admit(None).unwrap().signature.unwrap();
    assert_eq!(signature.version.to_string(), "1.2.0");
    signed.sign("b");
    assert!(matches!(signed.admit(None), Err(LoadFault::OtherId(_))));
    signed.write("it.wasm.sig", b"weir signature");
    assert!(matches!(signed.admit(None), Err(LoadFault::Signature(SignatureError::Damaged))));
    signed.main.trusted_keys.clear();
    assert!(matches!(signed.admit(None), Err(LoadFault::Untrusted(_))));
    signed.revoke_key();
    assert!(matches!(signed.admit(None), Err(LoadFault::RevokedKey(_))));
}
