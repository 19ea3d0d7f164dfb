//! The error of a component that cannot be run as an extension, and its causes.

use std::{
    fmt, io,
    path::{Path, PathBuf},
    time::Duration,
};

use weir_config::{ArtifactHash, LimitHit, LimitKey, TrustedKey, bytes};
use weir_metrics::nanoseconds;
use weir_names::ExtensionId;

use super::{admission::RulesError, artifact::FORMAT, signature::SignatureError};
use crate::{engine::CompileTarget, openings::may_come};

/// A component that cannot be run as an extension, and why.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadError {
    /// Which component it is.
    pub origin: ComponentOrigin,
    /// The component's hash, if the component was read.
    pub hash: Option<ArtifactHash>,
    /// What is wrong with the component.
    pub fault: LoadFault,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.origin, self.fault)
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.fault)
    }
}

/// Which component was to be loaded, as the start of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ComponentOrigin {
    /// The component in this file.
    File(PathBuf),
    /// The component that the embedding program gave in memory for the extension with this id.
    Memory(String),
}

impl From<&Path> for ComponentOrigin {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl fmt::Display for ComponentOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "`{}`", path.display()),
            Self::Memory(extension) => write!(f, "the component given in memory for `{extension}`"),
        }
    }
}

/// What is wrong with a component, as the rest of a sentence that begins with its origin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadFault {
    /// The file cannot be opened or read, or not in time.
    #[error("cannot be read")]
    Read(#[source] io::Error),
    /// The path names a directory, symlink, socket or device, or a FIFO.
    #[error("is not a regular file")]
    NotAFile,
    /// The path does not lead below the plugin directory, or has a part such as `..`.
    #[error("is not inside the plugin directory")]
    Outside,
    /// A part of the path below the plugin directory is not a directory.
    #[error("is reached through `{}`, which is a symlink or no directory", .0.display())]
    Detour(PathBuf),
    /// The file is larger than the limit for reading.
    #[error("has {bytes} bytes, and `file-size` allows {}: make sure of the file before you raise that limit", self::bytes(*.allowed))]
    TooLarge {
        /// The file's size.
        bytes: u64,
        /// What the limit allows.
        allowed: u64,
    },
    /// The content was written to while it was read.
    #[error("changed while it was read: try again when it is whole")]
    Changed,
    /// The component has another hash than the pinned one.
    #[error("has the SHA-256 `{0}`, which is not the one that `sha256` pins")]
    Pinned(ArtifactHash),
    /// The component has no signature, which it must have in this file.
    #[error(
        "has no signature, which `main.require-signature` asks for: sign it with `weir sign`, and put `{}` beside it",
        .0.display()
    )]
    Unsigned(PathBuf),
    /// The component is in memory and has no signature, which it must have.
    #[error(
        "has no signature, which `main.require-signature` asks for: sign it with `weir sign`, and set \
         `ExtensionConfig::signature`"
    )]
    UnsignedInMemory,
    /// The file with the signature cannot be read.
    #[error("has a signature in `{}` that {reason}", path.display())]
    SignatureFile {
        /// The file.
        path: PathBuf,
        /// Why, as the rest of a sentence.
        reason: String,
    },
    /// The signature does not count.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// The component is signed as the first id, and is to be signed as the second.
    #[error(
        "is signed as `{}`, and the extension runs what is signed as `{}`: set `signed-as = \"{}\"` for the extension if \
         it is the right component",
        .0[0], .0[1], .0[0]
    )]
    OtherId(Box<[ExtensionId; 2]>),
    /// The component is signed under the first id and version, and has the second ones in its manifest.
    #[error(
        "is signed as `{}` {}, and its own manifest says `{}` {}: sign it again with `weir sign`",
        .0[0].0, .0[0].1, .0[1].0, .0[1].1
    )]
    OtherName(Box<[(ExtensionId, String); 2]>),
    /// The operator has revoked the component or artifact with this hash.
    #[error("is revoked: `main.revoked` lists its SHA-256, `{0}`, so use another version of it")]
    RevokedComponent(ArtifactHash),
    /// The operator has revoked the key that signed.
    #[error("is signed with `{0}`, which `main.revoked` lists: sign it again with a key that is not revoked")]
    RevokedKey(TrustedKey),
    /// The lock in this file does not list the component, which has this hash.
    #[error(
        "has the SHA-256 `{}`, which `{}` does not list for it: make the lock again with `weir lock` if the file is \
         right",
        .0.1, .0.0.display()
    )]
    NotLocked(Box<(PathBuf, ArtifactHash)>),
    /// The component is older than a proven version of the extension.
    #[error("is not run: {0}")]
    Older(String),
    /// It is not known what may be loaded.
    #[error("is not loaded: {0}")]
    Rules(Box<RulesError>),
    /// The component ends within a section, or a section's length is damaged.
    #[error("is cut off or damaged: its sections do not end where it does")]
    Truncated,
    /// The content is not a WebAssembly component.
    #[error("is not a WebAssembly component")]
    NotWasm,
    /// The content is a core module.
    #[error(
        "is a core module, not a component: build it for `wasm32-wasip2`, or make a component of it with `weir build \
         --adapt FILE`"
    )]
    CoreModule,
    /// The content is machine code without a signature.
    #[error("is compiled code without a signature: `weir compile` signs what it compiles")]
    NotSigned,
    /// The content is an artifact with a part that is missing or damaged.
    #[error("is an artifact that was cut off")]
    DamagedArtifact,
    /// The content is an artifact in another format.
    #[error(
        "is an artifact of format {0}, and this version of Weir runs format {FORMAT}: compile the component again \
         with `weir compile` of this version"
    )]
    OtherFormat(u8),
    /// The artifact is compiled for the first of these targets, and Main needs code for the second.
    #[error(
        "is compiled for {}, and this Main needs {}: `weir compile --target {} --address-space {}` makes it",
        .0[0], .0[1], .0[1].triple(), .0[1].address_class().name()
    )]
    OtherTarget(Box<[CompileTarget; 2]>),
    /// The artifact is signed with a key that is not trusted.
    #[error("is signed with `{0}`, which `main.trusted-keys` does not list")]
    Untrusted(TrustedKey),
    /// The artifact differs from what was signed.
    #[error("does not match its signature")]
    Forged,
    /// The code is for another processor, version or settings, or cannot be made executable.
    #[error("has compiled code that this Main cannot run: {0}")]
    Unusable(String),
    /// The content is a component, and nothing here compiles.
    #[error("must be compiled, and this Main runs only artifacts: `weir compile` makes them")]
    NotCompiled,
    /// The content is no valid component, or uses a feature that is turned off.
    #[error("does not compile: {0}")]
    Compile(String),
    /// The sections `weir:contracts` are malformed or too large.
    #[error("describes contracts that are not valid: {0}")]
    Contracts(String),
    /// The section `weir:manifest` cannot be read, is too large, or there are two.
    #[error("has a manifest that is not valid: {0}")]
    Manifest(String),
    /// Compiling takes more memory than allowed.
    #[error("takes more than the {} of `compile-memory` to compile: make sure of the file before you raise that limit", bytes(*.0))]
    CompileMemory(u64),
    /// Compiling takes more time than allowed.
    #[error(
        "takes longer than the {} of `compile-timeout` to compile: make sure of the file before you raise that limit",
        humantime::format_duration(*.0)
    )]
    CompileTimeout(Duration),
    /// The compiled code is larger than allowed.
    #[error("takes {bytes} bytes when it is compiled, and `code-size` allows {}: make sure of the file before you raise that limit", self::bytes(*.allowed))]
    CodeTooLarge {
        /// Bytes of compiled code and its data: see [`Limits::code_size`](weir_config::Limits::code_size).
        bytes: u64,
        /// What the limit allows.
        allowed: u64,
    },
    /// The process that compiles did what it may not, and was ended by the kernel.
    #[error(
        "made the process that compiles it do what no compiler does, and the kernel ended that: take the file for an \
         attack"
    )]
    Attack,
    /// The process or thread that compiles could not be started, or the process died or gave an invalid answer.
    #[error("was not compiled: {0}")]
    Compiler(String),
    /// No engine can be made, as on a machine without room for a stack of that size.
    #[error("has no engine to run in: {0}")]
    Engine(String),
    /// The component has an import that is not offered, or does not export `wasi:cli/run`.
    #[error("does not fit the world `{world}`: {reason}")]
    World {
        /// The world that the component must fit.
        world: &'static str,
        /// The misfit.
        reason: String,
    },
    /// Loading was cut off, because Main ends or by a fault in Main.
    #[error("was not loaded: loading was cut off")]
    CutOff,
}

impl LoadFault {
    /// Makes the error of the component that has this fault.
    pub fn of(self, origin: ComponentOrigin, hash: Option<ArtifactHash>) -> LoadError {
        LoadError { origin, hash, fault: self }
    }

    /// Returns the fault of a file that was not read in time.
    pub(super) fn late(time: Duration) -> Self {
        Self::hanging(format!("not within {}", humantime::format_duration(time)))
    }

    /// Returns the fault of a file on a file system that hangs.
    pub(super) fn hanging(reason: String) -> Self {
        Self::Read(io::Error::new(io::ErrorKind::TimedOut, reason))
    }

    /// Whether the file cannot be read for a reason that may pass without a change of configuration, as when its file
    /// system hangs or is not there yet.
    pub fn hinders(&self) -> bool {
        matches!(self, Self::Read(error) if may_come(error))
    }

    /// Whether the file system hangs.
    #[cfg(test)]
    pub(super) fn hangs(&self) -> bool {
        matches!(self, Self::Read(error) if error.kind() == io::ErrorKind::TimedOut)
    }

    /// Whether the next try with the same file could succeed.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            Self::Read(_)
                | Self::Changed
                | Self::SignatureFile { .. }
                | Self::Compiler(_)
                | Self::Engine(_)
                | Self::CutOff
        )
    }

    /// Returns the limit that the component exceeds, if that is its fault.
    pub fn limit(&self) -> Option<LimitHit> {
        let hit = |key: LimitKey, used, allowed| Some(LimitHit::new(key, used, allowed));
        match *self {
            Self::TooLarge { bytes, allowed } => hit(LimitKey::FILE_SIZE, bytes, allowed),
            Self::CodeTooLarge { bytes, allowed } => hit(LimitKey::CODE_SIZE, bytes, allowed),
            Self::CompileMemory(allowed) => hit(LimitKey::COMPILE_MEMORY, allowed, allowed),
            Self::CompileTimeout(allowed) => {
                hit(LimitKey::COMPILE_TIMEOUT, nanoseconds(allowed), nanoseconds(allowed))
            }
            _ => None,
        }
    }
}
