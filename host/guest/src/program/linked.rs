//! Resolves the imports of a component, and finds the export that is called.

use wasmtime::{
    Engine,
    component::{Component, Linker, types::ComponentItem},
};
use wasmtime_wasi::p2::bindings::CommandPre;
#[cfg(feature = "http")]
use wasmtime_wasi_http::p2::bindings::ProxyPre;
#[cfg(not(feature = "http"))]
use weir_config::not_in_this_build;
use weir_names::harmless;

use super::{LoadFault, code::Code};
use crate::{
    engine::AddressClass,
    exit::said,
    http::why_not_offered,
    imports::is_offered,
    inspect::{MAX_NAME, misfit as why_misfit},
    sandbox::Guest,
};

/// What a component is run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in super::super) enum World {
    /// A program: it exports `wasi:cli/run`.
    Program,
    /// A server: it exports `wasi:http/incoming-handler`.
    HttpServer,
}

/// A component with its imports resolved, and the export that is called.
pub(in super::super) enum Linked<G: 'static> {
    Program(CommandPre<G>),
    #[cfg(feature = "http")]
    HttpServer(ProxyPre<G>),
}

/// Loads code, and resolves the imports of its component.
pub(super) fn linked<G: Guest>(
    code: &Code,
    engines: &[Engine],
    class: AddressClass,
    code_size: u64,
    world: World,
) -> Result<(Component, Linked<G>), LoadFault> {
    // The next engine is tried when one refuses the code, because its pools may be too small for it.
    let mut loaded = Err(LoadFault::CutOff);
    for engine in engines {
        loaded = code.load(engine, class, code_size);
        if loaded.is_ok() {
            break;
        }
    }
    let component = loaded?;
    let name = if world == World::HttpServer { "wasi:http/proxy" } else { G::WORLD };
    let misfit = |reason| LoadFault::World { world: name, reason };
    // Imports are checked here, because the linker ignores interfaces without imported functions.
    if let Some(import) = unoffered(&component) {
        let why = why_not_offered(&import);
        return Err(misfit(format!("it imports `{import}`, {why}")));
    }
    // The linker is made anew for each load, because it takes the memory of three idle extensions.
    let mut linker = Linker::new(component.engine());
    G::add_to_linker(&mut linker).map_err(|error| LoadFault::Engine(said(&error)))?;
    let pre = linker.instantiate_pre(&component).map_err(|error| misfit(said(&error)))?;
    let is_server = world == World::HttpServer;
    if let Some(reason) =
        why_misfit(is_server, |name| imports(&component, name), |name| exports(&component, name))
    {
        return Err(misfit(reason));
    }
    let linked = match world {
        World::Program => CommandPre::new(pre).map(Linked::Program),
        #[cfg(feature = "http")]
        World::HttpServer => ProxyPre::new(pre).map(Linked::HttpServer),
        #[cfg(not(feature = "http"))]
        World::HttpServer => return Err(misfit(format!("`serves-http` {}", not_in_this_build("http")))),
    };
    Ok((component, linked.map_err(|error| misfit(said(&error)))?))
}

/// Whether the component exports an interface whose name begins so.
fn exports(component: &Component, begin: &str) -> bool {
    let ty = component.component_type();
    ty.exports(component.engine()).any(|(name, _)| name.starts_with(begin))
}

/// Whether the component imports an interface whose name begins so.
fn imports(component: &Component, begin: &str) -> bool {
    let ty = component.component_type();
    ty.imports(component.engine()).any(|(name, _)| name.starts_with(begin))
}

/// Returns the first interface that the component imports and Weir does not offer.
fn unoffered(component: &Component) -> Option<String> {
    let ty = component.component_type();
    let mut imports = ty.imports(component.engine());
    let (name, _) = imports.find(|(name, import)| {
        matches!(import.ty, ComponentItem::ComponentInstance(_)) && !is_offered(name)
    })?;
    Some(harmless(name, MAX_NAME))
}

pub(super) fn imports_http(component: &Component) -> bool {
    imports(component, "wasi:http/outgoing-handler@")
}
