//! Components from memory.

use std::{fs, path::Path};

use sha2::{Digest, Sha256};
use weir_host::{
    Config, ExtensionConfig, Main, MainConfig,
    component::{Compilation, SigningKey, compile},
    config::{ArtifactHash, ComponentSource, DirGrant, Limits, ReloadMode, Traces},
    control::ExtensionState,
};

use super::{
    reload::hash,
    support::{builder, config, puppet_with, reached, start, tell},
};

fn component(version: u8) -> Vec<u8> {
    let mut bytes = fs::read(test_guests::path("puppet")).unwrap();
    // A custom section named `v`.
    bytes.extend([0, 3, 1, b'v', version]);
    bytes
}

fn puppet(id: &str, component: Vec<u8>) -> ExtensionConfig {
    let in_memory = ExtensionConfig::from_bytes(id.parse().unwrap(), component).component;
    assert!(matches!(in_memory, ComponentSource::Bytes(_)));
    puppet_with(id, |puppet| puppet.component = in_memory)
}

fn child() -> Compilation {
    Compilation::Child { program: env!("CARGO_BIN_EXE_weir-compile-helper").into(), arguments: Vec::new() }
}

#[tokio::test]
async fn a_component_in_memory_is_compiled_in_a_process_of_its_own_and_answers() {
    let bytes = component(1);
    let sha256 = ArtifactHash::from_bytes(Sha256::digest(&bytes).into());
    let mut pinned = puppet("a", bytes.clone());
    pinned.sha256 = Some(sha256);
    // A file must be in the plugin directory; bytes need not.
    let mut main = MainConfig::default();
    main.plugin_dir = Some("/nonexistent".into());
    main.cache_size = Some(0);
    let config = Config::new(main, vec![pinned, puppet("b", bytes)]);
    let main = Main::builder(config).compilation(child()).start().await.unwrap();
    for id in ["a", "b"] {
        assert_eq!(tell(&main, id, "echo 1").await.unwrap(), "1");
        assert_eq!(main.control().status(id).unwrap().hash, Some(sha256.to_string()));
    }
    main.control().restart("a").await.unwrap();
    assert_eq!(tell(&main, "a", "echo 2").await.unwrap(), "2");
}

#[tokio::test]
async fn each_refusal_says_of_which_extension_the_component_in_memory_is() {
    let bytes = component(1);
    let sha256 = ArtifactHash::from_bytes(Sha256::digest(&bytes).into());
    let mut other = puppet("other", bytes.clone());
    other.sha256 = Some(ArtifactHash::from_bytes([7; 32]));
    let mut large = puppet("large", bytes.clone());
    large.limits.file_size = bytes.len() as u64 - 1;
    let module = puppet("module", b"\0asm\x01\0\0\0".to_vec());
    let cut = puppet("cut", bytes[..bytes.len() / 2].to_vec());
    let main = builder(vec![other, large, module, cut]).compilation(child()).start().await.unwrap();
    let reason = async |id| {
        let reason = reached(&main, id, ExtensionState::Failed).await.unwrap();
        let begin = format!("cannot start: the component given in memory for `{id}` ");
        reason.strip_prefix(&begin).unwrap_or_else(|| panic!("{reason}")).to_owned()
    };
    assert_eq!(
        reason("other").await,
        format!("has the SHA-256 `{sha256}`, which is not the one that `sha256` pins")
    );
    assert_eq!(
        reason("large").await,
        format!(
            "has {} bytes, and `file-size` allows {}: make sure of the file before you raise that limit",
            bytes.len(),
            format_args!("{} B", bytes.len() - 1)
        )
    );
    assert!(reason("module").await.starts_with("is a core module, not a component"));
    assert!(reason("cut").await.starts_with("does not compile: "));
}

#[tokio::test]
async fn an_artifact_in_memory_runs_where_nothing_compiles_if_a_trusted_key_signed_it() {
    let (key, other) = (SigningKey::generate().unwrap(), SigningKey::generate().unwrap());
    let artifact = |key| {
        compile(&test_guests::path("puppet"), None, &Limits::max(), Traces::default(), &child(), key).unwrap()
    };
    let mut config = config(vec![
        puppet("trusted", artifact(&key)),
        puppet("untrusted", artifact(&other)),
        puppet("component", component(1)),
    ]);
    config.main.trusted_keys = vec![key.trusted_key()];
    let main = Main::builder(config).compilation(Compilation::PrecompiledOnly).start().await.unwrap();
    assert_eq!(tell(&main, "trusted", "echo 1").await.unwrap(), "1");
    assert_eq!(
        reached(&main, "untrusted", ExtensionState::Failed).await.unwrap(),
        format!(
            "cannot start: the component given in memory for `untrusted` is signed with `{}`, which \
             `main.trusted-keys` does not list",
            other.trusted_key()
        )
    );
    let refused = reached(&main, "component", ExtensionState::Failed).await.unwrap();
    assert!(
        refused.contains("for `component` must be compiled, and this Main runs only artifacts"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_reload_with_other_bytes_is_a_change_and_one_with_the_same_bytes_is_none() {
    for mode in [ReloadMode::StopFirst, ReloadMode::Overlap] {
        let of = |version| {
            let mut puppet = puppet("a", component(version));
            puppet.reload = mode;
            config(vec![puppet])
        };
        let main = start(of(1).extensions).await;
        let first = hash(&main);
        let report = main.control().reload_with(of(1)).await.unwrap();
        assert_eq!((report.changed, hash(&main)), (vec![], first.clone()));
        let report = main.control().reload_with(of(2)).await.unwrap();
        assert_eq!(report.changed, vec!["a".parse().unwrap()]);
        assert_ne!(hash(&main), first);
        assert_eq!(tell(&main, "a", "echo 2").await.unwrap(), "2");
    }
}

#[tokio::test]
async fn a_configuration_that_names_no_cache_has_the_usual_one_where_no_guest_may_write() {
    let usual = MainConfig::default_cache_dir();
    let config = |extensions| Config::new(MainConfig::default(), extensions);
    let writing = |dir: &Path| {
        let grant = DirGrant::read_write(dir, "/data".parse().unwrap());
        super::support::puppet_with("writes", |it| it.grants.dirs = vec![grant])
    };
    let running = async |config| Main::builder(config).start().await.unwrap();
    let cache = |main: &Main| main.control().configuration().main.cache().map(Path::to_owned);

    let main = running(config(vec![super::support::puppet("a")])).await;
    assert_eq!(cache(&main), Some(usual.clone()));
    let mut off = config(vec![]);
    off.main.cache_size = Some(0);
    assert_eq!(cache(&running(off).await), None);
    assert_eq!(cache(&running(config(vec![writing(&usual)])).await), None);

    // The cache of a Main that runs stays until its next start, whatever the next configuration names.
    let elsewhere = tempfile::tempdir().unwrap();
    let mut moved = config(vec![writing(&usual)]);
    moved.main.cache_dir = Some(elsewhere.path().join("cache"));
    moved.check().unwrap();
    for wanted in [config(vec![writing(&usual)]), moved] {
        let refused = main.control().reload_with(wanted).await.unwrap_err().to_string();
        assert!(refused.contains("`main.cache-dir`") && refused.contains("writes"), "{refused}");
    }
    let added = main.control().add(writing(&usual)).await.unwrap_err().to_string();
    assert!(added.contains("`main.cache-dir`"), "{added}");
}
