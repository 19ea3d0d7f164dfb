//! Programs outside Main, as peers: each runs in a session under a name, with the grants and limits of that name.
//! `docs/internals/outside-main.md` tells the life of a session.

mod registry;
mod session;

use std::{fmt, sync::Arc};

use serde::Serialize;
use weir_bus::Error;
use weir_config::ConfigErrors;
use weir_names::{ContractName, PeerName};

use self::registry::Source;
pub use self::session::{PeerMessage, PeerRequest, Session, Wanted};
pub(crate) use self::{
    registry::{Live, Registry},
    session::TracedGuard,
};
pub use weir_config::{PeerConfig, PeerSessionLimits, TokenHash};
pub use weir_reports::{PeerCounts, PeerStatus, SessionId, SessionStatus};

/// Begins, lists and ends the sessions of programs outside Main. Cheap to clone; works on any thread.
#[derive(Clone, Debug)]
pub struct Peers(pub(crate) Arc<Registry>);

impl Peers {
    /// Begins a session for a program that proves its name.
    ///
    /// # Errors
    ///
    /// [`PeerError::Denied`] for an unknown name or a wrong proof, [`PeerError::TooMany`], [`PeerError::Stopping`].
    pub fn admit(&self, name: &str, proof: Proof<'_>) -> Result<Session, PeerError> {
        self.0.clone().admit(name, Some(proof))
    }

    /// Begins a session under the first of these names that the proof is for.
    ///
    /// # Errors
    ///
    /// The errors of [`admit`](Self::admit).
    pub fn admit_one(&self, names: &[PeerName], proof: Proof<'_>) -> Result<Session, PeerError> {
        self.0.clone().admit_one(names, proof)
    }

    /// Begins a session for a program that the embedding program vouches for.
    ///
    /// # Errors
    ///
    /// The errors of [`admit`](Self::admit).
    pub fn open(&self, name: &str) -> Result<Session, PeerError> {
        self.0.clone().admit(name, None)
    }

    /// Sets the grants and limits of a name that the operator did not configure, and begins a session under it.
    /// Other sessions under it have the new grants, too.
    ///
    /// # Errors
    ///
    /// [`PeerError::Config`], [`PeerError::Configured`], [`PeerError::OfMain`], [`PeerError::Owned`],
    /// [`PeerError::Bus`] for more than 4096 names, and the errors of [`open`](Self::open).
    pub fn open_with(&self, config: PeerConfig) -> Result<Session, PeerError> {
        self.0.clone().open_from(Source::Program, config)
    }

    /// Every name that the operator has configured or that has sessions, in alphabetical order.
    #[must_use]
    pub fn list(&self) -> Vec<PeerStatus> {
        self.0.list()
    }

    /// Ends a session; false if there is none with this number, or it belongs to a part of Main.
    #[must_use]
    pub fn end(&self, session: SessionId) -> bool {
        self.0.end(session, false)
    }

    /// Ends a session, also of a part of Main: for tests of what the part does then.
    #[doc(hidden)]
    #[must_use]
    pub fn end_any(&self, session: SessionId) -> bool {
        self.0.end(session, true)
    }

    /// Begins a session of a part of Main as [`open_with`](Self::open_with) does. The operator cannot end it, and no
    /// other program can change its grants.
    ///
    /// # Errors
    ///
    /// The errors of [`open_with`](Self::open_with).
    pub fn open_of_main(&self, config: PeerConfig) -> Result<Session, PeerError> {
        self.0.clone().open_from(Source::Main, config)
    }
}

/// How a program proves that it may use a name.
#[derive(Clone, Copy)]
pub enum Proof<'p> {
    /// A token, of which the configuration has the hash.
    Token(&'p str),
    /// The user that the kernel names as the other end of a Unix socket.
    Uid(u32),
}

/// Leaves out the token, which is secret.
impl fmt::Display for Proof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Token(_) => f.write_str("token"),
            Self::Uid(uid) => write!(f, "uid {uid}"),
        }
    }
}

/// Leaves out the token, which is secret.
impl fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proof({self})")
    }
}

/// Why a session does not begin.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PeerError {
    /// No peer has the name, or the proof is wrong. A stranger does not learn which.
    #[error("no peer has this name and this proof")]
    Denied,
    /// The name has as many sessions as it may.
    #[error("`{name}` has {allowed} sessions, which is its limit `limits.sessions`")]
    TooMany {
        /// The name.
        name: PeerName,
        /// The limit.
        allowed: u32,
    },
    /// The operator's file has this name: the program cannot set its grants.
    #[error("`{0}` is configured by the operator")]
    Configured(PeerName),
    /// A part of Main has this name.
    #[error("`{0}` is a part of Main")]
    OfMain(PeerName),
    /// The program's grants or limits are wrong.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// Another peer owns a contract that this one would serve.
    #[error("`{contract}` belongs to `{owner}`")]
    Owned {
        /// The contract.
        contract: ContractName,
        /// Its owner.
        owner: String,
    },
    /// The bus refuses the name.
    #[error(transparent)]
    Bus(#[from] Error),
    /// Main ends.
    #[error("main is shutting down")]
    Stopping,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SessionEnd {
    /// Its holder dropped it, or its connection is gone.
    Left,
    /// The operator took back its name, its proof, or a contract that it serves.
    Revoked,
    /// The operator ended it.
    Ended,
    /// Main ends.
    Stopping,
}

/// The reason, as the program hears it.
impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Left => "its holder ended the session",
            Self::Revoked => "the operator took back its name, its proof or a contract that it serves",
            Self::Ended => "the operator ended the session",
            Self::Stopping => "main ends",
        })
    }
}
