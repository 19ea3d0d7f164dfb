//! The operator's configuration: the TOML file and its checks, and the same from Rust.
//!
//! Owns the keys, ranges, defaults and their messages. Knows nothing of wasmtime or the bus, and does not check that
//! named files, contracts and addresses exist.

mod check;
mod classes;
mod component;
mod component_lock;
mod config;
mod differences;
mod environment;
mod error;
mod exports;
mod extension;
mod features;
mod file_lock;
mod grants;
mod json_schema;
mod key;
mod kind;
mod limits;
mod loader;
mod main_config;
mod order;
mod peer;
mod queue;
mod read;
mod restart;
mod revoked;
mod schema;
mod secret;
mod section;
mod sections;
mod serves_http;
mod shape;
mod stanza;
#[cfg(test)]
mod tests;
mod update;

pub use self::shape::bytes;
pub use component::{ArtifactHash, ArtifactTextError, ComponentSource, TrustedKey};
pub use component_lock::{ComponentLock, ComponentLockError, ComponentLockFault, LockedExtension};
pub use config::{Config, ConfigFile};
pub use differences::{Difference, Effect, TableChange, TableDifference};
pub use error::{ConfigError, ConfigErrors};
pub use extension::{ExtensionConfig, HOOKS_CONTRACT, STORE_CONTRACT, Traces, Validate};
pub use features::{Feature, Features};
pub use file_lock::FileLock;
pub use grants::{
    AddressGrant, AddressRange, DirGrant, DirMode, GrantError, Grants, GuestPath, HttpGrant, HttpMethod,
    HttpTarget, NetAddress, NetGrant, StoreGrant,
};
pub use limits::{
    FixedLimits, INTERPRETED, InHooks, LIMIT_KEYS, LimitKey, LimitSource, Limits, MeasuredUse, TIMEOUT,
    source,
};
pub use loader::{Loader, not_in_this_build};
pub use main_config::{AddressSpace, MainConfig};
pub use peer::{PeerConfig, PeerSessionLimits, TokenHash, TokenHashError};
pub use queue::{QueueConfig, SubscribeGrant, TopicConfig};
pub use restart::{ReadyWhen, ReloadMode, RestartConfig, RestartPolicy};
pub use revoked::{Revoked, RevokedError};
pub use secret::{CredentialName, CredentialNameError, SecretError, SecretSource};
pub use serves_http::{MountPath, ServesHttp};
pub use shape::Shape;
pub use stanza::Stanza;
pub use update::{ErrorRate, Factor, FactorError, UpdateConfig};
pub use weir_names::{CpuShare, CpuShareError, InterfaceName};
pub use weir_reports::{LimitHit, LimitName, LimitUnit, LimitValue};

/// For crates that add a section to the operator's file: see [`ConfigSection`](extend::ConfigSection).
pub mod extend {
    pub use crate::{
        check::{Granted, Judged, check_grants, doubles, doubles_in, is_inside, shown},
        differences::Facts,
        error::{ERRORS_MAX, Location, listed, quote, shorten},
        grants::{parse_host, split_port},
        key::{Contradiction, Key, Places, Table, facts, faults},
        schema::{ConfigSection, MemoryUse, ProtectedDir, Settling},
        section::{KnownKey, Located, Section, nearest, suggestion},
        sections::socket_in,
    };

    /// Kinds of values, for [`keys!`](crate::keys).
    pub mod kind {
        pub use crate::{
            kind::{
                Kind, Words, flag, items, number, of_word, optional_table, path, socket, some_texts, table,
                tables, text, texts, texts_and_tables, word,
            },
            limits::{Number, class, limits_of_hooks},
        };
    }
}
