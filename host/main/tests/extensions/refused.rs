//! Files that are no extension are refused before anything runs, with advice.

use std::{fs, path::Path};

use weir_host::{ExtensionConfig, config::RestartPolicy, control::ExtensionState};

use super::support::start;

/// Imports an interface, but no function of it.
const IMPORTS_NO_FUNCTION: &str = r#"(component
    (import "wasi:http/incoming-handler@0.2.3" (instance))
    (core module $module (func (export "run") (result i32) i32.const 0))
    (core instance $module (instantiate $module))
    (func $run (result (result)) (canon lift (core func $module "run")))
    (instance $run (export "run" (func $run)))
    (export "wasi:cli/run@0.2.0" (instance $run)))"#;

/// A real component with a name of the same length exchanged.
fn renamed(from: &str, to: &str) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = fs::read(test_guests::path("echo-raw")).unwrap();
    let places: Vec<_> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, window)| *window == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    assert!(!places.is_empty(), "`{from}` is not in the component");
    for at in places {
        bytes.splice(at..at + to.len(), to.bytes());
    }
    bytes
}

#[tokio::test]
async fn each_refusal_names_the_file_and_what_is_wrong_with_it() {
    let dir = tempfile::tempdir().unwrap();
    let component = fs::read(test_guests::path("echo-raw")).unwrap();
    let files: &[(&str, Vec<u8>)] = &[
        ("core-module", b"\0asm\x01\0\0\0".to_vec()),
        ("empty", Vec::new()),
        ("garbage", (0..=255).cycle().take(10_000).collect()),
        ("truncated", component[..component.len() / 2].to_vec()),
        ("no-run", b"\0asm\x0d\0\x01\0".to_vec()),
        ("unknown-import", renamed("weir:iec/channel@0.1.0", "weir:iec/chimney@0.1.0")),
        ("no-function", wat::parse_str(IMPORTS_NO_FUNCTION).unwrap()),
        ("other-version", renamed("weir:iec/channel@0.1.0", "weir:iec/channel@0.9.0")),
    ];
    let extension = |name: &str| {
        let mut extension = ExtensionConfig::new(name.parse().unwrap(), dir.path().join(name));
        extension.restart.policy = RestartPolicy::Never;
        extension
    };
    let mut extensions = Vec::new();
    for (name, bytes) in files {
        fs::write(dir.path().join(name), bytes).unwrap();
        extensions.push(extension(name));
    }
    fs::create_dir(dir.path().join("directory")).unwrap();
    std::os::unix::fs::symlink(test_guests::path("echo-raw"), dir.path().join("symlink")).unwrap();
    fs::File::create(dir.path().join("huge")).unwrap().set_len(1 << 30).unwrap();
    extensions.extend(["directory", "symlink", "missing", "huge"].map(extension));

    let main = start(extensions).await;
    let mut text = String::new();
    for status in main.control().extensions() {
        assert_eq!(status.state, ExtensionState::Failed, "{}", status.id);
        assert_eq!(status.failures.len(), 1, "{}", status.id);
        let reason = status.reason.unwrap().replace(&*dir.path().to_string_lossy(), "DIR");
        text += &format!("{}: {reason}\n", status.id);
    }
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("refused-files", text));
}
