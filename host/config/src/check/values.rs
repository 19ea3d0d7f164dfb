//! What is wrong with single values of a configuration made in Rust, and between those of one table.

use crate::{
    Config, ExtensionConfig, Grants, HookDirConfig, error::ConfigError, grants::check_variable,
    hooks::suffix, limits::InHooks,
};

/// What is wrong with single values: a file is checked for that as it is read.
pub(crate) fn values(config: &Config) -> Vec<ConfigError> {
    let mut faults = config.main.out_of_range();
    for extension in &config.extensions {
        let path = format!("extension[{}]", extension.id);
        faults.extend(extension.out_of_range().into_iter().map(|(key, what)| must_be(&path, key, &what)));
        for (item, grant) in extension.subscribes.iter().enumerate() {
            let path = format!("{path}.subscribes[{}]", item + 1);
            faults.extend(grant.out_of_range().into_iter().map(|(key, what)| must_be(&path, key, &what)));
        }
        limits(extension, &path, &mut faults);
        restart(extension, &path, &mut faults);
        variables(&extension.grants, &path, &mut faults);
    }
    for (name, queue) in &config.queues {
        let path = format!("queue.{name}");
        faults.extend(queue.out_of_range().into_iter().map(|(key, what)| must_be(&path, key, &what)));
    }
    config.hooks.iter().for_each(|(name, config)| hooks(config, &format!("hooks.{name}"), &mut faults));
    errors(faults)
}

/// The same of one directory of hooks, whose table is at `path`.
pub(super) fn hook_dir_values(config: &HookDirConfig, path: &str) -> Vec<ConfigError> {
    let mut faults = Faults::new();
    hooks(config, path, &mut faults);
    errors(faults)
}

fn errors(faults: Faults) -> Vec<ConfigError> {
    faults.into_iter().map(|(key, message)| ConfigError::new(key, message, None)).collect()
}

/// Keys, each with what is wrong.
type Faults = Vec<(String, String)>;

fn limits(extension: &ExtensionConfig, path: &str, faults: &mut Faults) {
    let path = format!("{path}.limits");
    let out_of_range = extension.limits.out_of_range();
    if out_of_range.is_empty() {
        let contradictions = extension.limits.contradictions().into_iter();
        faults
            .extend(contradictions.map(|found| {
                (format!("{path}.{}", found.keys.0), format!("in `{path}`: {}", found.message))
            }));
    }
    faults.extend(out_of_range.into_iter().map(|(key, shape)| must_be(&path, key.name, &shape)));
}

fn restart(extension: &ExtensionConfig, path: &str, faults: &mut Faults) {
    let path = format!("{path}.restart");
    let out_of_range = extension.restart.out_of_range();
    if out_of_range.is_empty() {
        let contradiction = extension.restart.contradiction();
        faults.extend(
            contradiction.map(|message| (format!("{path}.max-backoff"), format!("in `{path}`: {message}"))),
        );
    }
    faults.extend(out_of_range.into_iter().map(|(key, shape)| must_be(&path, key, &shape)));
}

fn hooks(hooks: &HookDirConfig, path: &str, faults: &mut Faults) {
    let out_of_range = hooks.out_of_range();
    let mut not_so = |key: &str, what: String| {
        let key = format!("{path}.{key}");
        let message = format!("in `{key}`: {what}");
        faults.push((key, message));
    };
    hooks.suffixes.iter().filter_map(|text| suffix(text).err()).for_each(|fault| not_so("suffixes", fault));
    if out_of_range.iter().all(|(key, _)| !key.starts_with("exit-codes")) {
        hooks.exit_codes.overlaps().into_iter().for_each(|(_, fault)| not_so("exit-codes", fault));
    }
    faults.extend(out_of_range.into_iter().map(|(key, what)| must_be(path, key, &what)));
    // The class gives the rest, and no hook heeds it.
    let limits = hooks.limits.out_of_range().into_iter().filter(|(key, _)| key.in_hooks == InHooks::Allowed);
    faults.extend(limits.map(|(key, what)| must_be(&format!("{path}.limits"), key.name, &what)));
    variables(&hooks.grants, path, faults);
}

fn variables(grants: &Grants, path: &str, faults: &mut Faults) {
    faults.extend(grants.env.iter().filter_map(|(name, value)| {
        let fault = check_variable(name, value).err()?;
        Some((format!("{path}.grants.env"), format!("in `{path}.grants.env`: {fault}")))
    }));
}

fn must_be(path: &str, key: &str, shape: &str) -> (String, String) {
    let key = format!("{path}.{key}");
    let message = format!("`{key}` must be {shape}");
    (key, message)
}
