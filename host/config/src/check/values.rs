//! Checks single values of a configuration made in Rust, and values within a table.

use super::parties::path_of_peer;
use crate::{Config, ExtensionConfig, Grants, SubscribeGrant, error::ConfigError};

/// The faulty values. Files are checked as they are read.
pub(crate) fn values(config: &Config) -> Vec<ConfigError> {
    let mut faults = config.main.out_of_range();
    for extension in &config.extensions {
        let path = format!("extension[{}]", extension.id);
        faults.extend(extension.out_of_range().into_iter().map(|(key, what)| must_be(&path, key, &what)));
        subscribes(&extension.subscribes, &path, &mut faults);
        limits(extension, &path, &mut faults);
        restart(extension, &path, &mut faults);
        variables(&extension.grants, &path, &mut faults);
        if extension.copy_of.is_some() {
            faults.push((
                format!("{path}.copy_of"),
                "`copy_of` is Main's own: say how many run with `instances`".to_owned(),
            ));
        }
    }
    for peer in &config.peers {
        let path = path_of_peer(peer);
        let out_of_range = peer.out_of_range();
        if out_of_range.is_empty() {
            let contradiction = peer.limits.contradiction();
            faults.extend(contradiction.map(|message| {
                (format!("{path}.limits.message-size"), format!("in `{path}.limits`: {message}"))
            }));
        }
        faults.extend(out_of_range.into_iter().map(|(key, what)| must_be(&path, &key, &what)));
        subscribes(&peer.subscribes, &path, &mut faults);
    }
    for (name, queue) in &config.queues {
        let path = format!("queue.{name}");
        faults.extend(queue.out_of_range().into_iter().map(|(key, what)| must_be(&path, key, &what)));
        let contradiction = queue.contradiction();
        faults.extend(
            contradiction.map(|message| (format!("{path}.when-full"), format!("in `{path}`: {message}"))),
        );
    }
    let mut errors = errors(faults);
    errors.extend(config.sections.all().flat_map(|section| section.check_values()));
    errors
}

fn errors(faults: Faults) -> Vec<ConfigError> {
    faults.into_iter().map(|(key, message)| ConfigError::new(key, message, None)).collect()
}

type Faults = Vec<(String, String)>;

fn subscribes(grants: &[SubscribeGrant], path: &str, faults: &mut Faults) {
    for (item, grant) in grants.iter().enumerate() {
        let path = format!("{path}.subscribes[{}]", item + 1);
        faults.extend(grant.out_of_range().into_iter().map(|(key, what)| must_be(&path, key, &what)));
    }
}

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

fn variables(grants: &Grants, path: &str, faults: &mut Faults) {
    faults.extend(grants.faults().into_iter().map(|fault| {
        let key = format!("{path}.grants.env");
        let message = format!("in `{key}`: {fault}");
        (key, message)
    }));
}

fn must_be(path: &str, key: &str, shape: &str) -> (String, String) {
    let key = format!("{path}.{key}");
    let message = format!("`{key}` must be {shape}");
    (key, message)
}
