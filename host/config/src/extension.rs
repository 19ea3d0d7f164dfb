//! The configuration of one extension.

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use bytes::Bytes;
use weir_names::{
    ContractName, ExtensionId, HookDirName, InterfaceName, QueueName, RequestPolicy, TopicPattern, harmless,
};

use super::{
    ArtifactHash, ComponentSource, Grants, Limits, ReadyWhen, ReloadMode, RestartConfig, SecretSource,
    ServesHttp, Stanza, SubscribeGrant, UpdateConfig, bytes,
    exports::{IMPORT, fulfills, imports, instances},
    key::{Key, Places, Table},
    kind::{flag, optional_table, policy, table, text, texts, word},
    limits::{class, limits},
    queue::subscribes,
    section::Section,
    sections::{CONTRACT, QUEUE, TOPIC, artifact_text, check_path},
    shape::Shape,
};
use crate::{differences::Facts, keys, words};

const EXTENSION_ID: &str = "an extension id";
const PLUGIN: &str = "the path of a component, as in `storage.wasm`";
const SHA256: &str = "a SHA-256, of 64 hexadecimal digits";
const HOOKS: &str = "the name of a directory of hooks";
const SECRET_FILE: &str = "the path of a file, as in `/etc/weir/token`";
const FROM_FILE: &str = "[The secret](#secrets) is in this file. A relative path starts at the directory of the configuration file.";
const FROM_CREDENTIAL: &str = "[The secret](#secrets) is this credential of the service.";
const CREDENTIAL: &str = "the name of a credential, as in `LoadCredential=`";

/// The contract that runs the hooks in [`runs`](ExtensionConfig::runs).
pub const HOOKS_CONTRACT: &str = "hooks@1";

/// The contract for the stores in [`Grants::stores`].
pub const STORE_CONTRACT: &str = "store@1";

/// The configuration of one extension: its component, limits and grants.
///
/// [`ExtensionConfig::new`] grants nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionConfig {
    /// The id.
    pub id: ExtensionId,
    /// The component: a file, or bytes in memory.
    pub component: ComponentSource,
    /// The SHA-256 that the component must have. `None` allows any component.
    pub sha256: Option<ArtifactHash>,
    /// The text of the component's signature, for [`MainConfig::require_signature`](super::MainConfig::require_signature).
    /// `None` for a file reads the file with `.sig` after its name. A component in memory has no other signature.
    pub signature: Option<Arc<str>>,
    /// The id that the component must be signed as. `None` is its own id.
    pub signed_as: Option<ExtensionId>,
    /// The limits.
    pub limits: Limits,
    /// Contracts that it owns and may serve. A contract has one owner.
    pub fulfills: Vec<ContractName>,
    /// The exported interfaces whose functions are the operations of contracts in [`fulfills`](Self::fulfills). Empty for
    /// a program that serves its contracts itself.
    pub exports: BTreeMap<ContractName, InterfaceName>,
    /// The contracts that answer the component's imports of interfaces that Weir does not have. It may call them.
    pub imports: BTreeMap<InterfaceName, ContractName>,
    /// Those of `imports` whose fields have `_` in JSON where WIT has `-`.
    pub snake_case_imports: Vec<InterfaceName>,
    /// Contracts that it may call and needs. Their owners start first.
    pub requires: Vec<ContractName>,
    /// Contracts that it may call but does not need.
    pub wants: Vec<ContractName>,
    /// Topics that it may publish under.
    pub publishes: Vec<TopicPattern>,
    /// Topics that it may subscribe to. If several grants cover a pattern, the first applies.
    pub subscribes: Vec<SubscribeGrant>,
    /// Queues that it may put jobs into.
    pub puts: Vec<QueueName>,
    /// Queues that it may take jobs from.
    pub takes: Vec<QueueName>,
    /// Directories of hooks that it may run, through the contract `hooks@1`.
    pub runs: Vec<HookDirName>,
    /// What happens to a request that finds the inbox full. Default: [`RequestPolicy::Reject`].
    pub when_full: RequestPolicy,
    /// Instances that share the inbox: 1 to 64. Default: 1.
    pub instances: u32,
    /// Whether each call of its [`exports`](Self::exports) has a new instance. Then `instances` is 1.
    pub per_call: bool,
    /// Access beside channels.
    pub grants: Grants,
    /// Values that it reads through `wasi:config/store`.
    pub config: BTreeMap<String, String>,
    /// Secret values that it reads in the same way. They replace values of [`config`](Self::config) with the same name.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Whether it starts with Main.
    pub autostart: bool,
    /// When it restarts.
    pub restart: RestartConfig,
    /// When it is ready.
    pub ready: ReadyWhen,
    /// How a new version replaces the old one.
    pub reload: ReloadMode,
    /// When a new version is proven, and when it goes back to the last proven one. With `None`, a new version stays
    /// once it is ready.
    pub update: Option<UpdateConfig>,
    /// How it serves HTTP. The component then exports `wasi:http/incoming-handler`. `None` for a program that runs by
    /// itself.
    pub serves_http: Option<ServesHttp>,
    /// The detail of its traces.
    pub traces: Traces,
    /// What is checked by its own description of its contracts. Default: [`Validate::Nothing`].
    pub validate: Validate,
    /// The directory that must contain its file. Set by Main.
    #[doc(hidden)]
    pub plugin_dir: Option<PathBuf>,
    /// The extension that this instance is a copy of, and whose inbox it serves. Set by Main.
    #[doc(hidden)]
    pub copy_of: Option<ExtensionId>,
    /// Of several instances, the one that tries new versions: the last. Set by Main.
    #[doc(hidden)]
    pub canary: Option<ExtensionId>,
    /// Its tables as the operator wrote them. Set by the loader if there is an `update`, and the text has at most 64
    /// KiB.
    #[doc(hidden)]
    pub stanza: Option<Arc<Stanza>>,
}

/// What a trace says of each running function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Traces {
    /// The name of the function.
    #[default]
    Functions,
    /// The function's name, number and offset, for `weir symbolise`. The compiled code is larger.
    Lines,
}

words!(Traces, "a kind of trace: ": "functions" = Functions, "lines" = Lines);

/// What Main checks by the extension's own description of its contracts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Validate {
    /// Nothing.
    #[default]
    Nothing,
    /// Arguments of the requests to it. A request that does not fit is answered with an error, and never delivered.
    Requests,
}

words!(Validate, "a kind of check: ": "nothing" = Nothing, "requests" = Requests);

impl ExtensionConfig {
    /// An extension from a file, with class `medium`, autostart and no grants.
    #[must_use]
    pub fn new(id: ExtensionId, path: impl Into<PathBuf>) -> Self {
        Self::of_component(id, ComponentSource::Path(path.into()))
    }

    /// An extension from bytes in memory, such as `include_bytes!`.
    #[must_use]
    pub fn from_bytes(id: ExtensionId, bytes: impl AsRef<[u8]> + Send + 'static) -> Self {
        Self::of_component(id, ComponentSource::Bytes(Bytes::from_owner(bytes)))
    }

    fn of_component(id: ExtensionId, component: ComponentSource) -> Self {
        Self {
            id,
            component,
            sha256: None,
            signature: None,
            signed_as: None,
            limits: Limits::default(),
            fulfills: Vec::new(),
            exports: BTreeMap::new(),
            imports: BTreeMap::new(),
            snake_case_imports: Vec::new(),
            requires: Vec::new(),
            wants: Vec::new(),
            publishes: Vec::new(),
            subscribes: Vec::new(),
            puts: Vec::new(),
            takes: Vec::new(),
            runs: Vec::new(),
            when_full: RequestPolicy::Reject,
            instances: 1,
            per_call: false,
            grants: Grants::default(),
            config: BTreeMap::new(),
            secrets: BTreeMap::new(),
            autostart: true,
            restart: RestartConfig::default(),
            ready: ReadyWhen::default(),
            reload: ReloadMode::default(),
            update: None,
            serves_http: None,
            traces: Traces::default(),
            validate: Validate::default(),
            plugin_dir: None,
            copy_of: None,
            canary: None,
            stanza: None,
        }
    }

    /// The memory that counts against [`MainConfig::memory_budget`](super::MainConfig::memory_budget), in bytes:
    /// `memory`, `stack` and the inbox of each of its `instances`, of an HTTP server as many `memory` and `stack` as
    /// requests run at once. `memory` and `stack` count twice with
    /// [`ReloadMode::Overlap`], which runs two versions for a while.
    ///
    /// A running extension may take more memory, which does not count: host stack up to
    /// [`FixedLimits::host_stack`](super::FixedLimits::host_stack), in pages as they are used; 8 bytes for each of the
    /// [`FixedLimits::table_elements`](super::FixedLimits::table_elements); the data of a call, up to
    /// [`Limits::transfer`], or the values of a call of its [`exports`](Self::exports) or [`imports`](Self::imports), up
    /// to 8 MiB; and compiled code, which all users of a component share.
    #[must_use]
    pub fn memory_sum(&self) -> u64 {
        let Limits { memory, stack, inbox_bytes, .. } = &self.limits;
        let instance = memory.saturating_add(*stack);
        let reloaded = match self.reload {
            ReloadMode::StopFirst => instance,
            ReloadMode::Overlap => instance.saturating_mul(2),
        };
        let reloaded =
            reloaded.saturating_mul(self.serves_http.as_ref().map_or(1, |http| http.at_once.into()));
        // Requests have one lane, replies and events another.
        reloaded.saturating_add(inbox_bytes.saturating_mul(2)).saturating_mul(self.instances.into())
    }

    /// The contract under which requests by HTTP are passed to it, if it serves them. Only Main may call it.
    #[must_use]
    pub fn http_contract(&self) -> Option<ContractName> {
        self.serves_http.as_ref()?;
        let id = self.copy_of.as_ref().unwrap_or(&self.id);
        format!("http.{id}@1").parse().ok()
    }

    /// Whether the fields of this import have `_` in JSON for `-`.
    #[must_use]
    pub fn names_in_snake_case(&self, import: &str) -> bool {
        self.snake_case_imports.iter().any(|name| name.as_str() == import)
    }

    /// The contracts that it may call without requiring them: those in [`wants`](Self::wants), and those that answer its
    /// [`imports`](Self::imports).
    pub fn wanted(&self) -> impl Iterator<Item = &ContractName> {
        let is_new =
            |contract: &&ContractName| !self.wants.contains(contract) && !self.requires.contains(contract);
        self.wants.iter().chain(self.imports.values().filter(is_new))
    }

    /// Whether it may call this contract.
    #[must_use]
    pub fn may_call(&self, contract: &ContractName) -> bool {
        self.requires.contains(contract) || self.wanted().any(|wanted| wanted == contract)
    }

    /// The configuration of its first instance.
    pub(super) fn first_instance(self, plugin_dir: Option<PathBuf>) -> Self {
        let canary = (self.instances > 1).then(|| self.id.copy(self.instances));
        Self { plugin_dir, instances: 1, canary, ..self }
    }

    /// One configuration for each instance: itself, and copies that serve the same inbox.
    pub(super) fn in_copies(self, plugin_dir: Option<PathBuf>) -> impl Iterator<Item = Self> {
        let instances = self.instances;
        let first = self.first_instance(plugin_dir);
        let of = first.clone();
        let copy = move |number| Self { id: of.id.copy(number), copy_of: Some(of.id.clone()), ..of.clone() };
        std::iter::once(first).chain((2..=instances).map(copy))
    }

    /// Whether instances of both are interchangeable. They may differ in what only the supervisor uses, and in the
    /// sources of limits.
    pub fn runs_as(&self, other: &Self) -> bool {
        self.of_an_instance() == other.of_an_instance()
    }

    /// Whether only what they read through `wasi:config/store` keeps instances of both from being interchangeable.
    pub fn runs_as_but_for_config(&self, other: &Self) -> bool {
        Self { config: other.config.clone(), secrets: other.secrets.clone(), ..self.clone() }.runs_as(other)
    }

    /// Whether instances of both can serve one inbox: the same messages come to both, and as many wait for them.
    pub fn receives_as(&self, other: &Self) -> bool {
        let limits = |Limits { inbox_messages, inbox_bytes, message_size, .. }: &Limits| {
            [u64::from(*inbox_messages), *inbox_bytes, *message_size]
        };
        limits(&self.limits) == limits(&other.limits)
            && self.when_full == other.when_full
            && (&self.fulfills, &self.exports) == (&other.fulfills, &other.exports)
            && self.subscribes == other.subscribes
            && self.takes == other.takes
    }

    /// A copy in which fields that do not matter to a running instance have their defaults. A new field counts unless
    /// it is listed here.
    fn of_an_instance(&self) -> Self {
        let new = Self::of_component(self.id.clone(), self.component.clone());
        Self {
            limits: self.limits.of_an_instance(),
            restart: new.restart,
            reload: new.reload,
            update: new.update,
            signature: None,
            plugin_dir: None,
            canary: None,
            stanza: None,
            autostart: new.autostart,
            ..self.clone()
        }
    }
}

impl Table for ExtensionConfig {
    keys! {
        ExtensionConfig without component, signature, fulfills, exports, instances, per_call, config, secrets, plugin_dir,
            copy_of, canary, stanza;
        /// Its name: 1 to 64 of `a-z`, `0-9` and `-`, starting with a letter. Not `main`, and unique.
        "id" id = text(EXTENSION_ID, str::parse).hidden(), required(EXTENSION_ID);
        /// The component's file, relative to `main.plugin-dir` and inside it: without `..`. Two paths cannot differ
        /// only in upper and lower case.
        "path" = Key::new(Shape::Text(PLUGIN), component, told_component), required(PLUGIN);
        /// The SHA-256 that the file must have, as `sha256sum` and `weir inspect` show it.
        "sha256" sha256 = text(SHA256, artifact_text).optional(), default("any file");
        /// The id that its component must be signed as, with `main.require-signature`.
        "signed-as" signed_as = text(EXTENSION_ID, str::parse).optional(), default("its `id`");
        /// Its limits: `min`, `medium`, `max` or a `[limits.NAME]`.
        "class" = class(|it: &ExtensionConfig| &it.limits, |it| &mut it.limits);
        /// Limits that differ from the class: every key of `[limits.NAME]` but `inherits`, as in `limits.memory = "8
        /// MiB"`.
        "limits" limits = limits();
        /// Contracts that it may call and cannot do without. Their owners start first. Each is fulfilled by an
        /// extension or a peer, or listed in `main.serves`; Main serves `hooks@1` itself, unless an extension does.
        /// Extensions cannot require each other in a circle.
        "requires" requires = texts(CONTRACT, str::parse);
        /// Contracts that it may call and can do without. It [starts after and stops
        /// before](operators.md#which-start-and-stop-first) their owners, if these run. A contract that nobody serves
        /// is a warning.
        "wants" wants = texts(CONTRACT, str::parse);
        /// Contracts that it owns and may serve. A contract has one owner among extensions and peers. A table says that its
        /// operations are functions that the component exports, as in `{ contract = "greeter@1", export =
        /// "acme:greeter/api@1.0.0" }`: [exports as operations](exports.md).
        "fulfills" = fulfills(), default("empty");
        /// The contracts that answer its imports of interfaces that Weir does not have, as in `imports =
        /// { "acme:store/kv@1.0.0" = "store@1" }`: each function is a call of the operation with its name. It may call
        /// these contracts as if they were in `wants`.
        "imports" imports = imports(), default("empty");
        /// Those of `imports` whose fields and arguments have `_` in JSON where WIT has `-`, as contracts of programs in
        /// Rust and Python often do: `total_kib` for `total-kib`.
        "snake-case-imports" snake_case_imports = texts(IMPORT, str::parse), default("empty");
        /// Topics that it may publish under.
        "publishes" publishes = texts(TOPIC, str::parse);
        /// Topics that it may subscribe to: [below](#subscriptions).
        "subscribes" subscribes = subscribes();
        /// Queues that it may put jobs in. Each has a `[queue.NAME]`, or is the `dead-letter` of one.
        "puts" puts = texts(QUEUE, str::parse);
        /// Queues that it may take jobs from, as for `puts`.
        "takes" takes = texts(QUEUE, str::parse);
        /// What happens to a request that finds the inbox full: it is refused (`overloaded`), or its sender waits for
        /// room until its deadline. Requests are never lost, so the other policies do not exist for them.
        "when-full" when_full = policy(&RequestPolicy::ALL, "is for events and jobs, and requests are never lost");
        /// Hooks that it may run, through the contract `hooks@1`, which need not be in `wants` then. Each has a
        /// `[hooks.NAME]`.
        "runs" runs = texts(HOOKS, str::parse);
        /// So many instances run at once and compete for the inbox: each message goes to one of them. Limits hold for
        /// each instance, and each counts against `main.memory-budget`. With `update`, the last one tries new versions.
        /// With `per-call`, which is for exports, each call has a new instance, one call at a time.
        "instances" = instances(), default("1");
        /// What it may reach beside channels: [below](#grants). Everything else is absent.
        "grants" grants = table();
        /// What it reads through `wasi:config/store`, as strings: `interval = 1_000` is read as `1000`. Quote a name
        /// with dots. A table is [a secret](#secrets).
        "config" = Key::new(Shape::ValuesAndTables, values, told_values), default("empty");
        /// Whether it starts with Main, or waits for `weir start`.
        "autostart" autostart = flag();
        /// When it is started again after an end: [below](#restarts).
        "restart" restart = table();
        /// When it is ready: once it looks for messages or says so, or (`at-start`) once it waits for anything. A program
        /// that imports nothing of `weir:iec` has the latter in any case. [Programs without messages](plain-programs.md).
        "ready" ready = word();
        /// How `weir reload` exchanges its version: [below](#reload).
        "reload" reload = word();
        /// When a new version, of its component or its table, is proven: [versions prove themselves](updates.md). Until
        /// then it goes back to the last proven one if it does not hold.
        "update" update = optional_table(), default("none: a new version stays once it is ready");
        /// Where it serves HTTP, behind the [gateway](#gateway): its component exports `wasi:http/incoming-handler`, and
        /// runs only while it has requests. [HTTP servers](http-servers.md).
        "serves-http" serves_http = optional_table(), default("none: it runs by itself");
        /// What traces of its failures tell of each function: its name, or also its number and offset, which [`weir
        /// symbolise`](command-line.md#weir-symbolise) turns into lines of the source. That makes its compiled code
        /// larger by a tenth to an eighth, in memory and in the cache. An artifact has the setting of its compilation
        /// (`weir compile --traces lines`).
        "traces" traces = word();
        /// What Main checks by its own [description](contracts.md). With `requests`, a request whose arguments do not
        /// fit is answered with the error code `invalid-argument`, which names the JSON path, and never reaches it. One
        /// of over 64 KiB is answered `too-large`. Operations that it does not describe are not checked.
        "validate" validate = word();
    }
}

/// Reads the path of the component, which is relative to the plugin directory.
fn component(section: &mut Section<'_, '_>, key: &'static str, it: &mut ExtensionConfig) -> Option<Places> {
    let plugin_dir = it.plugin_dir.clone().unwrap_or_default();
    let path = section.text(key, PLUGIN, |text| check_path(text).map(|path| plugin_dir.join(path)))?;
    it.component = ComponentSource::Path(path.value);
    Some(Places::at(path.location))
}

fn told_component(it: &ExtensionConfig, key: &str, facts: &mut Facts) {
    match &it.component {
        ComponentSource::Path(path) => facts.text(key, Some(path.display())),
        ComponentSource::Bytes(component) => {
            facts.plain(key, Some(format!("{} in memory", bytes(component.len() as u64))));
        }
    }
}

/// Reads the table `config`: its values, and the sources of its secrets.
fn values(section: &mut Section<'_, '_>, key: &'static str, it: &mut ExtensionConfig) -> Option<Places> {
    (it.config, it.secrets) = section.values_and_tables(key, secret);
    Some(Places::default())
}

fn told_values(it: &ExtensionConfig, key: &str, facts: &mut Facts) {
    let key = |name: &str| format!("{key}.{}", harmless(name, usize::MAX));
    for (name, value) in &it.config {
        facts.text(&key(name), Some(value));
    }
    for (name, source) in &it.secrets {
        facts.plain(&key(name), Some(harmless(source, usize::MAX)));
    }
}

/// Reads a table of `config`, which says where the value stands.
fn secret(section: &mut Section<'_, '_>) -> Option<SecretSource> {
    section.explain_unknown("a table here names the source of a secret; quote a key with dots");
    section.about(FROM_FILE, || "none");
    let file = section.path("from-file", SECRET_FILE);
    section.about(FROM_CREDENTIAL, || "none");
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
