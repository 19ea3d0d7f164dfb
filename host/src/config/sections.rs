//! The keys of the operator's file: every one is asked for here, and here only.
//!
//! `docs/configuration.md` describes them; a test compares the two.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use super::{
    ArtifactHash, ArtifactTextError, MainConfig, TrustedKey,
    changes::Changes,
    check::{ExtensionPlaces, Places},
    classes::{Class, class_name, own_class_name},
    error::{Place, quote},
    extension::ExtensionConfig,
    grants::{DirGrant, Grants, check_variable},
    limits::{KEYS, TIMEOUT},
    main::{BLOCKING_THREADS, CACHE_SIZE, MEMORY_BUDGET},
    restart::{BACKOFF, FAILURES, ReloadMode, RestartConfig, RestartPolicy, WINDOW},
    section::{At, Section},
};
use crate::names::{ContractName, ExtensionId, TopicPattern};

const CLASS: &str = "the name of a class";
const CONTRACT: &str = "a contract, as in `device.info@1`";
const TOPIC: &str = "a topic pattern, as in `settings.changed.>`";
const EXTENSION_ID: &str = "an extension id";
const PLUGIN: &str = "the path of a component, as in `storage.wasm`";
const SHA256: &str = "a SHA-256, of 64 hexadecimal digits";
const TRUSTED_KEY: &str = "a public key, as `weir keygen` shows it";
const HOST_DIR: &str = "the path of a directory";
const POLICY: &str = "`never`, `on-failure` or `always`";
const RELOAD: &str = "`stop-first` or `overlap`";
const GUEST_DIR: &str = "an absolute path, as in `/data`";

/// Bytes of a socket's path, without the closing NUL: `sun_path` of unix(7).
const SOCKET_PATH_MAX: usize = 107;

/// What the files hold, put together.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) main: MainConfig,
    pub(super) include: Vec<At<String>>,
    pub(super) classes: Vec<Class>,
    pub(super) extensions: Vec<ExtensionDraft>,
    pub(super) places: Places,
}

/// An extension whose class is not looked up yet.
#[derive(Debug)]
pub(super) struct ExtensionDraft {
    pub(super) config: ExtensionConfig,
    pub(super) class: Option<At<String>>,
    pub(super) changes: Changes,
}

impl Draft {
    /// The file that names the others.
    pub(super) fn main_file(&mut self, file: &mut Section<'_, '_>) {
        self.include =
            file.texts("include", "a path in which `*` stands for any name, as in `conf.d/*.toml`", |text| {
                check_path(text).map(|_| text.to_owned())
            });
        file.table("main", |main| self.main(main));
        self.shared(file);
    }

    /// A file that another includes.
    pub(super) fn included_file(&mut self, file: &mut Section<'_, '_>) {
        file.refuse("include", "belongs in the main file: an included file includes nothing itself");
        file.refuse("main", "belongs in the main file, not in one that it includes");
        self.shared(file);
    }

    fn main(&mut self, main: &mut Section<'_, '_>) {
        let config = &mut self.main;
        (config.serves, self.places.serves) =
            split(main.texts("serves", CONTRACT, str::parse::<ContractName>));
        let dir = main.dir().to_owned();
        let socket = control_socket(main);
        let plugin_dir = plain_path(main, "plugin-dir", HOST_DIR);
        self.places.plugin_dir = plugin_dir.as_ref().map(|at| at.place.clone());
        config.plugin_dir = Some(plugin_dir.map_or(dir, At::into_value));
        let cache_dir = plain_path(main, "cache-dir", HOST_DIR);
        (config.cache_dir, self.places.cache_dir) = cache_dir.map(|at| (at.value, at.place)).unzip();
        if let Some(size) = main.number("cache-size", &CACHE_SIZE) {
            config.cache_size = size.value;
        }
        (config.trusted_keys, self.places.trusted_keys) =
            split(main.texts("trusted-keys", TRUSTED_KEY, artifact_text::<TrustedKey>));
        if let Some(socket) = socket {
            config.control_socket = socket.value;
        }
        if let Some(budget) = main.number("memory-budget", &MEMORY_BUDGET) {
            config.memory_budget = Some(budget.value);
            self.places.memory_budget = Some(budget.place);
        }
        if let Some(timeout) = main.time("request-timeout", TIMEOUT) {
            config.request_timeout = timeout.value;
        }
        if let Some(threads) = main.count("blocking-threads", BLOCKING_THREADS) {
            config.blocking_threads = threads.value;
        }
    }

    /// What every file may hold.
    fn shared(&mut self, file: &mut Section<'_, '_>) {
        file.named("limits", |class, name| {
            let inherits = class.text("inherits", CLASS, class_name);
            let changes = changes(class);
            match own_class_name(name.value) {
                Ok(value) => {
                    let name = At { value, place: name.place };
                    self.classes.push(Class { name, inherits, changes });
                }
                Err(error) => class.error("limits", format!("in `limits`: {error}"), name.place),
            }
        });
        let plugin_dir = self.main.plugin_dir.clone().unwrap_or_default();
        file.tables("extension", |section| {
            if let Some((draft, places)) = extension(section, &plugin_dir) {
                self.extensions.push(draft);
                self.places.extensions.push(places);
            }
        });
    }
}

pub(super) fn control_socket(main: &mut Section<'_, '_>) -> Option<At<PathBuf>> {
    let dir = main.dir().to_owned();
    main.text("control-socket", "the path of a socket, of at most 107 bytes", |text| {
        let path = dir.join(check_path(text)?);
        let length = path.as_os_str().len();
        if length > SOCKET_PATH_MAX {
            return Err(format!("{} has {length} bytes, but a socket's path at most 107", quote(text)));
        }
        Ok(path)
    })
}

fn extension(section: &mut Section<'_, '_>, plugin_dir: &Path) -> Option<(ExtensionDraft, ExtensionPlaces)> {
    section.require("id", EXTENSION_ID);
    section.require("path", PLUGIN);
    let id = section.text("id", EXTENSION_ID, str::parse::<ExtensionId>);
    let path = section.text("path", PLUGIN, |text| check_path(text).map(|path| plugin_dir.join(path)));
    let sha256 = section.text("sha256", SHA256, artifact_text::<ArtifactHash>);
    let class = section.text("class", CLASS, class_name);
    let changes = section.table("limits", changes);
    let (fulfills, fulfills_at) = split(section.texts("fulfills", CONTRACT, str::parse::<ContractName>));
    let (requires, requires_at) = split(section.texts("requires", CONTRACT, str::parse::<ContractName>));
    let (wants, wants_at) = split(section.texts("wants", CONTRACT, str::parse::<ContractName>));
    let (publishes, _) = split(section.texts("publishes", TOPIC, str::parse::<TopicPattern>));
    let (subscribes, _) = split(section.texts("subscribes", TOPIC, str::parse::<TopicPattern>));
    let (grants, hosts_at, guests_at) = section.table("grants", grants);
    let config = section.values("config", |_, _| Ok(()));
    let autostart = section.flag("autostart");
    let restart = section.table("restart", restart);
    let reload = section.text("reload", RELOAD, ReloadMode::named);

    let (id, path) = (id?, path?);
    let places = ExtensionPlaces {
        id: id.place,
        path: path.place,
        fulfills: fulfills_at,
        requires: requires_at,
        wants: wants_at,
        hosts: hosts_at,
        guests: guests_at,
    };
    let new = ExtensionConfig::new(id.value, path.value);
    let autostart = autostart.unwrap_or(new.autostart);
    let reload = reload.map_or(new.reload, At::into_value);
    let config = ExtensionConfig {
        sha256: sha256.map(At::into_value),
        fulfills,
        requires,
        wants,
        publishes,
        subscribes,
        grants,
        config,
        autostart,
        restart,
        reload,
        ..new
    };
    Some((ExtensionDraft { config, class, changes }, places))
}

/// The keys that a class and an extension's own limits share.
fn changes(section: &mut Section<'_, '_>) -> Changes {
    let errors = section.error_count();
    let mut changes = Changes::default();
    for key in &KEYS {
        if !key.name.contains('.') {
            changes.add(key, section.number(key.name, &key.shape));
        }
    }
    section.table("inbox", |inbox| {
        for key in &KEYS {
            if let Some(name) = key.name.strip_prefix("inbox.") {
                changes.add(key, inbox.number(name, &key.shape));
            }
        }
    });
    changes.incomplete = section.error_count() > errors;
    changes
}

fn restart(section: &mut Section<'_, '_>) -> RestartConfig {
    let errors = section.error_count();
    let policy = section.text("policy", POLICY, RestartPolicy::named);
    let backoff = section.time("backoff", BACKOFF);
    let max_backoff = section.time("max-backoff", BACKOFF);
    let failures = section.count("failures", FAILURES);
    let window = section.time("window", WINDOW);

    let new = RestartConfig::default();
    let (backoff, backoff_at) = backoff.map(|at| (at.value, at.place)).unzip();
    let (max_backoff, max_backoff_at) = max_backoff.map(|at| (at.value, at.place)).unzip();
    let restart = RestartConfig {
        policy: policy.map_or(new.policy, At::into_value),
        backoff: backoff.unwrap_or(new.backoff),
        max_backoff: max_backoff.unwrap_or(new.max_backoff),
        failures: failures.map_or(new.failures, At::into_value),
        window: window.map_or(new.window, At::into_value),
    };
    if let Some(message) = restart.contradiction().filter(|_| section.error_count() == errors) {
        section.contradiction([("max-backoff", max_backoff_at), ("backoff", backoff_at)], &message);
    }
    restart
}

/// Also returns where the directories stand, of this machine and as the extension sees them.
fn grants(section: &mut Section<'_, '_>) -> (Grants, Vec<Place>, Vec<Place>) {
    let (mut dirs, mut hosts_at, mut guests_at) = (Vec::new(), Vec::new(), Vec::new());
    section.tables("dirs", |dir| {
        dir.require("host", HOST_DIR);
        dir.require("guest", GUEST_DIR);
        let host = plain_path(dir, "host", HOST_DIR);
        let guest = dir.text("guest", GUEST_DIR, str::parse);
        let mode = dir.text("mode", "`ro` or `rw`", str::parse);
        if let (Some(host), Some(guest)) = (host, guest) {
            hosts_at.push(host.place);
            guests_at.push(guest.place);
            dirs.push(DirGrant {
                host: host.value,
                guest: guest.value,
                mode: mode.map(At::into_value).unwrap_or_default(),
            });
        }
    });
    let env = section.values("env", check_variable);
    let (net, _) = split(section.texts("net", "an address with a port, as in `example.com:443`", str::parse));
    (Grants { dirs, env, net }, hosts_at, guests_at)
}

/// A path relative to the file that holds it.
fn plain_path(section: &mut Section<'_, '_>, key: &'static str, what: &'static str) -> Option<At<PathBuf>> {
    let dir = section.dir().to_owned();
    section.text(key, what, |text| check_path(text).map(|path| dir.join(path)))
}

fn artifact_text<T: FromStr<Err = ArtifactTextError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error| format!("{} is {error}", quote(text)))
}

fn check_path(text: &str) -> Result<&Path, String> {
    if text.is_empty() || text.contains('\0') {
        return Err(format!("{} is not a path: it is empty or contains a NUL", quote(text)));
    }
    Ok(Path::new(text))
}

fn split<T>(items: Vec<At<T>>) -> (Vec<T>, Vec<Place>) {
    items.into_iter().map(|item| (item.value, item.place)).unzip()
}
