//! The compilations under way, and what asked for them.

use std::collections::HashMap;

use parking_lot::Mutex;
use weir_reports::BeingCompiled;

/// The compilations under way, by the name of what asked for each.
#[derive(Debug, Default)]
pub struct Compilations(Mutex<HashMap<String, BeingCompiled>>);

/// Ends with the compilation.
#[cfg(feature = "compiler")]
pub(super) struct UnderWay {
    compilations: std::sync::Arc<Compilations>,
    name: String,
}

impl Compilations {
    /// The compilation for an extension or a hook.
    pub fn of(&self, name: &str) -> Option<BeingCompiled> {
        self.0.lock().get(name).copied()
    }

    #[cfg(feature = "compiler")]
    pub(super) fn begin(self: &std::sync::Arc<Self>, name: &str, bytes: u64) -> UnderWay {
        self.0.lock().insert(name.to_owned(), BeingCompiled { bytes, since: std::time::SystemTime::now() });
        UnderWay { compilations: self.clone(), name: name.to_owned() }
    }
}

#[cfg(feature = "compiler")]
impl Drop for UnderWay {
    fn drop(&mut self) {
        self.compilations.0.lock().remove(&self.name);
    }
}
