//! Components in text form that no compiler makes.

use std::{fs, path::Path};

use tempfile::TempDir;
use weir_host::{ExtensionConfig, config::RestartPolicy};

pub(crate) struct Crafted(TempDir);

impl Crafted {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn extension(&self, id: &str, text: &str) -> ExtensionConfig {
        let path = self.0.path().join(format!("{id}.wasm"));
        fs::write(&path, wat::parse_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))).unwrap();
        let mut extension = ExtensionConfig::new(id.parse().unwrap(), path);
        extension.limits.ready_timeout = PATIENCE;
        extension.limits.stop_timeout = PATIENCE;
        extension.restart.policy = RestartPolicy::Never;
        extension
    }
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// A program of one core module with this body. It exports `run`.
pub(crate) fn program(module: &str) -> String {
    component("", &format!("(core module $main {module}) (core instance $main (instantiate $main))"))
}

/// A program with a core instance `$main` that exports `run`.
pub(crate) fn component(imports: &str, cores: &str) -> String {
    format!(
        r#"(component {imports} {cores}
            (func $run (result (result)) (canon lift (core func $main "run")))
            (instance $run (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $run)))"#
    )
}

/// A file of `wat/` with words replaced.
pub(crate) fn text(name: &str, words: &[(&str, &str)]) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/wat").join(name);
    let text = fs::read_to_string(path).unwrap();
    words.iter().fold(text, |text, (word, by)| text.replace(word, by))
}
