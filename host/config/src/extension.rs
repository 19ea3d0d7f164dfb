//! The configuration of one extension.

use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf};

use bytes::Bytes;
use weir_names::{ContractName, ExtensionId, HookDirName, QueueName, RequestPolicy, TopicPattern};

use super::{
    ArtifactHash, ComponentSource, Grants, Limits, ReloadMode, RestartConfig, SecretSource, SubscribeGrant,
    Traces, Validate, shape::Shape,
};

pub(super) const INSTANCES: RangeInclusive<u32> = 1..=64;

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
    /// The required SHA-256 of the component. `None`: any.
    pub sha256: Option<ArtifactHash>,
    /// The limits.
    pub limits: Limits,
    /// Contracts that it owns and must serve. A contract has one owner.
    pub fulfills: Vec<ContractName>,
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
    /// Access beside channels.
    pub grants: Grants,
    /// Values that it reads through `wasi:config/store`.
    pub config: BTreeMap<String, String>,
    /// More such values, which are secret. They replace those of the same name.
    pub secrets: BTreeMap<String, SecretSource>,
    /// Whether it starts with Main.
    pub autostart: bool,
    /// When it restarts.
    pub restart: RestartConfig,
    /// How a new version replaces the old one.
    pub reload: ReloadMode,
    /// The detail of its traces.
    pub traces: Traces,
    /// What is checked by its own description of its contracts. Default: [`Validate::Nothing`].
    pub validate: Validate,
    /// The directory that must contain its file. Set by Main.
    #[doc(hidden)]
    pub plugin_dir: Option<PathBuf>,
    /// The extension that this instance is a copy of. It serves the same inbox. Set by Main.
    #[doc(hidden)]
    pub copy_of: Option<ExtensionId>,
}

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
            limits: Limits::default(),
            fulfills: Vec::new(),
            requires: Vec::new(),
            wants: Vec::new(),
            publishes: Vec::new(),
            subscribes: Vec::new(),
            puts: Vec::new(),
            takes: Vec::new(),
            runs: Vec::new(),
            when_full: RequestPolicy::Reject,
            instances: 1,
            grants: Grants::default(),
            config: BTreeMap::new(),
            secrets: BTreeMap::new(),
            autostart: true,
            restart: RestartConfig::default(),
            reload: ReloadMode::default(),
            traces: Traces::default(),
            validate: Validate::default(),
            plugin_dir: None,
            copy_of: None,
        }
    }

    /// The memory that counts against [`MainConfig::memory_budget`](super::MainConfig::memory_budget), in bytes:
    /// `memory`, `stack` and the inbox of each of its `instances`. `memory` and `stack` count twice with
    /// [`ReloadMode::Overlap`], which runs two versions for a while.
    ///
    /// A running extension may take more memory, which does not count: host stack up to
    /// [`FixedLimits::host_stack`](super::FixedLimits::host_stack), in pages as they are used; 8 bytes for each of the
    /// [`FixedLimits::table_elements`](super::FixedLimits::table_elements); the data of a call, up to
    /// [`Limits::transfer`]; and compiled code, which all users of a component share.
    #[must_use]
    pub fn memory_sum(&self) -> u64 {
        let Limits { memory, stack, inbox_bytes, .. } = &self.limits;
        let instance = memory.saturating_add(*stack);
        let reloaded = match self.reload {
            ReloadMode::StopFirst => instance,
            ReloadMode::Overlap => instance.saturating_mul(2),
        };
        // Requests have one lane, replies and events another.
        reloaded.saturating_add(inbox_bytes.saturating_mul(2)).saturating_mul(self.instances.into())
    }

    /// One configuration for each instance: itself, and copies that serve the same inbox.
    pub(super) fn in_copies(self, plugin_dir: Option<PathBuf>) -> impl Iterator<Item = Self> {
        let instances = self.instances;
        let first = Self { plugin_dir, instances: 1, ..self };
        let copy = {
            let first = first.clone();
            move |number| {
                let id = first.id.copy(number);
                Self { id, copy_of: Some(first.id.clone()), ..first.clone() }
            }
        };
        std::iter::once(first).chain((2..=instances).map(copy))
    }

    pub(super) fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let instances = Shape::counts(INSTANCES);
        let has = instances.has(self.instances.into());
        (!has).then(|| ("instances", instances.to_string())).into_iter().collect()
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

    /// Other fields are as in [`ExtensionConfig::new`], so that a new field counts by default.
    fn of_an_instance(&self) -> Self {
        let new = Self::of_component(self.id.clone(), self.component.clone());
        Self {
            limits: self.limits.of_an_instance(),
            restart: new.restart,
            reload: new.reload,
            plugin_dir: None,
            autostart: new.autostart,
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weir_names::Policy;

    use super::*;
    use crate::{HttpGrant, RestartPolicy, tests::parse_in};

    #[test]
    fn an_instance_is_as_good_for_whoever_differs_in_what_it_does_not_see() {
        let a = ExtensionConfig::new("a".parse().unwrap(), "a.wasm");
        // Add a new field to one of the lists below.
        let ExtensionConfig {
            id: _,
            component: _,
            sha256: _,
            limits: _,
            fulfills: _,
            requires: _,
            wants: _,
            publishes: _,
            subscribes: _,
            puts: _,
            takes: _,
            runs: _,
            when_full: _,
            instances: _,
            grants: _,
            config: _,
            secrets: _,
            autostart: _,
            restart: _,
            reload: _,
            traces: _,
            validate: _,
            plugin_dir: _,
            copy_of: _,
        } = &a;
        let runs_as_before = |change: fn(&mut ExtensionConfig)| {
            let mut changed = a.clone();
            change(&mut changed);
            assert_ne!(changed, a);
            changed.runs_as(&a)
        };
        let of_the_instance: [fn(&mut ExtensionConfig); 21] = [
            |it| it.id = "b".parse().unwrap(),
            |it| it.component = ComponentSource::Path("b".into()),
            |it| it.component = ComponentSource::Bytes(Bytes::from_static(b"b")),
            |it| it.sha256 = Some(ArtifactHash::from_bytes([1; 32])),
            |it| it.limits.log_rate += 1,
            |it| it.fulfills.push("a@1".parse().unwrap()),
            |it| it.requires.push("a@1".parse().unwrap()),
            |it| it.wants.push("a@1".parse().unwrap()),
            |it| it.publishes.push("t".parse().unwrap()),
            |it| it.subscribes.push("t".parse().unwrap()),
            |it| it.puts.push("q".parse().unwrap()),
            |it| it.takes.push("q".parse().unwrap()),
            |it| it.runs.push("h".parse().unwrap()),
            |it| it.when_full = RequestPolicy::Block,
            |it| it.instances = 2,
            |it| it.traces = Traces::Lines,
            |it| it.validate = Validate::Requests,
            |it| it.grants.net.push("[::1]:80".parse().unwrap()),
            |it| it.grants.http.push(HttpGrant::new("http://[::1]".parse().unwrap())),
            |it| drop(it.config.insert("a".to_owned(), "b".to_owned())),
            |it| drop(it.secrets.insert("a".to_owned(), SecretSource::File("b".into()))),
        ];
        assert_eq!(of_the_instance.map(runs_as_before), [false; 21]);
        let subscribing = ExtensionConfig { subscribes: vec!["t".parse().unwrap()], ..a.clone() };
        let mut changed = subscribing.clone();
        changed.subscribes[0].policy = Policy::Latest;
        assert!(!changed.runs_as(&subscribing));
        let of_the_supervisor: [fn(&mut ExtensionConfig); 5] = [
            |it| it.plugin_dir = Some(PathBuf::new()),
            |it| it.limits.compile_memory += 1,
            |it| it.autostart = false,
            |it| it.restart.policy = RestartPolicy::Never,
            |it| it.reload = ReloadMode::Overlap,
        ];
        assert_eq!(of_the_supervisor.map(runs_as_before), [true; 5]);
    }

    #[test]
    fn an_instance_is_as_good_wherever_the_same_limits_come_from() {
        let parsed = |text: &str| parse_in(text, Path::new("/")).unwrap().extensions.remove(0);
        let text = "[limits.small]\nmemory = '8 MiB'\n[[extension]]\nid = 'a'\npath = 'a.wasm'\n";
        let of_class = parsed(&format!("{text}class = 'small'"));
        let moved = parsed(&format!("# A comment.\n{text}class = 'small'"));
        let own = parsed(&format!("{text}limits.memory = '8 MiB'"));
        let mut made = ExtensionConfig::new("a".parse().unwrap(), "/a.wasm");
        made.limits.memory = 8 << 20;
        for other in [moved, own, made] {
            assert!(other != of_class && other.runs_as(&of_class), "{other:?}");
        }
        let other_class = parsed("[[extension]]\nid = 'a'\npath = 'a.wasm'\nclass = 'min'");
        assert!(!other_class.runs_as(&of_class));
    }
}
