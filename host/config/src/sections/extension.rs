//! The keys of an extension's table.

use std::path::Path;

use weir_names::{ContractName, ExtensionId, HookDirName};

use super::{
    CLASS, CONTRACT, ExtensionDraft, artifact_text, changes, channels::channels, check_path, grants::grants,
    plain_path, split,
};
use crate::{
    ArtifactHash, SecretSource, Traces, Validate,
    check::ExtensionLocations,
    classes::class_name,
    extension::{ExtensionConfig, INSTANCES},
    restart::{BACKOFF, FAILURES, ReloadMode, RestartConfig, RestartPolicy, WINDOW},
    section::{Located, Section},
};

const EXTENSION_ID: &str = "an extension id";
const PLUGIN: &str = "the path of a component, as in `storage.wasm`";
const SHA256: &str = "a SHA-256, of 64 hexadecimal digits";
const HOOKS: &str = "the name of a directory of hooks";
const RESTART: &str = "`never`, `on-failure` or `always`";
const RELOAD: &str = "`stop-first` or `overlap`";
const TRACES: &str = "`functions` or `lines`";
const SECRET_FILE: &str = "the path of a file, as in `/etc/weir/token`";
const CREDENTIAL: &str = "the name of a credential, as in `LoadCredential=`";
const VALIDATE: &str = "`nothing` or `requests`";

pub(super) fn extension(
    section: &mut Section<'_, '_>,
    plugin_dir: &Path,
) -> Option<(ExtensionDraft, ExtensionLocations)> {
    section.require("id", EXTENSION_ID);
    section.require("path", PLUGIN);
    let id = section.text("id", EXTENSION_ID, str::parse::<ExtensionId>);
    let path = section.text("path", PLUGIN, |text| check_path(text).map(|path| plugin_dir.join(path)));
    let sha256 = section.text("sha256", SHA256, artifact_text::<ArtifactHash>);
    let class = section.text("class", CLASS, class_name);
    let changes = section.table("limits", changes);
    let (requires, requires_at) = split(section.texts("requires", CONTRACT, str::parse::<ContractName>));
    let (wants, wants_at) = split(section.texts("wants", CONTRACT, str::parse::<ContractName>));
    let (channels, channels_at) = channels(section);
    let (runs, runs_at) = split(section.texts("runs", HOOKS, str::parse::<HookDirName>));
    let instances = section.count("instances", INSTANCES);
    let (grants, grants_at) = section.table("grants", grants);
    let (values, secrets) = section.values_and_tables("config", secret);
    let autostart = section.flag("autostart");
    let restart = section.table("restart", restart);
    let reload = section.text("reload", RELOAD, ReloadMode::named);
    let traces = section.text("traces", TRACES, str::parse::<Traces>);
    let validate = section.text("validate", VALIDATE, str::parse::<Validate>);

    let (id, path) = (id?, path?);
    let locations = ExtensionLocations {
        id: id.location,
        path: path.location,
        sha256: sha256.as_ref().map(|at| at.location.clone()),
        requires: requires_at,
        wants: wants_at,
        channels: channels_at,
        runs: runs_at,
        grants: grants_at,
    };
    let new = ExtensionConfig::new(id.value, path.value);
    let instances = instances.map_or(new.instances, Located::into_value);
    let autostart = autostart.unwrap_or(new.autostart);
    let reload = reload.map_or(new.reload, Located::into_value);
    let traces = traces.map_or(new.traces, Located::into_value);
    let validate = validate.map_or(new.validate, Located::into_value);
    let config = ExtensionConfig {
        sha256: sha256.map(Located::into_value),
        fulfills: channels.fulfills,
        requires,
        wants,
        publishes: channels.publishes,
        subscribes: channels.subscribes,
        puts: channels.puts,
        takes: channels.takes,
        runs,
        when_full: channels.when_full.unwrap_or(new.when_full),
        instances,
        grants,
        config: values,
        secrets,
        autostart,
        restart,
        reload,
        traces,
        validate,
        ..new
    };
    Some((ExtensionDraft { config, class, changes }, locations))
}

/// A value of `config` that stands elsewhere.
fn secret(section: &mut Section<'_, '_>) -> Option<SecretSource> {
    section.explain_unknown("a table here names the source of a secret; quote a key with dots");
    let file = plain_path(section, "from-file", SECRET_FILE);
    let credential = section.text("from-credential", CREDENTIAL, str::parse);
    match (file, credential) {
        (Some(file), None) => Some(SecretSource::File(file.value)),
        (None, Some(name)) => Some(SecretSource::Credential(name.value)),
        (Some(file), Some(name)) => {
            let keys = [("from-file", Some(file.location)), ("from-credential", Some(name.location))];
            section.contradiction(keys, "a value has one source");
            None
        }
        (None, None) => {
            // Other keys are reported as unknown.
            if section.is_empty() {
                section.require("from-file", SECRET_FILE);
            }
            None
        }
    }
}

fn restart(section: &mut Section<'_, '_>) -> RestartConfig {
    let errors = section.error_count();
    let policy = section.text("policy", RESTART, RestartPolicy::named);
    let backoff = section.time("backoff", BACKOFF);
    let max_backoff = section.time("max-backoff", BACKOFF);
    let failures = section.count("failures", FAILURES);
    let window = section.time("window", WINDOW);

    let new = RestartConfig::default();
    let (backoff, backoff_at) = backoff.map(|at| (at.value, at.location)).unzip();
    let (max_backoff, max_backoff_at) = max_backoff.map(|at| (at.value, at.location)).unzip();
    let restart = RestartConfig {
        policy: policy.map_or(new.policy, Located::into_value),
        backoff: backoff.unwrap_or(new.backoff),
        max_backoff: max_backoff.unwrap_or(new.max_backoff),
        failures: failures.map_or(new.failures, Located::into_value),
        window: window.map_or(new.window, Located::into_value),
    };
    if let Some(message) = restart.contradiction().filter(|_| section.error_count() == errors) {
        section.contradiction([("max-backoff", max_backoff_at), ("backoff", backoff_at)], &message);
    }
    restart
}
