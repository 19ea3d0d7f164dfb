//! What a component is wanted as, and why it cannot be that, judged by its imports and exports. The process that compiles
//! asks before it compiles, and Main again when it links.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use weir_config::Features;
use weir_names::{ContractName, InterfaceName};

use super::{
    http::why_not_offered,
    imports::{is_offered, only_for_extensions},
};

/// What a program exports, and what an HTTP server does: the beginnings of the interfaces' names.
pub(crate) const RUN: &str = "wasi:cli/run@0.2.";
pub(crate) const HANDLER: &str = "wasi:http/incoming-handler@0.2.";

/// Why a component with asynchronous functions does not run, whatever it imports.
pub(crate) const OF_WASI_0_3: &str = "it is made for WASI 0.3 (async components), and this Weir offers WASI 0.2: build it for \
                                      0.2, as \"WASI 0.2 and 0.3\" in `docs/languages.md` shows for each language";

/// What runs a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GuestKind {
    /// An extension.
    Extension,
    /// A command, such as a hook: it has WASI alone.
    Command,
}

/// What a component is run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum World {
    /// A program: it exports `wasi:cli/run`.
    Program,
    /// A server: it exports `wasi:http/incoming-handler`.
    HttpServer,
    /// Functions that the host calls.
    Exports,
}

impl World {
    /// The name of the world, for people to read.
    pub(crate) fn name(self, kind: GuestKind) -> &'static str {
        match (self, kind) {
            (Self::Program, GuestKind::Extension) => "weir:iec/extension",
            (Self::Program, GuestKind::Command) => "wasi:cli/command",
            (Self::HttpServer, _) => "wasi:http/proxy",
            (Self::Exports, _) => "of exported functions",
        }
    }
}

/// What a component is wanted as.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Fit {
    pub(crate) kind: GuestKind,
    /// None if any world will do.
    pub(crate) world: Option<World>,
    /// The imports that contracts answer. `None` if the configuration is not known: then each that a contract could answer
    /// counts as answered.
    pub(crate) answered: Option<BTreeSet<InterfaceName>>,
    /// The exports that are operations of contracts.
    pub(crate) exports: BTreeMap<ContractName, InterfaceName>,
    /// Whether requests, events or jobs come to it.
    pub(crate) has_messages: bool,
    /// The parts of WebAssembly that its class turns on.
    pub(crate) features: Features,
}

impl Fit {
    /// What could run with some configuration.
    pub(crate) const ANY: Self = Self {
        kind: GuestKind::Extension,
        world: None,
        answered: None,
        exports: BTreeMap::new(),
        has_messages: false,
        features: Features::NONE,
    };

    /// A command with these features.
    pub(crate) fn of_command(features: Features) -> Self {
        let (kind, world) = (GuestKind::Command, Some(World::Program));
        Self { kind, world, answered: Some(BTreeSet::new()), features, ..Self::ANY }
    }

    /// The name of the world, for people to read.
    #[cfg(feature = "compiler")]
    pub(crate) fn world_name(&self) -> &'static str {
        self.world.unwrap_or(World::Program).name(self.kind)
    }

    /// Whether a contract answers this import, or could.
    pub(crate) fn answers(&self, import: &str) -> bool {
        self.answered.as_ref().is_none_or(|answered| answered.contains(import))
    }
}

/// Why a guest of this kind cannot have an import of Weir or WASI. None if it can, and for others.
pub(crate) fn refused(kind: GuestKind, import: &str) -> Option<String> {
    let is_refused = kind == GuestKind::Command && is_offered(import) && only_for_extensions(import);
    is_refused.then(|| format!("it imports `{import}`, which only extensions have"))
}

/// Whether an import could be answered by a contract: Weir does not have it, and it is none of WASI's.
pub(crate) fn is_foreign(import: &str) -> bool {
    !is_offered(import) && !import.starts_with("wasi:") && !import.starts_with("weir:")
}

/// Whether an interface is of WASI 0.3, which is made of asynchronous functions.
pub(crate) fn is_of_wasi_0_3(interface: &str) -> bool {
    const PACKAGES: [&str; 6] = ["cli", "clocks", "filesystem", "http", "random", "sockets"];
    let parts = interface.strip_prefix("wasi:").and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(package, interface)| PACKAGES.contains(&package) && interface.contains("@0.3."))
}

/// The text for an import that Weir does not offer, with the reason why no contract can answer it.
pub(crate) fn not_offered(import: &str, why: Option<&str>) -> String {
    let why = why.map(|why| format!(", and no contract can answer it: {why}")).unwrap_or_default();
    format!("it imports `{import}`, {}{why}", why_not_offered(import))
}

/// The text for an import that no contract answers yet.
pub(crate) fn not_answered(import: &str) -> String {
    format!(
        "it imports `{import}`, {}: name the contract that answers it in `imports`",
        why_not_offered(import)
    )
}

/// Why a component cannot run in a world. `imports` and `exports` say whether it has an interface whose name begins so.
pub(crate) fn misfit(
    kind: GuestKind,
    world: World,
    imports: impl Fn(&str) -> bool,
    exports: impl Fn(&str) -> bool,
) -> Option<String> {
    let why = match (world, exports(HANDLER), exports(RUN)) {
        (World::Program, _, true) => return None,
        (World::Program, true, false) if kind == GuestKind::Command => {
            "it is an HTTP server, and a hook is a program that ends"
        }
        (World::Program, true, false) => "it is an HTTP server: say where with `serves-http`",
        (World::Program, false, false) => "it exports no `wasi:cli/run` of WASI 0.2",
        (World::HttpServer, false, _) => {
            "it exports no `wasi:http/incoming-handler` of WASI 0.2, so it cannot have `serves-http`"
        }
        (World::HttpServer, true, _) if imports("weir:iec/channel@") => {
            "it imports `weir:iec/channel`, and a server has no inbox to receive from"
        }
        (World::Exports, ..) if imports("weir:iec/channel@") => {
            "it imports `weir:iec/channel`, and functions that are called have no inbox to receive from"
        }
        (World::HttpServer, true, _) | (World::Exports, ..) => return None,
    };
    Some(why.to_owned())
}

/// Why a program gets no messages: `knows_weir` says whether it imports anything of `weir:iec`.
pub(crate) fn deaf(world: World, has_messages: bool, knows_weir: bool) -> Option<String> {
    let is_deaf = has_messages && world == World::Program && !knows_weir;
    is_deaf.then(|| {
        "it imports nothing of `weir:iec`, so it gets no messages: it can have no `fulfills`, `subscribes` and `takes`"
            .to_owned()
    })
}
