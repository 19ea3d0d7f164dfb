//! Beside a real registry, with what others use for it: run by `cargo xtask test --full shipping`.

use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::json;

use crate::{
    fake::{Package, sha256},
    run::Place,
};

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("`{name}` is not set"))
}

/// A place of somebody whom the registry knows, with the registry's certificate.
fn place(registry: &str, user: &str) -> Place {
    let place = Place::new();
    Package::new().write(&place.path().join("made"));
    let auths = json!({ "auths": { registry: { "auth": STANDARD.encode(user) } } });
    fs::write(place.path().join("auth.json"), auths.to_string()).unwrap();
    let certificates = place.path().join(".config/containers/certs.d").join(registry);
    fs::create_dir_all(&certificates).unwrap();
    fs::copy(variable("WEIR_REGISTRY_CA"), certificates.join("ca.crt")).unwrap();
    place
}

fn run(place: &Place, program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(place.path()).env("HOME", place.path());
    command
        .env("REGISTRY_AUTH_FILE", "auth.json")
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("XDG_CONFIG_HOME");
    assert!(command.status().unwrap().success(), "{command:?}");
}

/// The blobs of a layout, by their names.
fn blobs(layout: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(layout.join("blobs/sha256")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(path).unwrap()))
        .collect()
}

#[test]
#[ignore = "needs a registry, skopeo and oras"]
fn others_read_what_is_pushed_and_what_they_copy_is_pulled() {
    let registry = variable("WEIR_REGISTRY");
    let place = place(&registry, &variable("WEIR_REGISTRY_USER"));
    let program = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("REGISTRY_AUTH_FILE", "auth.json");
        crate::run::Ended::of(command.output().unwrap())
    };
    let named = |tag: &str| format!("{registry}/plugins/tools:{tag}");
    let package = Package::new();
    let pushed = program(&["push", "made", &named("made")]).ok();
    assert_eq!(pushed, format!("{}@{}\n", named("made"), package.digest()));

    let expected = blobs(&place.path().join("made"));
    let pulled = |tag: &str| {
        let to = format!("pulled-{tag}");
        program(&["pull", &named(tag), &to]).ok();
        assert_eq!(blobs(&place.path().join(&to)), expected, "{tag}");
    };
    pulled("made");

    let skopeo = |arguments: &[&str]| run(&place, "skopeo", &[&["copy"], arguments].concat());
    skopeo(&[&format!("docker://{}", named("made")), "oci:skopeo:made"]);
    assert_eq!(blobs(&place.path().join("skopeo")), expected);
    program(&["push", "skopeo", &named("again-of-skopeo")]).ok();
    skopeo(&["oci:pulled-made:made", &format!("docker://{}", named("by-skopeo"))]);
    pulled("by-skopeo");

    let oras = |arguments: &[&str]| run(&place, &variable("WEIR_ORAS"), arguments);
    let (from, ca) = (named("made"), variable("WEIR_REGISTRY_CA"));
    let source = ["cp", "--from-registry-config", "auth.json", "--from-ca-file", &ca, &from];
    oras(&[&source[..], &["--to-oci-layout", "oras:made"]].concat());
    assert_eq!(blobs(&place.path().join("oras")), expected);
    program(&["push", "oras", &named("again-of-oras")]).ok();
    let to = ["--to-registry-config", "auth.json", "--to-ca-file", &ca, &named("by-oras")];
    oras(&[&["cp", "--from-oci-layout", "oras:made"], &to[..]].concat());
    pulled("by-oras");

    let listed = program(&["tags", &format!("{registry}/plugins/tools")]).ok();
    let mut listed: Vec<_> = listed.lines().collect();
    listed.sort_unstable();
    assert_eq!(listed, ["again-of-oras", "again-of-skopeo", "by-oras", "by-skopeo", "made"]);
    let absent = format!("{registry}/plugins/tools@{}", sha256(b""));
    program(&["pull", &absent, "absent"]).failed(4, "MANIFEST_UNKNOWN");
}

#[test]
#[ignore = "needs a registry"]
fn a_registry_takes_nothing_of_a_stranger() {
    let registry = variable("WEIR_REGISTRY");
    let place = place(&registry, "stranger:guesses");
    let reference = format!("{registry}/plugins/of-stranger:1.0");
    place.run(&["push", "made", &reference]).failed(5, "no file has any for it");
    let push = ["push", "made", &reference, "--auth-file", "auth.json"];
    place.run(&push).failed(5, "the credentials are not enough");
}
