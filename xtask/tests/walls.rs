//! The walls between the crates, as in ARCHITECTURE.md: what each may depend on, and what it must never see.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    process::Command,
};

use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, PackageId};

/// For each crate: the crates of this repository that it may depend on, and the crates that must not be among
/// its dependencies at any depth.
const WALLS: [(&str, &[&str], &[&str]); 34] = [
    ("weir-names", &[], &["wasmtime", "tokio", "toml"]),
    ("weir-metrics", &[], &["wasmtime", "tokio", "weir-names"]),
    ("weir-openrpc", &["weir-names"], &["wasmtime", "tokio", "toml"]),
    ("weir-generate", &["weir-names", "weir-openrpc"], &["wasmtime", "tokio", "weir-host"]),
    ("weir-peer", &["weir-names"], &["wasmtime", "weir-host", "toml"]),
    ("weir-sockets", &[], &["wasmtime", "tokio", "weir-names"]),
    ("weir-reports", &["weir-metrics", "weir-names"], &["wasmtime", "tokio", "toml"]),
    ("weir-logs", &["weir-names", "weir-reports"], &["wasmtime", "toml"]),
    (
        "weir-bus",
        &["weir-metrics", "weir-names", "weir-reports"],
        &["wasmtime", "wasmtime-wasi", "toml", "axum", "hyper"],
    ),
    ("weir-schedule", &["weir-metrics", "weir-names"], &["wasmtime", "weir-bus", "weir-config"]),
    (
        "weir-config",
        &["weir-metrics", "weir-names", "weir-reports"],
        &["wasmtime", "weir-bus", "weir-schedule", "tokio"],
    ),
    ("weir-confinement", &[], &["wasmtime", "tokio", "weir-names"]),
    ("weir-private-dir", &[], &["wasmtime", "tokio", "weir-names"]),
    (
        "weir-versions",
        &["weir-config", "weir-names", "weir-private-dir", "weir-reports"],
        &["wasmtime", "tokio", "weir-bus", "weir-schedule"],
    ),
    (
        "weir-http",
        &["weir-config", "weir-metrics", "weir-names"],
        &["wasmtime", "weir-bus", "weir-schedule", "openssl-sys", "aws-lc-sys"],
    ),
    (
        "weir-store",
        &["weir-config", "weir-names"],
        &["wasmtime", "weir-bus", "weir-schedule", "axum", "hyper"],
    ),
    (
        "weir-guest",
        &[
            "weir-bus",
            "weir-config",
            "weir-confinement",
            "weir-http",
            "weir-logs",
            "weir-metrics",
            "weir-names",
            "weir-openrpc",
            "weir-private-dir",
            "weir-reports",
            "weir-schedule",
            "weir-store",
        ],
        &["weir-supervisor", "weir-versions", "axum"],
    ),
    (
        "weir-hooks",
        &["weir-config", "weir-guest", "weir-metrics", "weir-names", "weir-schedule"],
        &["weir-supervisor", "axum"],
    ),
    (
        "weir-supervisor",
        &[
            "weir-bus",
            "weir-config",
            "weir-guest",
            "weir-logs",
            "weir-metrics",
            "weir-names",
            "weir-reports",
            "weir-schedule",
            "weir-versions",
        ],
        &["weir-hooks", "axum"],
    ),
    (
        "weir-host",
        &[
            "weir-bus",
            "weir-config",
            "weir-guest",
            "weir-hooks",
            "weir-http",
            "weir-logs",
            "weir-metrics",
            "weir-names",
            "weir-openrpc",
            "weir-reports",
            "weir-schedule",
            "weir-store",
            "weir-supervisor",
            "weir-versions",
        ],
        &["axum", "weir-control", "weir-peer", "weir-sockets"],
    ),
    ("weir-connection", &["weir-host"], &["weir-peer", "weir-sockets", "axum"]),
    (
        "weir-gateway",
        &["weir-connection", "weir-host", "weir-sockets"],
        &["weir-control", "weir-peer", "weir-peer-socket"],
    ),
    ("weir-control", &["weir-host", "weir-sockets"], &["weir-peer", "weir-peer-socket"]),
    (
        "weir-peer-socket",
        &["weir-connection", "weir-host", "weir-peer", "weir-sockets"],
        &["weir-control", "axum"],
    ),
    ("weir-otlp", &["weir-reports"], &["tokio", "hyper", "weir-host"]),
    ("weir-package", &[], &["wasmtime", "wasmparser", "tokio", "hyper", "weir-host"]),
    (
        "weir-registry",
        &["weir-names", "weir-package"],
        &["wasmtime", "weir-host", "openssl-sys", "aws-lc-sys"],
    ),
    ("weir-top", &["weir-names", "weir-reports"], &["wasmtime", "tokio", "hyper", "weir-host"]),
    (
        "weir-cli",
        &[
            "weir-control",
            "weir-gateway",
            "weir-generate",
            "weir-host",
            "weir-otlp",
            "weir-package",
            "weir-peer-socket",
            "weir-top",
        ],
        // NATS and registries are programs' of their own.
        &["async-nats", "weir-nats", "weir-registry"],
    ),
    (
        "weir-nats",
        &["weir-names", "weir-peer"],
        &["wasmtime", "hyper", "weir-bus", "weir-config", "weir-host"],
    ),
    (
        "weir-capi",
        &["weir-control", "weir-host", "weir-peer-socket"],
        &["weir-gateway", "weir-otlp", "cbindgen"],
    ),
    // Main on a device without apps has nothing of the gateway, and without stores nothing of theirs.
    (
        "weir-device",
        &["weir-control", "weir-host", "weir-peer-socket"],
        &["async-nats", "weir-gateway", "weir-otlp", "weir-top"],
    ),
    ("weir-sdk", &["weir-names", "weir-sdk-derive"], &["wasmtime", "tokio", "toml", "weir-bus"]),
    ("weir-sdk-derive", &[], &["serde", "weir-names"]),
];

/// The only crate that may name wasmtime and its companions. All others reach it through this one.
const OWNER_OF_WASMTIME: &str = "weir-guest";

/// Crates that, built without features, have no compiler and nothing of HTTP to other machines; and whether they have HTTP
/// at all.
const WITHOUT_FEATURES: [(&str, bool); 10] = [
    ("weir-guest", false),
    ("weir-hooks", false),
    ("weir-supervisor", false),
    ("weir-host", false),
    ("weir-connection", false),
    ("weir-peer-socket", false),
    ("weir-capi", false),
    ("weir-count", false),
    ("weir-device", true),
    ("weir-cli", true),
];

/// The workspace's dependencies on this machine, with all features. Those for other machines are not
/// downloaded.
fn metadata() -> Metadata {
    let rustc = Command::new("rustc").arg("-vV").output().unwrap();
    let rustc = String::from_utf8(rustc.stdout).unwrap();
    let host = rustc.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        .features(CargoOpt::AllFeatures)
        .other_options(["--locked", "--offline", "--filter-platform", host].map(ToOwned::to_owned))
        .exec()
        .unwrap()
}

/// Dependencies of the build, without those of tests and build scripts.
fn dependencies(metadata: &Metadata) -> BTreeMap<&PackageId, Vec<&PackageId>> {
    let resolve = metadata.resolve.as_ref().unwrap();
    let is_normal = |dependency: &&cargo_metadata::NodeDep| {
        dependency.dep_kinds.iter().any(|kind| kind.kind == DependencyKind::Normal)
    };
    let nodes = resolve.nodes.iter();
    nodes.map(|node| (&node.id, node.deps.iter().filter(is_normal).map(|dep| &dep.pkg).collect())).collect()
}

fn id_of<'m>(metadata: &'m Metadata, name: &str) -> &'m PackageId {
    let package = metadata.workspace_packages().into_iter().find(|package| *package.name == name);
    &package.unwrap_or_else(|| panic!("there is no crate `{name}`")).id
}

#[test]
fn a_crate_depends_on_no_crate_of_ours_but_those_below_it() {
    let metadata = metadata();
    let dependencies = dependencies(&metadata);
    for (name, may, _) in WALLS {
        let direct = dependencies[id_of(&metadata, name)].iter().map(|id| metadata[*id].name.to_string());
        let ours: BTreeSet<_> = direct.filter(|other| other.starts_with("weir-")).collect();
        let allowed: BTreeSet<_> = may.iter().map(ToString::to_string).collect();
        let forbidden: Vec<_> = ours.difference(&allowed).collect();
        assert!(forbidden.is_empty(), "`{name}` must know nothing of {forbidden:?}");
        let unused: Vec<_> = allowed.difference(&ours).collect();
        assert!(unused.is_empty(), "`{name}` may know of {unused:?} and does not: close the wall");
    }
}

#[test]
fn what_a_crate_must_never_see_is_not_among_its_dependencies() {
    let metadata = metadata();
    let dependencies = dependencies(&metadata);
    for (name, _, never) in WALLS {
        let seen = seen(&metadata, &dependencies, name);
        let found: Vec<_> = never.iter().filter(|other| seen.contains(*other)).collect();
        assert!(found.is_empty(), "`{name}` must never see {found:?}");
    }
}

/// The names of all dependencies of a crate.
fn seen<'m>(
    metadata: &'m Metadata,
    dependencies: &BTreeMap<&'m PackageId, Vec<&'m PackageId>>,
    name: &str,
) -> BTreeSet<&'m str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![id_of(metadata, name)]);
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(&dependencies[id]);
        }
    }
    seen.into_iter().map(|id| metadata[id].name.as_str()).collect()
}

#[test]
fn a_build_without_features_has_no_compiler_and_nothing_of_http_to_other_machines() {
    for (name, has_http) in WITHOUT_FEATURES {
        let seen = without_features(name);
        let of_http = ["weir-http", "wasmtime-wasi-http", "rustls", "ring", "h2"];
        let of_compiler = ["cranelift-codegen", "weir-confinement"];
        let found: Vec<_> =
            of_http.iter().chain(&of_compiler).filter(|other| seen.contains(**other)).collect();
        assert!(found.is_empty(), "without features, `{name}` must not see {found:?}");
        assert_eq!(seen.contains("hyper"), has_http, "{name}");
    }
}

/// The names of all that a crate, built alone and without features, consists of.
fn without_features(name: &str) -> BTreeSet<String> {
    let tree = tree(&["--package", name, "--no-default-features", "--edges", "normal"]);
    tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn tree(arguments: &[&str]) -> String {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--prefix", "none", "--locked", "--offline"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    String::from_utf8(tree.stdout).unwrap()
}

#[test]
fn tests_of_one_crate_take_what_the_workspace_has_built() {
    let built = |whose: &[&str]| -> BTreeSet<String> {
        let all = tree(&[whose, &["--edges", "normal,build,dev", "--format", "{p} {f}"]].concat());
        let lines = all.lines().map(|line| line.trim_end_matches(" (*)"));
        lines.filter(|line| !line.contains("(/")).map(str::to_owned).collect()
    };
    let workspace = built(&["--workspace"]);
    assert!(workspace.iter().any(|line| line.starts_with("wasmtime v") && line.contains("cranelift")));
    let metadata = metadata();
    let all = dependencies(&metadata);
    let with_wasmtime = |name: &&str| seen(&metadata, &all, name).contains("wasmtime");
    let names = metadata.workspace_packages().into_iter().map(|package| package.name.as_str());
    // The second has no compiler, and no tests.
    let apart = ["weir-test-features", "weir-device"];
    for name in names.filter(with_wasmtime).filter(|name| !apart.contains(name)) {
        let alone = built(&["--package", name]);
        let other: Vec<_> = alone.difference(&workspace).collect();
        assert!(
            other.is_empty(),
            "`cargo test --package {name}` would build {other:?} anew: give them the workspace's features in \
             `tests/features/Cargo.toml`, and `{name}` the dev-dependency `weir-test-features`"
        );
    }
}

#[test]
fn one_crate_of_the_host_names_wasmtime() {
    let metadata = metadata();
    let dependencies = dependencies(&metadata);
    for (name, _, _) in WALLS.iter().filter(|(name, _, _)| *name != OWNER_OF_WASMTIME) {
        let direct = dependencies[id_of(&metadata, name)].iter().map(|id| metadata[*id].name.as_str());
        let wasmtime: Vec<_> = direct.filter(|other| other.starts_with("wasmtime")).collect();
        assert!(wasmtime.is_empty(), "`{name}` must know nothing of {wasmtime:?}");
    }
}

#[test]
fn every_crate_of_the_host_has_its_walls() {
    let metadata = metadata();
    let host = metadata.workspace_root.join("host");
    for package in metadata.workspace_packages() {
        if package.manifest_path.starts_with(&host) {
            assert!(
                WALLS.iter().any(|(name, _, _)| *package.name == *name),
                "`{}` has no walls",
                package.name
            );
        }
    }
}
