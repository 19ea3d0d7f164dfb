//! What is configured of one extension.

use std::{collections::BTreeMap, ops::RangeInclusive, path::PathBuf};

use bytes::Bytes;
use weir_names::{ContractName, ExtensionId, HookDirName, QueueName, RequestPolicy, TopicPattern};

use super::{
    ArtifactHash, ComponentSource, Grants, Limits, ReloadMode, RestartConfig, SubscribeGrant, Traces,
    shape::Shape,
};

pub(super) const INSTANCES: RangeInclusive<u32> = 1..=64;

/// The contract through which an extension runs the hooks that its [`runs`](ExtensionConfig::runs) lists.
pub const HOOKS_CONTRACT: &str = "hooks@1";

/// One configured extension: which component it is, what it may use, and what it may reach.
///
/// [`ExtensionConfig::new`] grants nothing; fill in what is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionConfig {
    /// Its id.
    pub id: ExtensionId,
    /// Its component: a file, or bytes in memory.
    pub component: ComponentSource,
    /// The SHA-256 that the component must have. None: any.
    pub sha256: Option<ArtifactHash>,
    /// What it may use.
    pub limits: Limits,
    /// Contracts that it owns and must serve. A contract has one owner.
    pub fulfills: Vec<ContractName>,
    /// Contracts that it may call and cannot do without: whoever owns them starts first.
    pub requires: Vec<ContractName>,
    /// Contracts that it may call and can do without.
    pub wants: Vec<ContractName>,
    /// Topics that it may publish under.
    pub publishes: Vec<TopicPattern>,
    /// Topics that it may subscribe to. Where two cover a pattern that it subscribes to, the first holds.
    pub subscribes: Vec<SubscribeGrant>,
    /// Queues that it may put jobs in.
    pub puts: Vec<QueueName>,
    /// Queues that it may take jobs from.
    pub takes: Vec<QueueName>,
    /// Directories of hooks that it may run, through the contract `hooks@1`.
    pub runs: Vec<HookDirName>,
    /// What becomes of a request that finds its inbox full, at first [`RequestPolicy::Reject`].
    pub when_full: RequestPolicy,
    /// As many instances of it run at once and compete for its inbox: 1 to 64, at first 1.
    pub instances: u32,
    /// What it may reach beside channels.
    pub grants: Grants,
    /// What it reads through `wasi:config/store`.
    pub config: BTreeMap<String, String>,
    /// Whether it is started with Main.
    pub autostart: bool,
    /// When it is started again after it has ended.
    pub restart: RestartConfig,
    /// How a new version takes its place.
    pub reload: ReloadMode,
    /// What the traces of its failures tell.
    pub traces: Traces,
    /// Where its file must be, if it has one, once it belongs to a Main. Main sets it.
    #[doc(hidden)]
    pub plugin_dir: Option<PathBuf>,
    /// The extension whose inbox it serves, beside that, as one of its instances. Main sets it.
    #[doc(hidden)]
    pub copy_of: Option<ExtensionId>,
}

impl ExtensionConfig {
    /// An extension in the class `medium` that starts with Main and may reach nothing, of a component in a file.
    #[must_use]
    pub fn new(id: ExtensionId, path: impl Into<PathBuf>) -> Self {
        Self::of_component(id, ComponentSource::Path(path.into()))
    }

    /// The same of a component in memory, such as that of an `include_bytes!`.
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
            autostart: true,
            restart: RestartConfig::default(),
            reload: ReloadMode::default(),
            traces: Traces::default(),
            plugin_dir: None,
            copy_of: None,
        }
    }

    /// Bytes that it may take of this machine's memory by what operators set: `memory`, `stack` and what
    /// may wait in its inbox, for each of its `instances`. A reload with [`ReloadMode::Overlap`] has twice as
    /// many for a while, so `memory` and `stack` count twice then. The sum over all extensions and queues is what
    /// [`MainConfig::memory_budget`](super::MainConfig::memory_budget) bounds.
    ///
    /// It may take more while it runs, which is not counted: of the host's stack, of which a page is
    /// touched when it is used, up to [`FixedLimits::host_stack`](super::FixedLimits::host_stack); 8 bytes
    /// for each of the [`FixedLimits::table_elements`](super::FixedLimits::table_elements); what it hands
    /// over in one call, up to [`Limits::transfer`]; and its compiled code, which all that run one
    /// component share.
    #[must_use]
    pub fn memory_sum(&self) -> u64 {
        let Limits { memory, stack, inbox_bytes, .. } = &self.limits;
        let instance = memory.saturating_add(*stack);
        let reloaded = match self.reload {
            ReloadMode::StopFirst => instance,
            ReloadMode::Overlap => instance.saturating_mul(2),
        };
        // One inbox for both: one lane for requests, one for replies and events.
        reloaded.saturating_add(inbox_bytes.saturating_mul(2)).saturating_mul(self.instances.into())
    }

    /// As many as it has instances: itself, and the copies that serve its inbox beside it.
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

    /// Those of its own values that cannot be: the key and what it must be.
    pub(super) fn out_of_range(&self) -> Vec<(&'static str, String)> {
        let instances = Shape::counts(INSTANCES);
        let has = instances.has(self.instances.into());
        (!has).then(|| ("instances", instances.to_string())).into_iter().collect()
    }

    /// Whether an instance of one is as good as an instance of the other: they differ at most in what
    /// the supervisor alone heeds, and in where limits come from.
    pub fn runs_as(&self, other: &Self) -> bool {
        self.of_an_instance() == other.of_an_instance()
    }

    /// With all else as in [`ExtensionConfig::new`], so that what is added to this structure counts.
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
    use crate::{RestartPolicy, tests::parse_in};

    #[test]
    fn an_instance_is_as_good_for_whoever_differs_in_what_it_does_not_see() {
        let a = ExtensionConfig::new("a".parse().unwrap(), "a.wasm");
        // Whoever adds a field adds it to one of the lists below.
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
            autostart: _,
            restart: _,
            reload: _,
            traces: _,
            plugin_dir: _,
            copy_of: _,
        } = &a;
        let runs_as_before = |change: fn(&mut ExtensionConfig)| {
            let mut changed = a.clone();
            change(&mut changed);
            assert_ne!(changed, a);
            changed.runs_as(&a)
        };
        let of_the_instance: [fn(&mut ExtensionConfig); 18] = [
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
            |it| it.grants.net.push("[::1]:80".parse().unwrap()),
            |it| drop(it.config.insert("a".to_owned(), "b".to_owned())),
        ];
        assert_eq!(of_the_instance.map(runs_as_before), [false; 18]);
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
