//! The files of configured hooks. A file that is no hook ends every run of its directory.

use std::path::Path;

use weir_host::{
    Config,
    component::{self, artifact_facts},
    config::{ConfigError, Grants},
    hooks::HooksConfig,
};

use super::needs;
use crate::exit::chain;

/// Faults and warnings. A directory that cannot be read has a warning of its own.
pub(super) fn check(config: &Config) -> (Vec<ConfigError>, Vec<String>) {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    for (name, dir) in config.section::<HooksConfig>().into_iter().flat_map(|hooks| &hooks.0) {
        let key = format!("hooks.{name}");
        for path in dir.files().unwrap_or_default() {
            let shown = path.display();
            match of_file(&path, &dir.grants) {
                Ok(found) => {
                    warnings
                        .extend(found.into_iter().map(|text| format!("`{key}`: the hook `{shown}`: {text}")));
                }
                Err(fault) => {
                    let message = format!("in `{key}`: the hook `{shown}` cannot run: {fault}");
                    errors.push(ConfigError::new(format!("{key}.dir"), message, None));
                }
            }
        }
    }
    (errors, warnings)
}

fn of_file(path: &Path, grants: &Grants) -> Result<Vec<String>, String> {
    if artifact_facts(path).map_err(|error| chain(&error.into()))?.is_some() {
        return Ok(Vec::new());
    }
    let found = component::inspect(path).map_err(|error| chain(&error.into()))?;
    if let Some(import) = found.unoffered().into_iter().next() {
        return Err(import);
    }
    if let Some(import) = found.imports.iter().find(|name| name.starts_with("weir:iec/")) {
        return Err(format!("it imports `{import}`, and hooks have no channels"));
    }
    if !found.exports.iter().any(|name| name.starts_with("wasi:cli/run@0.2.")) {
        return Err("it exports no `wasi:cli/run` of WASI 0.2".to_owned());
    }
    Ok(needs::of_imports(grants, &found).collect())
}
