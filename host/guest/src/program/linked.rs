//! Resolves the imports of a component, and finds the export that is called.

use std::collections::BTreeSet;

use wasmtime::{
    Engine,
    component::{
        Component, InstancePre, Linker,
        types::{ComponentInstance, ComponentItem},
    },
};
use wasmtime_wasi::p2::bindings::CommandPre;
#[cfg(feature = "http")]
use wasmtime_wasi_http::p2::bindings::ProxyPre;
#[cfg(not(feature = "http"))]
use weir_config::not_in_this_build;
use weir_names::{InterfaceName, harmless};

use super::{LoadFault, code::Code};
use crate::{
    engine::AddressClass,
    exit::said,
    exports::Types,
    fit::{
        GuestKind, OF_WASI_0_3, World, is_foreign, is_of_wasi_0_3, misfit as why_misfit, not_answered,
        not_offered, refused,
    },
    imports::is_offered,
    inspect::MAX_NAME,
    sandbox::Guest,
};

/// A component with its imports resolved, and the export that is called.
pub(in super::super) enum Linked<G: 'static> {
    Program(CommandPre<G>),
    Exports(InstancePre<G>),
    #[cfg(feature = "http")]
    HttpServer(ProxyPre<G>),
}

/// The interfaces that a component imports and Weir does not have, and that contracts answer.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    pub(super) names: Box<[String]>,
    /// Bytes that their types take.
    pub(super) bytes: usize,
}

/// Loads code, and resolves the imports of its component: those of Weir, and those in `answered`, or
/// without that all that a contract could answer.
pub(super) fn linked<G: Guest>(
    code: &Code,
    engines: &[Engine],
    class: AddressClass,
    code_size: u64,
    world: World,
    answered: Option<&BTreeSet<InterfaceName>>,
) -> Result<(Component, Linked<G>, Foreign), LoadFault> {
    // The next engine is tried when one refuses the code, because its pools may be too small for it.
    let mut loaded = Err(LoadFault::CutOff);
    for engine in engines {
        loaded = code.load(engine, class, code_size);
        if loaded.is_ok() {
            break;
        }
    }
    let component = loaded?;
    let misfit = |reason| LoadFault::World { world: world.name(G::KIND), reason };
    // The linker is made anew for each load, because it takes the memory of three idle extensions.
    let mut linker = Linker::new(component.engine());
    G::add_to_linker(&mut linker).map_err(|error| LoadFault::Engine(said(&error)))?;
    let of_kind = component.component_type().imports(component.engine()).find_map(|(name, _)| {
        match is_of_wasi_0_3(name) {
            true => Some(OF_WASI_0_3.to_owned()),
            false => refused(G::KIND, &harmless(name, MAX_NAME)),
        }
    });
    if let Some(reason) = of_kind {
        return Err(misfit(reason));
    }
    // Imports are checked here, because the linker ignores interfaces without imported functions.
    let (mut foreign, mut types) = (Vec::new(), Types::new());
    for (import, interface) in unoffered(&component) {
        let engine = component.engine();
        let has_only_types =
            interface.exports(engine).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)));
        if is_foreign(&import) && has_only_types {
            continue;
        }
        if !is_foreign(&import) || answered.is_some_and(|answered| !answered.contains(&*import)) {
            let is_answerable = is_foreign(&import) && G::KIND == GuestKind::Extension;
            let link = || G::link_import(&mut linker, engine, &import, &interface, &mut types);
            return Err(misfit(match is_answerable.then(link) {
                Some(Ok(())) => not_answered(&import),
                Some(Err(why)) => not_offered(&import, Some(&why)),
                None => not_offered(&import, None),
            }));
        }
        G::link_import(&mut linker, engine, &import, &interface, &mut types)
            .map_err(|why| misfit(not_offered(&import, Some(&why))))?;
        foreign.push(import);
    }
    let pre = linker.instantiate_pre(&component).map_err(|error| misfit(said(&error)))?;
    let of_world =
        why_misfit(G::KIND, world, |name| imports(&component, name), |name| exports(&component, name));
    if let Some(reason) = of_world {
        return Err(misfit(reason));
    }
    let linked = match world {
        World::Program => CommandPre::new(pre).map(Linked::Program),
        World::Exports => Ok(Linked::Exports(pre)),
        #[cfg(feature = "http")]
        World::HttpServer => ProxyPre::new(pre).map(Linked::HttpServer),
        #[cfg(not(feature = "http"))]
        World::HttpServer => return Err(misfit(format!("`serves-http` {}", not_in_this_build("http")))),
    };
    let foreign = Foreign { names: foreign.into(), bytes: types.bytes() };
    Ok((component, linked.map_err(|error| misfit(said(&error)))?, foreign))
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

/// Returns the interfaces that the component imports and Weir does not offer.
fn unoffered(component: &Component) -> Vec<(String, ComponentInstance)> {
    let ty = component.component_type();
    let unoffered = ty.imports(component.engine()).filter_map(|(name, import)| match import.ty {
        ComponentItem::ComponentInstance(interface) if !is_offered(name) => {
            Some((harmless(name, MAX_NAME), interface))
        }
        _ => None,
    });
    unoffered.collect()
}

pub(super) fn imports_http(component: &Component) -> bool {
    imports(component, "wasi:http/outgoing-handler@")
}

/// Whether the component knows of Weir, and so can be given messages.
pub(super) fn imports_iec(component: &Component) -> bool {
    imports(component, "weir:iec/")
}
