//! A language: its folder in `tests/conformance/`, and the component that is built from it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde::Deserialize;

/// Names the languages to test, with commas, by name or by the path of a folder. Default: Rust.
const WANTED: &str = "WEIR_CONFORMANCE";

/// A language whose component is built.
#[derive(Clone, Debug)]
pub(crate) struct Language {
    /// The folder.
    pub(crate) name: String,
    /// For people.
    pub(crate) title: String,
    pub(crate) component: PathBuf,
    /// Lines of the operator's table.
    pub(crate) stanza: String,
    /// Points that fail, and why.
    pub(crate) gaps: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    language: String,
    #[serde(default)]
    build: Vec<Vec<String>>,
    component: String,
    #[serde(default)]
    stanza: String,
    #[serde(default)]
    gaps: BTreeMap<String, String>,
}

/// `tests/conformance/`.
pub(crate) fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names of all languages with a guest.
pub(crate) fn names() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap());
    let languages = entries.filter(|entry| entry.path().join("conformance.toml").exists());
    let mut names: Vec<_> = languages.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The languages that are asked for, built.
pub(crate) fn wanted() -> Vec<Language> {
    let wanted = std::env::var(WANTED).unwrap_or_else(|_| "rust".to_owned());
    wanted.split(',').map(build).collect()
}

fn build(wanted: &str) -> Language {
    let folder = folder().join(wanted);
    let name = folder.file_name().unwrap().to_str().unwrap();
    let path = folder.join("conformance.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
    let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("`{}`: {error}", path.display()));
    let temporary = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let out = temporary.join("conformance").join(name);
    fs::create_dir_all(&out).unwrap();
    let target = temporary.parent().unwrap();
    let placed = |word: &str| {
        word.replace("{out}", out.to_str().unwrap()).replace("{target}", target.to_str().unwrap())
    };
    for words in &file.build {
        let mut words = words.iter().map(|word| placed(word));
        let mut command = Command::new(words.next().expect("a command has a program"));
        command.args(words).current_dir(&folder).env("CARGO_TARGET_DIR", target);
        // `cargo test` set these for this program. `ring` and all above it, wasmtime's bindings among them, would be
        // built again whenever they differ from the last build.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                command.env_remove(name);
            }
        }
        let status = command.status().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        assert!(status.success(), "{command:?} failed: {status}");
    }
    Language {
        name: name.to_owned(),
        title: file.language,
        component: placed(&file.component).into(),
        stanza: file.stanza,
        gaps: file.gaps,
    }
}
