//! With signatures, a version is no older than the proven one, and what is revoked does not come back.

use std::{fs, path::Path};

use sha2::{Digest, Sha256};
use tempfile::TempDir;
use weir_host::{
    Main,
    component::{Signature, SigningKey},
    config::ArtifactHash,
    control::{ExtensionState, Holds, Standing},
};

use super::{
    reload::write,
    support::reached,
    versions::{ask, standing_of, start, versions},
};

/// `c` is in the second stage, and the first waits for `a` to be proven.
#[tokio::test]
async fn what_is_revoked_is_stopped_before_a_stage_that_waits_for_an_earlier_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let put = |id: &str, version: u8| {
        let mut component = fs::read(test_guests::path("puppet")).unwrap();
        component.extend([0, 3, 1, b'v', version]);
        write(&path(&format!("{id}.wasm")), &component);
        ArtifactHash::from_bytes(Sha256::digest(&component).into())
    };
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    let extension = |id: &str, keys: &str| {
        format!(
            "[[extension]]\nid = '{id}'\npath = '{id}.wasm'\nfulfills = ['{id}@1']\nconfig.contract = '{id}@1'\n\
             limits.ready-timeout = '2m'\n{keys}\n"
        )
    };
    let text = format!("[main]\nstate-dir = 'state'\ncache-dir = '{cache}'\nrevoked = 'revoked.txt'\n")
        + &extension("a", "update = { prove-for = '1h' }")
        + &extension("c", "requires = ['a@1']");
    write(&path("weir.toml"), text.as_bytes());
    write(&path("revoked.txt"), b"");
    put("a", 1);
    let revoked = put("c", 1);
    let main = start(dir.path()).await;
    main.control().accept_version("a").await.unwrap();
    put("a", 2);
    write(&path("revoked.txt"), format!("sha256 {revoked}\n").as_bytes());
    let control = main.control().clone();
    let reloading = tokio::spawn(async move { control.reload_in_stages(None, Holds::Proven).await });
    reached(&main, "c", ExtensionState::Failed).await;
    assert!(!reloading.is_finished(), "the first stage has not held");
    assert_eq!(main.control().status("a").unwrap().state, ExtensionState::Ready);
    main.shutdown().await.unwrap();
    drop(reloading.await.unwrap());
}

struct Device {
    dir: TempDir,
    key: SigningKey,
}

impl Device {
    fn new() -> Self {
        let device = Self { dir: tempfile::tempdir().unwrap(), key: SigningKey::generate().unwrap() };
        fs::create_dir(device.path().join("data")).unwrap();
        device.revoke("");
        device.configure(&[&device.key]);
        device
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn configure(&self, keys: &[&SigningKey]) {
        let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
        let keys: Vec<_> = keys.iter().map(|key| format!("'{}'", key.trusted_key())).collect();
        let text = format!(
            "[main]\nstate-dir = 'state'\ncache-dir = '{cache}'\nrequest-timeout = '2m'\n\
             require-signature = true\nrevoked = 'revoked.txt'\ntrusted-keys = [{}]\n\
             [[extension]]\nid = 'a'\npath = 'a.wasm'\nsigned-as = 'updated'\nfulfills = ['updated@1']\n\
             limits.ready-timeout = '2m'\nrestart = {{ backoff = '1ms', max-backoff = '1ms' }}\n\
             grants.dirs = [{{ host = 'data', guest = '/data', mode = 'rw' }}]\n\
             update = {{ prove-for = '1h', min-requests = 1_000_000 }}\n",
            keys.join(",")
        );
        write(&self.path().join("weir.toml"), text.as_bytes());
    }

    /// Puts a component there, signed as this version. Returns its hash.
    fn put(&self, version: &str, key: &SigningKey) -> ArtifactHash {
        // The manifest says the same.
        let component = test_guests::updated_to(&format!("good{}", version.replace('.', "")), version);
        let hash = ArtifactHash::from_bytes(Sha256::digest(&component).into());
        let id = "updated".parse().unwrap();
        let signature = Signature::sign(key, id, version, hash, component.len() as u64).unwrap();
        write(&self.path().join("a.wasm.sig"), signature.text().as_bytes());
        write(&self.path().join("a.wasm"), &component);
        hash
    }

    fn revoke(&self, lines: &str) {
        write(&self.path().join("revoked.txt"), lines.as_bytes());
    }

    async fn start(&self) -> Main {
        start(self.path()).await
    }
}

/// The version whose answers come now.
async fn answering(main: &Main) -> String {
    let answer = main.client().call("updated@1", "work", "").await.unwrap();
    String::from_utf8_lossy(&answer).trim_end_matches('.').to_owned()
}

async fn prove(main: &Main) {
    assert_eq!(ask(main.client(), 5).await.good, 5);
    main.control().accept_version("a").await.unwrap();
}

#[tokio::test]
async fn an_older_version_than_the_proven_one_runs_only_if_the_operator_says_so() {
    let device = Device::new();
    device.put("0.2.0", &device.key);
    let main = device.start().await;
    prove(&main).await;
    device.put("0.1.9", &device.key);
    let older = main.control().reload_extension("a").await.unwrap_err().to_string();
    let reason = "it is signed as version 0.1.9, and 0.2.0 is proven: `weir reload a --now` runs the older one all the \
                  same";
    assert!(older.contains(reason), "{older}");
    let plan = main.control().plan(None).unwrap();
    assert_eq!(plan.held_back.iter().map(|it| &*it.reason).collect::<Vec<_>>(), [reason]);
    assert_eq!(answering(&main).await, "good020");
    main.shutdown().await.unwrap();

    // Neither does a restart of Main run it.
    let main = device.start().await;
    assert_eq!(answering(&main).await, "good020");
    assert_eq!(versions(&main).held_back.as_deref(), Some(reason));
    main.control().reload_extension_now("a").await.unwrap();
    assert_eq!(answering(&main).await, "good019");
    main.shutdown().await.unwrap();
    let main = device.start().await;
    assert_eq!(answering(&main).await, "good019");

    // A newer one is a new version as ever, and going back to the proven one is no older version.
    device.put("0.3.0", &device.key);
    main.control().reload_extension("a").await.unwrap();
    assert_eq!(answering(&main).await, "good030");
    main.control().roll_back("a", None).await.unwrap();
    assert_eq!(answering(&main).await, "good019");
}

#[tokio::test]
async fn a_revoked_version_does_not_come_back_and_one_that_was_signed_again_does() {
    let device = Device::new();
    let first = device.put("0.1.0", &device.key);
    let main = device.start().await;
    prove(&main).await;
    let second = device.put("0.2.0", &device.key);
    main.control().reload_extension("a").await.unwrap();
    prove(&main).await;
    // The second is revoked while it runs: the first one, which is kept, takes its place.
    device.revoke(&format!("sha256 {second}\n"));
    let report = main.control().reload().await.unwrap();
    assert!(report.failed.iter().any(|failed| failed.reason.contains("is revoked: ")), "{report:?}");
    let first_serves = async {
        while main.control().status("a").unwrap().version.map(|version| version.number) != Some(1) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(super::support::PATIENCE, first_serves).await.unwrap();
    reached(&main, "a", ExtensionState::Ready).await;
    assert_eq!(answering(&main).await, "good010");
    assert_eq!(standing_of(&versions(&main), 2), Some(Standing::Proven));
    main.shutdown().await.unwrap();

    // Nothing is left once both are.
    device.revoke(&format!("sha256 {second}\nsha256 {first}\n"));
    let main = device.start().await;
    let reason = reached(&main, "a", ExtensionState::Failed).await.unwrap();
    assert!(
        reason.contains(&format!("is revoked: `main.revoked` lists its SHA-256, `{second}`")),
        "{reason}"
    );
    main.shutdown().await.unwrap();

    // Kept components need a signature of a key that is trusted now, too.
    device.revoke("");
    let new = SigningKey::generate().unwrap();
    device.configure(&[&new]);
    let main = device.start().await;
    let reason = reached(&main, "a", ExtensionState::Failed).await.unwrap();
    assert!(reason.contains("which `main.trusted-keys` does not list"), "{reason}");
    device.put("0.2.0", &new);
    main.control().restart("a").await.unwrap();
    fs::remove_file(device.path().join("a.wasm")).unwrap();
    main.shutdown().await.unwrap();
    let main = device.start().await;
    assert_eq!(answering(&main).await, "good020");
}
