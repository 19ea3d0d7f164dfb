//! The world of an extension as core modules see it, and components of such modules.

use std::{path::Path, sync::LazyLock};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve, WorldId};

/// The naming of imports and exports, without async.
pub(crate) const MANGLING: ManglingAndAbi = ManglingAndAbi::Legacy(LiftLowerAbi::Sync);

/// The content of `wit/`, and the world `weir:iec/extension` in it.
pub(crate) fn extension() -> (&'static Resolve, WorldId) {
    static WORLD: LazyLock<(Resolve, WorldId)> = LazyLock::new(|| {
        let mut resolve = Resolve::default();
        let wit = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../wit");
        let (package, _) = resolve.push_dir(wit).unwrap();
        let world = resolve.select_world(&[package], Some("extension")).unwrap();
        (resolve, world)
    });
    (&WORLD.0, WORLD.1)
}

/// The component of a core module, if the module uses this world's names.
pub(crate) fn component(mut module: Vec<u8>) -> Option<Vec<u8>> {
    let (resolve, world) = extension();
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8, false).ok()?;
    ComponentEncoder::default().module(&module).ok()?.encode().ok()
}

/// The component of a module's text.
pub(crate) fn component_of(text: &str) -> Vec<u8> {
    component(wat::parse_str(text).unwrap()).unwrap()
}
