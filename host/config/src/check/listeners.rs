//! Extensions that listen on the network: an address has one program that listens there.

use weir_names::ExtensionId;

use super::Judged;
use crate::{
    NetGrant, ReloadMode,
    error::{ConfigError, Location},
};

impl Judged<'_> {
    /// Reports an address where two programs would listen at once: two extensions, two copies, or two versions.
    pub(super) fn listeners(&self, errors: &mut Vec<ConfigError>) {
        let mut seen: Vec<(&ExtensionId, &NetGrant, Option<Location>)> = Vec::new();
        for (index, extension) in self.extensions() {
            let (id, listening) = (&extension.id, extension.grants.net.iter().enumerate());
            for (item, grant) in listening.filter(|(_, grant)| grant.listen) {
                let places = self.places_of_extension(index).and_then(|at| at.within("grants"));
                let at = places.and_then(|at| at.of_item("net", item));
                let (key, address) = (format!("extension[{id}].grants.net"), &grant.address);
                let faults = [
                    (extension.instances > 1, "`instances` are more than one, and one program listens at"),
                    (extension.per_call, "with `instances = \"per-call\"` none stays to listen at"),
                    (extension.serves_http.is_some(), "with `serves-http` none stays to listen at"),
                    (
                        extension.reload == ReloadMode::Overlap,
                        "`reload = \"overlap\"` starts a version while the one before it listens at",
                    ),
                ];
                for (_, fault) in faults.into_iter().filter(|(is_fault, _)| *is_fault) {
                    errors.push(ConfigError::new(
                        &*key,
                        format!("in `{key}`: {fault} `{address}`"),
                        at.clone(),
                    ));
                }
                let other = seen.iter().find(|(other, theirs, _)| *other != id && grant.meets(theirs));
                if let Some((other, _, place)) = other {
                    let message =
                        format!("`{other}` and `{id}` both listen at `{address}`: give each its own");
                    let error = ConfigError::new(key, message, at.clone());
                    errors.push(error.note(place.clone(), "the other is here"));
                }
                seen.push((id, grant, at));
            }
        }
    }
}
