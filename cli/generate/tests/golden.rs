//! What is generated of Weir's own contracts, and of one with everything that is hard, is in `golden`.
//!
//! With `INSTA_UPDATE=always` in the environment a test writes what it should be.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use std::{env, fs, path::Path};

use weir_generate::{Kind, Language, generate};
use weir_openrpc::Document;

use self::common::{CONTRACTS, odd, provided};

/// Each file, and what it should be.
fn golden() -> Vec<(&'static str, String)> {
    let (settings, plugins) = ([provided(weir_contracts::settings::CONTRACT)], CONTRACTS.map(provided));
    let odd = [odd()];
    let of = |documents: &[Document], language, kind| generate(documents, language, kind).unwrap();
    vec![
        ("settings_extension.rs", of(&settings, Language::Rust, Kind::Extension)),
        ("settings_app.rs", of(&settings, Language::Rust, Kind::App)),
        ("settings_sidecar.rs", of(&settings, Language::Rust, Kind::Sidecar)),
        ("settings.ts", of(&settings, Language::TypeScript, Kind::App)),
        ("settings_app.py", of(&settings, Language::Python, Kind::App)),
        ("settings_sidecar.py", of(&settings, Language::Python, Kind::Sidecar)),
        ("plugins_extension.rs", of(&plugins, Language::Rust, Kind::Extension)),
        ("plugins.ts", of(&plugins, Language::TypeScript, Kind::App)),
        ("plugins_sidecar.py", of(&plugins, Language::Python, Kind::Sidecar)),
        ("odd_extension.rs", of(&odd, Language::Rust, Kind::Extension)),
        ("odd_sidecar.rs.txt", of(&odd, Language::Rust, Kind::Sidecar)),
        ("odd.ts", of(&odd, Language::TypeScript, Kind::App)),
        ("odd_app.py", of(&odd, Language::Python, Kind::App)),
        ("plugins.wit", of(&plugins, Language::Wit, Kind::Extension)),
        ("odd.wit", of(&odd, Language::Wit, Kind::Extension)),
    ]
}

#[test]
fn what_is_generated_is_as_before() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let update = env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always");
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    for (name, text) in golden() {
        let path = directory.join(name);
        if update {
            fs::write(&path, &text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        let line = kept.lines().zip(text.lines()).position(|(kept, new)| kept != new);
        assert!(kept == text, "{name}, line {line:?}: see with `git diff` and INSTA_UPDATE=always");
        files.retain(|file| file != name);
    }
    assert!(update || files.is_empty(), "nothing makes {files:?}");
}

#[test]
fn interfaces_are_wit() {
    for (name, text) in golden().into_iter().filter(|(name, _)| name.ends_with(".wit")) {
        let mut resolve = wit_parser::Resolve::default();
        let package = resolve.push_str(name, &text).unwrap();
        for world in ["caller", "provider"] {
            resolve.select_world(&[package], Some(world)).unwrap();
        }
    }
}
