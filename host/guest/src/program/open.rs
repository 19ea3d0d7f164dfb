//! Opens the component of an extension to look at it, without loading it.

use std::{io::Write, path::Path, sync::Arc};

use weir_config::{ArtifactHash, ComponentSource, ExtensionConfig, Limits};

use super::{
    ComponentOrigin, Guest, LoadError, LoadFault, LoadRequest, Programs, Rules,
    admission::{Candidate, Voucher},
    artifact,
    framing::Framing,
    input::{ComponentInput, InputKind, InputLimits},
    load_permit::LoadPermit,
    signature::Signature,
};
use crate::inspect::{DataStatement, Inspection};

/// An extension's component, once it is read within the limits of loading and below the plugin directory.
#[derive(Debug)]
pub struct OpenComponent {
    input: ComponentInput,
    voucher: Voucher,
    candidate: Candidate,
    origin: ComponentOrigin,
    must_be_newer: bool,
}

impl OpenComponent {
    /// Opens and hashes the component, and checks it by these rules.
    ///
    /// # Errors
    ///
    /// Fails with the error of the extension's start, as far as it shows before compiling.
    pub fn of(extension: &ExtensionConfig, rules: &Rules) -> Result<Self, LoadError> {
        let opened =
            Self::opened(LoadRequest::from(extension), |candidate, input| candidate.admit(input, rules))?;
        Ok(Self { must_be_newer: rules.asks_for_newer(extension), ..opened })
    }

    /// Opens and hashes the component, whether it may run or not.
    ///
    /// # Errors
    ///
    /// Fails if the component cannot be read.
    pub fn unchecked(extension: &ExtensionConfig) -> Result<Self, LoadError> {
        Self::opened(LoadRequest::from(extension), |_, _| Ok(Voucher::default()))
    }

    /// Opens and hashes the hook in a file of this directory, whether it may run or not.
    ///
    /// # Errors
    ///
    /// Fails if the hook cannot be read.
    pub fn hook(file: &Path, dir: &Path, limits: &Limits) -> Result<Self, LoadError> {
        let component = ComponentSource::Path(file.to_owned());
        Self::opened(LoadRequest::of_hook("hook", &component, dir, limits), |_, _| Ok(Voucher::default()))
    }

    fn opened(
        wanted: LoadRequest<'_>,
        admit: impl FnOnce(&Candidate, &mut ComponentInput) -> Result<Voucher, LoadFault>,
    ) -> Result<Self, LoadError> {
        let candidate = Candidate::from(wanted);
        let mut input = candidate.open().map_err(|fault| fault.of(wanted.origin(), None))?;
        match admit(&candidate, &mut input) {
            Ok(voucher) => {
                Ok(Self { input, voucher, candidate, origin: wanted.origin(), must_be_newer: false })
            }
            Err(fault) => Err(fault.of(wanted.origin(), Some(input.hash))),
        }
    }

    /// Checks a component that was opened unchecked by these rules.
    ///
    /// # Errors
    ///
    /// The errors of [`of`](Self::of).
    pub fn check(&mut self, rules: &Rules) -> Result<(), LoadError> {
        let admitted = self.candidate.admit(&mut self.input, rules);
        admitted.map(drop).map_err(|fault| fault.of(self.origin.clone(), Some(self.input.hash)))
    }

    /// The signature beside the component, if there is one of this component. Its key may be any.
    #[must_use]
    pub fn signature_beside(&self) -> Option<Signature> {
        let signature = Signature::parse(&self.candidate.signature().ok()?).ok()?;
        (signature.sha256 == self.input.hash).then_some(signature)
    }

    /// The signature of the component, if it was checked.
    #[must_use]
    pub fn signature(&self) -> Option<&Signature> {
        self.voucher.signature.as_deref().filter(|_| self.voucher.was_required)
    }

    /// Whether it runs only if no newer version is proven, or not known to be.
    #[must_use]
    pub fn must_be_newer(&self) -> bool {
        self.must_be_newer
    }

    /// The SHA-256 of the component.
    #[must_use]
    pub fn hash(&self) -> ArtifactHash {
        self.input.hash
    }

    /// Reads what the manifest says of the extension's data. An artifact, or a component without a manifest, says nothing.
    ///
    /// # Errors
    ///
    /// Fails if reading fails, the component has changed since it was opened, or its manifest cannot be read.
    pub fn data_statement(&mut self) -> Result<DataStatement, LoadError> {
        if self.input.kind == InputKind::Artifact {
            return Ok(DataStatement::default());
        }
        let stated =
            self.input.read().and_then(|bytes| DataStatement::of(&bytes).map_err(LoadFault::Manifest));
        stated.map_err(|fault| fault.of(self.origin.clone(), Some(self.input.hash)))
    }

    /// Why the component cannot run as this extension, if its imports and exports say so. Nothing is known of an artifact,
    /// and of a component whose signature was not checked, which is not looked into.
    #[must_use]
    pub fn misfit(&mut self, extension: &ExtensionConfig) -> Option<String> {
        if self.input.kind == InputKind::Artifact || self.signature().is_none() {
            return None;
        }
        let bytes = self.input.read().ok()?;
        Inspection::of(Path::new(""), &bytes, self.input.hash).ok()?.misfit(extension)
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
            let rules = self.sources.admission.rules();
            permit.read(move || Ok(look(OpenComponent::of(&extension, &rules)))).await
        };
        looked.await.map_err(|fault| fault.of(wanted.origin(), None))
    }
}

/// Checks that an extension's component is whole. Reads it, and looks only at the lengths of its sections. An artifact
/// is whole if it lacks no part, whether its signature is right or not.
///
/// # Errors
///
/// Fails with the error of the extension's start, as far as it shows in this way.
pub fn component_is_whole(extension: &ExtensionConfig) -> Result<(), LoadError> {
    let (limits, plugin_dir) = (InputLimits::from(&extension.limits), extension.plugin_dir.as_deref());
    let look = || {
        let mut input = ComponentInput::open(&extension.component, plugin_dir, limits)?;
        if input.kind == InputKind::Artifact {
            return artifact::described(&mut input).map(drop);
        }
        let mut framing = Framing::new();
        input.copy_to(&mut framing)?;
        if framing.is_whole() { Ok(()) } else { Err(LoadFault::Truncated) }
    };
    look().map_err(|fault| fault.of(LoadRequest::from(extension).origin(), None))
}
