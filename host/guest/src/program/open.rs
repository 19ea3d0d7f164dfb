//! Opens the component of an extension to look at it, without loading it.

use std::{io::Write, sync::Arc};

use weir_config::{ArtifactHash, ExtensionConfig};

use super::{
    ComponentOrigin, Guest, LoadError, LoadRequest, Programs,
    input::{ComponentInput, InputLimits},
    load_permit::LoadPermit,
};

/// An extension's component, once it is read within the limits of loading and below the plugin directory.
#[derive(Debug)]
pub struct OpenComponent {
    input: ComponentInput,
    origin: ComponentOrigin,
}

impl OpenComponent {
    /// Opens and hashes the component.
    ///
    /// # Errors
    ///
    /// Fails with the error of the extension's start, as far as it shows before compiling.
    pub fn of(extension: &ExtensionConfig) -> Result<Self, LoadError> {
        let (limits, plugin_dir) = (InputLimits::from(&extension.limits), extension.plugin_dir.as_deref());
        let origin = LoadRequest::from(extension).origin();
        match ComponentInput::open(&extension.component, plugin_dir, limits) {
            Ok(input) => Ok(Self { input, origin }),
            Err(fault) => Err(fault.of(origin, None)),
        }
    }

    /// The SHA-256 of the component.
    #[must_use]
    pub fn hash(&self) -> ArtifactHash {
        self.input.hash
    }

    /// Writes the component to `to`.
    ///
    /// # Errors
    ///
    /// Fails if reading or writing fails, or the component has changed since it was opened.
    pub fn copy_to(&mut self, mut to: &mut dyn Write) -> Result<(), LoadError> {
        self.input.copy_to(&mut to).map_err(|fault| fault.of(self.origin.clone(), Some(self.input.hash)))
    }
}

impl<G: Guest> Programs<G> {
    /// Opens the component of an extension for `look`, on a thread for blocking work and under a permit to load.
    ///
    /// # Errors
    ///
    /// Fails if no permit comes, or `look` takes longer than any load.
    pub async fn look_at<T: Send + 'static>(
        &self,
        extension: Arc<ExtensionConfig>,
        look: impl FnOnce(Result<OpenComponent, LoadError>) -> T + Send + 'static,
    ) -> Result<T, LoadError> {
        let wanted = LoadRequest::from(&*extension);
        let looked = async {
            let permit = LoadPermit::take(&self.permits, wanted).await?;
            let extension = extension.clone();
            permit.read(move || Ok(look(OpenComponent::of(&extension)))).await
        };
        looked.await.map_err(|fault| fault.of(wanted.origin(), None))
    }
}
