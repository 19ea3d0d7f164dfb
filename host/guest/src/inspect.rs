//! What a file says about itself, without compiling or running it: the component's imports and exports, and its
//! author's manifest.
//!
//! The file is hostile input: everything kept is bounded, checked or escaped.

mod manifest;
mod stanza;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use wasmparser::{ComponentTypeRef, Parser, Payload};
use weir_config::{ArtifactHash, ExtensionConfig, Features, Limits};
use weir_names::{ContractName, harmless};
use weir_openrpc::{Document, MAX_SECTION, Role, SECTION};

pub use self::manifest::{DataStatement, DirNeed, Manifest, Needs};
use super::{
    exports::{self, DescribedInterface},
    features::Uses,
    fit::{
        self, Fit, GuestKind, HANDLER, OF_WASI_0_3, RUN, World, is_foreign, is_of_wasi_0_3, not_answered,
        not_offered, refused,
    },
    imports::is_offered,
    program::{self, LoadError, LoadRequest},
};

const MANIFEST_SECTION: &str = "weir:manifest";

/// The most bytes of a manifest, enough for hundreds of names.
const MAX_MANIFEST: usize = 64 * 1024;

/// How deep modules and components may be nested. A component that today's tools make from a module has a depth of 2.
const MAX_DEPTH: usize = 16;

/// The most imports, and the most exports. That is ten times as many as all of WASI 0.2 has.
const MAX_NAMES: usize = 1000;

/// How many bytes of the name of an import or export are shown.
pub(super) const MAX_NAME: usize = 256;

/// Why a file cannot be inspected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InspectError {
    /// The file cannot be read, is too large, or is no component.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The file is cut off or damaged, or uses something unknown.
    #[error("`{}` is damaged: {message}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The parser's message.
        message: String,
    },
    /// The file has more imports, exports or nested modules than any real component.
    #[error("`{}` has more than {most} {what}", path.display())]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The kind of thing.
        what: &'static str,
        /// How many are accepted.
        most: usize,
    },
    /// The section `weir:manifest` is invalid or too large, or there are two.
    #[error("the manifest in `{}` is not valid: {message}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
    },
    /// The sections `weir:contracts` are malformed or too large.
    #[error("the contracts that `{}` describes are not valid: {message}", path.display())]
    Contracts {
        /// The file.
        path: PathBuf,
        /// What is wrong with them.
        message: String,
    },
}

/// What a component says about itself. The names of its imports and exports hold no control characters.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The SHA-256 of the file, in JSON as hexadecimal digits.
    #[serde(serialize_with = "shown")]
    pub sha256: ArtifactHash,
    /// The names of the component's imports.
    pub imports: Vec<String>,
    /// The names of the component's exports.
    pub exports: Vec<String>,
    /// The manifest of the component's author.
    pub manifest: Option<Manifest>,
    /// The contracts that the component describes: those that it serves, and what it expects of those that it calls. The
    /// interfaces that it exports, and those that it imports and Weir does not have, are among them, described by their
    /// types.
    pub contracts: Vec<Document>,
    /// These interfaces, with what speaks against those that are not described.
    #[serde(skip)]
    interfaces: Vec<DescribedInterface>,
    /// Whether the types of these interfaces could be read.
    #[serde(skip)]
    has_types: bool,
    #[serde(skip)]
    uses: Uses,
}

/// Inspects a component.
///
/// # Errors
///
/// Fails if the file cannot be read, is not a component, is damaged or holds too much. Also fails if its manifest or
/// its contracts are invalid. A missing manifest is no error.
pub fn inspect(path: &Path) -> Result<Inspection, InspectError> {
    let (bytes, hash) = program::read(path)?;
    Inspection::of(path, &bytes, hash)
}

/// Reads what is asked for of the manifest in a component, if it has one, or returns what is wrong with it. What else is
/// wrong with the component shows when it is compiled.
pub(crate) fn manifest_in<M>(component: &[u8], read: ReadManifest<M>) -> Result<Option<M>, String> {
    let (mut depth, mut manifest) = (0_usize, None);
    for payload in Parser::new(0).parse_all(component) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::CustomSection(section)) if section.name() == MANIFEST_SECTION => {
                manifest = Some(read_manifest(section.data(), manifest.is_some(), read)?);
            }
            Ok(_) => {}
            Err(error) => return Err(harmless(error, 512)),
        }
        if depth > MAX_DEPTH {
            return Err(format!("there are more than {MAX_DEPTH} modules within each other"));
        }
    }
    Ok(manifest)
}

type ReadManifest<M> = fn(&[u8]) -> Result<M, String>;

/// Reads the section, of which there may be no other one.
fn read_manifest<M>(section: &[u8], is_second: bool, read: ReadManifest<M>) -> Result<M, String> {
    if section.len() > MAX_MANIFEST {
        return Err(format!("it has {} bytes, of at most {MAX_MANIFEST}", section.len()));
    }
    if is_second {
        return Err("there is a second one".to_owned());
    }
    read(section).map_err(|message| harmless(&message, 512))
}

/// Inspects a component in memory, as [`inspect`] does one in a file.
///
/// # Errors
///
/// The errors of [`inspect`] that are not about the file.
pub fn inspect_bytes(component: &[u8]) -> Result<Inspection, InspectError> {
    let hash = ArtifactHash::from_bytes(Sha256::digest(component).into());
    Inspection::of(Path::new("component"), component, hash)
}

impl Inspection {
    pub(crate) fn of(path: &Path, bytes: &[u8], hash: ArtifactHash) -> Result<Self, InspectError> {
        let mut found = Self {
            path: path.to_owned(),
            bytes: bytes.len() as u64,
            sha256: hash,
            imports: Vec::new(),
            exports: Vec::new(),
            manifest: None,
            contracts: Vec::new(),
            interfaces: Vec::new(),
            has_types: false,
            uses: Uses::default(),
        };
        found.read(bytes)?;
        Ok(found)
    }

    /// Returns what speaks against the component as an extension, judged by its imports, its exports and whether it has
    /// a manifest.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes: Vec<_> = self.newer_wasi().into_iter().collect();
        let is_called = self.serves_http() || self.exports_functions();
        if notes.is_empty() && !is_called && !begins(&self.exports, RUN) {
            notes.push(
                "it exports neither `wasi:cli/run` nor `wasi:http/incoming-handler` of WASI 0.2, so it cannot be run"
                    .to_owned(),
            );
        }
        if !is_called && !self.imports.iter().any(|name| name.starts_with("weir:iec/")) {
            notes.push("it imports nothing of `weir:iec`, so nobody can talk to it".to_owned());
        }
        if self.serves_http() && cfg!(not(feature = "http")) {
            notes.push(format!("it serves HTTP, which {}", weir_config::not_in_this_build("http")));
        }
        notes.extend(self.unoffered());
        notes.extend(self.undescribed());
        // An asynchronous component may have been told by its names.
        notes.extend(self.uses.misfit(Features::NONE).filter(|note| !notes.contains(note)));
        if self.manifest.is_none() && !is_called {
            notes.push("it has no manifest: ask its author what it serves and needs".to_owned());
        }
        notes
    }

    /// Returns why exported interfaces with functions have no description.
    #[must_use]
    pub fn undescribed(&self) -> Vec<String> {
        let why = |DescribedInterface { name, unmapped, document, .. }: &_| match (unmapped, document) {
            (Some(why), _) => Some(format!("the functions of `{name}` cannot be called: {why}")),
            (None, None) => Some(format!("`{name}` is too large to be described")),
            (None, Some(_)) => None,
        };
        self.exported().filter_map(why).collect()
    }

    /// Whether it is an HTTP server: it exports `wasi:http/incoming-handler`.
    #[must_use]
    pub fn serves_http(&self) -> bool {
        begins(&self.exports, HANDLER)
    }

    /// Whether it exports functions that can be operations, and is no program that runs by itself.
    #[must_use]
    pub fn exports_functions(&self) -> bool {
        !begins(&self.exports, RUN) && self.exported().next().is_some()
    }

    /// The interfaces of its own that it exports.
    fn exported(&self) -> impl Iterator<Item = &DescribedInterface> {
        self.interfaces.iter().filter(|it| it.role == Role::Provider)
    }

    /// What it describes of a contract that this extension serves, under the contract's name.
    #[must_use]
    pub fn served_as(&self, extension: &ExtensionConfig, contract: &ContractName) -> Option<Document> {
        let own = |document: &&Document| document.role == Role::Provider && document.contract == *contract;
        match extension.exports.get(contract) {
            Some(export) => Document::of_export(&self.contracts, export.as_str(), contract),
            None => self.contracts.iter().find(own).cloned(),
        }
    }

    /// What it expects of the contracts that this extension calls, under their names.
    pub fn expected_by(&self, extension: &ExtensionConfig) -> impl Iterator<Item = Document> {
        let callers = self.contracts.iter().filter(|document| document.role == Role::Caller);
        callers.filter_map(|document| match &document.export {
            None => Some(document.clone()),
            Some(import) => {
                let contract = extension.imports.get(&**import)?;
                let mut document = Document { contract: contract.clone(), ..document.clone() };
                if extension.names_in_snake_case(import) {
                    document.fields_in_snake_case();
                }
                Some(document)
            }
        })
    }

    /// Why it cannot run as this extension, if that shows before compiling.
    #[must_use]
    pub fn misfit(&self, extension: &ExtensionConfig) -> Option<String> {
        self.misfit_of(&LoadRequest::from(extension).fit(GuestKind::Extension))
    }

    /// Why it cannot run as a hook with these limits, if that shows before compiling.
    #[must_use]
    pub fn misfit_of_hook(&self, limits: &Limits) -> Option<String> {
        self.misfit_of(&Fit::of_command(limits.features))
    }

    pub(crate) fn misfit_of(&self, fit: &Fit) -> Option<String> {
        let imports = |name: &str| begins(&self.imports, name);
        let of_worlds = || match fit.world {
            None if self.serves_http() || self.exported().next().is_some() => None,
            world => fit::misfit(fit.kind, world.unwrap_or(World::Program), imports, |name| {
                begins(&self.exports, name)
            }),
        };
        let known = || self.exported().map(|it| (it.name.clone(), it.unmapped.clone()));
        let refused = || self.imports.iter().find_map(|import| refused(fit.kind, import));
        let of_names = self.newer_wasi().or_else(refused).or_else(|| self.uses.misfit(fit.features));
        // What cannot be read is told by the compiler.
        if of_names.is_some() || !self.has_types {
            return of_names;
        }
        let unoffered = self.unoffered_but(fit).next();
        unoffered
            .or_else(of_worlds)
            .or_else(|| exports::misfit(&fit.exports, known))
            .or_else(|| fit::deaf(fit.world?, fit.has_messages, imports("weir:iec/")))
    }

    /// Why it runs in no way, if it imports something of WASI 0.3, or has that in place of what is called in WASI 0.2.
    fn newer_wasi(&self) -> Option<String> {
        let is_callable =
            begins(&self.exports, RUN) || begins(&self.exports, HANDLER) || self.exported().next().is_some();
        let exports = self.exports.iter().filter(|_| !is_callable);
        let mut names = self.imports.iter().chain(exports);
        names.any(|name| is_of_wasi_0_3(name)).then(|| OF_WASI_0_3.to_owned())
    }

    /// Returns a text for each import that this build of Weir does not offer, as in ``it imports `a:b/c@1.0.0`, which
    /// Weir does not offer``.
    #[must_use]
    pub fn unoffered(&self) -> Vec<String> {
        self.unoffered_but(&Fit { answered: Some(BTreeSet::new()), ..Fit::ANY }).collect()
    }

    fn unoffered_but(&self, fit: &Fit) -> impl Iterator<Item = String> {
        let unknown = self.imports.iter().filter(|name| !is_offered(name));
        unknown.filter_map(move |name| {
            let imported = |it: &&DescribedInterface| it.role == Role::Caller && it.name == *name;
            let interface = self.interfaces.iter().find(imported);
            let why = match interface {
                // Types need nothing from the host.
                Some(DescribedInterface { has_functions: false, .. }) => return None,
                Some(_) if fit.kind == GuestKind::Command => None,
                Some(DescribedInterface { unmapped: Some(why), .. }) => Some(&**why),
                Some(_) if fit.answers(name) => return None,
                Some(_) => return Some(not_answered(name)),
                None => None,
            };
            Some(not_offered(name, why))
        })
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), InspectError> {
        let mut depth = 0_usize;
        let mut contracts = ContractSections::default();
        for payload in Parser::new(0).parse_all(bytes) {
            match payload.map_err(|error| self.damaged(&error))? {
                Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => {
                    depth += 1;
                    if depth > MAX_DEPTH {
                        return Err(self.too_many("modules within each other", MAX_DEPTH));
                    }
                }
                Payload::End(_) => depth = depth.saturating_sub(1),
                Payload::CustomSection(section) if section.name() == MANIFEST_SECTION => {
                    self.add_manifest(section.data())?;
                }
                Payload::CustomSection(section) => contracts.add(section.name(), section.data()),
                Payload::ComponentImportSection(section) if depth == 0 => {
                    for import in section {
                        let import = import.map_err(|error| self.damaged(&error))?;
                        // An imported type is left out, because it needs nothing from the host.
                        if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                            self.imports.push(harmless(import.name.name, MAX_NAME));
                        }
                        if self.imports.len() > MAX_NAMES {
                            return Err(self.too_many("imports", MAX_NAMES));
                        }
                    }
                }
                Payload::ComponentExportSection(section) if depth == 0 => {
                    for export in section {
                        let name = export.map_err(|error| self.damaged(&error))?.name.name;
                        self.exports.push(harmless(name, MAX_NAME));
                        if self.exports.len() > MAX_NAMES {
                            return Err(self.too_many("exports", MAX_NAMES));
                        }
                    }
                }
                _ => {}
            }
        }
        self.contracts = contracts.documents().map_err(|message| {
            let path = self.path.clone();
            InspectError::Contracts { path, message }
        })?;
        let foreign: Vec<_> = self.imports.iter().filter(|name| is_foreign(name)).cloned().collect();
        let interfaces = exports::interfaces(bytes, &self.exports, &foreign);
        self.has_types = interfaces.is_some();
        self.uses = Uses::of(bytes);
        self.interfaces = interfaces.unwrap_or_default();
        self.contracts.extend(self.interfaces.iter().filter_map(|it| it.document.clone()));
        Ok(())
    }

    fn add_manifest(&mut self, section: &[u8]) -> Result<(), InspectError> {
        let manifest = read_manifest(section, self.manifest.is_some(), Manifest::parse)
            .map_err(|message| self.bad_manifest(message))?;
        self.manifest = Some(manifest);
        Ok(())
    }

    fn damaged(&self, error: &wasmparser::BinaryReaderError) -> InspectError {
        InspectError::Damaged { path: self.path.clone(), message: harmless(error, 512) }
    }

    fn too_many(&self, what: &'static str, most: usize) -> InspectError {
        InspectError::TooMany { path: self.path.clone(), what, most }
    }

    fn bad_manifest(&self, message: String) -> InspectError {
        InspectError::Manifest { path: self.path.clone(), message }
    }
}

fn begins(names: &[String], begin: &str) -> bool {
    names.iter().any(|name| name.starts_with(begin))
}

fn shown<S: Serializer>(hash: &ArtifactHash, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(hash)
}

/// The sections `weir:contracts` of one component and of all modules in it. They are hostile, so their size is checked
/// before anything is parsed.
#[derive(Debug, Default)]
pub(crate) struct ContractSections {
    /// Documents, one a line.
    lines: Vec<u8>,
    /// Bytes of all sections, including those that were left out for their size.
    bytes: usize,
}

impl ContractSections {
    /// Adds a custom section, if it describes contracts.
    pub(crate) fn add(&mut self, name: &str, section: &[u8]) {
        if name != SECTION {
            return;
        }
        self.bytes = self.bytes.saturating_add(section.len());
        if self.bytes <= MAX_SECTION {
            self.lines.extend(section);
            if self.lines.last().is_some_and(|last| *last != b'\n') {
                self.lines.push(b'\n');
            }
        }
    }

    /// Returns the contracts that the sections describe, or what is wrong with the sections.
    pub(crate) fn documents(&self) -> Result<Vec<Document>, String> {
        if self.bytes > MAX_SECTION {
            return Err(format!("they take {} bytes, of at most {MAX_SECTION}", self.bytes));
        }
        Document::parse_section(&self.lines).map_err(|error| harmless(&error, 512))
    }

    /// Returns the documents, one a line, as Main keeps them. Those of exported interfaces follow, if there is room for all.
    #[cfg(feature = "compiler")]
    pub(crate) fn text(&self, of_exports: &str) -> Result<String, String> {
        let text: String = self.documents()?.iter().map(|document| document.line() + "\n").collect();
        // Checked again, because escapes can make the text longer than Main would parse.
        let kept = |text: String| {
            let mut kept = Self::default();
            kept.add(SECTION, text.as_bytes());
            kept.documents().map(|_| text)
        };
        kept(text.clone() + of_exports).or_else(|_| kept(text))
    }
}
