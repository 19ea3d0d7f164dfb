//! What is configured of one extension.

use std::{collections::BTreeMap, path::PathBuf};

use super::{Grants, Limits};
use crate::names::{ContractName, ExtensionId, TopicPattern};

/// One configured extension: which component it is, what it may use, and what it may reach.
///
/// [`ExtensionConfig::new`] grants nothing; fill in what is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExtensionConfig {
    /// Its id.
    pub id: ExtensionId,
    /// The file of the component.
    pub path: PathBuf,
    /// What it may use.
    pub limits: Limits,
    /// Contracts that it owns and must serve. A contract has one owner.
    pub fulfills: Vec<ContractName>,
    /// Contracts that it may call and cannot do without: whoever owns them starts first.
    pub requires: Vec<ContractName>,
    /// Contracts that it may call and can do without.
    pub wants: Vec<ContractName>,
    /// Topics that it may publish under.
    pub publishes: Vec<TopicPattern>,
    /// Topics that it may subscribe to.
    pub subscribes: Vec<TopicPattern>,
    /// What it may reach beside channels.
    pub grants: Grants,
    /// What it reads through `wasi:config/store`.
    pub config: BTreeMap<String, String>,
    /// Whether it is started with Main.
    pub autostart: bool,
}

impl ExtensionConfig {
    /// An extension in the class `medium` that starts with Main and may reach nothing.
    #[must_use]
    pub fn new(id: ExtensionId, path: impl Into<PathBuf>) -> Self {
        Self {
            id,
            path: path.into(),
            limits: Limits::default(),
            fulfills: Vec::new(),
            requires: Vec::new(),
            wants: Vec::new(),
            publishes: Vec::new(),
            subscribes: Vec::new(),
            grants: Grants::default(),
            config: BTreeMap::new(),
            autostart: true,
        }
    }
}
