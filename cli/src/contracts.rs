//! Documents of contracts: from components, from files, and from a running Main.

#[cfg(feature = "compiler")]
mod wit;

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use anyhow::Context;
use serde::Deserialize;
use weir_host::{
    names::ContractName,
    openrpc::{Document, Json, MAX_DOCUMENT, MAX_DOCUMENTS, Role},
};

use crate::{
    args::Target,
    client::{Client, Route},
};

/// The most bytes of a file of documents.
const MAX_FILE: u64 = (MAX_DOCUMENT * MAX_DOCUMENTS) as u64;

/// The document of a contract, and its provider.
#[derive(Debug)]
pub(crate) struct Described {
    /// The extension or peer that serves it. `None` for a document from a file.
    pub(crate) provider: Option<String>,
    pub(crate) document: Document,
}

/// Where documents come from.
#[derive(Debug)]
pub(crate) enum Source {
    /// A running Main, which is asked for the documents of this contract.
    Contract(ContractName),
    /// A component, a file of documents, or WIT.
    File(PathBuf),
}

impl Source {
    /// Reads a source: a text that names a contract stands for that contract, and any other text is the path of a file.
    pub(crate) fn of(text: &str) -> Self {
        match text.parse() {
            Ok(contract) => Self::Contract(contract),
            Err(_) => Self::File(text.into()),
        }
    }

    /// Loads the documents: at least one.
    pub(crate) async fn load(&self, target: &Target) -> anyhow::Result<Vec<Described>> {
        match self {
            Self::Contract(contract) => of_main(target, Some(contract.as_str())).await,
            Self::File(path) => {
                let documents = of_file(path)?.into_iter();
                Ok(documents.map(|document| Described { provider: None, document }).collect())
            }
        }
    }
}

/// Main's answer about contracts.
#[derive(Deserialize)]
struct Answer {
    contracts: Vec<Contract>,
}

#[derive(Deserialize)]
struct Contract {
    provider: String,
    document: Json,
}

/// Asks Main for the documents of this contract, at least one, or for those of all contracts that are served and
/// described.
pub(crate) async fn of_main(target: &Target, contract: Option<&str>) -> anyhow::Result<Vec<Described>> {
    let route = Route::all_or_one("contracts", contract)?;
    let Answer { contracts } = Client::connect(target).await?.get(&route).await?;
    let described = |Contract { provider, document }: Contract| {
        let document = Document::from_json(&document);
        let document = document.context("cannot read what Main describes; is it of another version?")?;
        Ok(Described { provider: Some(provider), document })
    };
    contracts.into_iter().map(described).collect()
}

/// Reads the documents in a component, a JSON file, or the WIT of a file or directory: at least one.
pub(crate) fn of_file(path: &Path) -> anyhow::Result<Vec<Document>> {
    let ends_with = |ending: &str| path.extension().is_some_and(|end| end == ending);
    let documents = match () {
        () if ends_with("json") => of_json(path, &path.to_string_lossy())?,
        #[cfg(feature = "compiler")]
        () if ends_with("wit") || path.is_dir() => {
            wit::of_wit(path).with_context(|| format!("`{}` is no WIT of contracts", path.display()))?
        }
        () => weir_host::component::inspect(path)?.contracts,
    };
    anyhow::ensure!(!documents.is_empty(), "`{}` describes no contract", path.display());
    Ok(documents)
}

/// Reads the documents of the contracts that a component or a JSON file serves: at least one.
pub(crate) fn served_by_file(path: &Path) -> anyhow::Result<Vec<Document>> {
    let mut documents = of_file(path)?;
    documents.retain(|document| document.role == Role::Provider);
    anyhow::ensure!(!documents.is_empty(), "`{}` describes no contract that it serves", path.display());
    Ok(documents)
}

/// Reads one document or a list of them from a JSON file. Errors name the file as `shown`.
pub(crate) fn of_json(path: &Path, shown: &str) -> anyhow::Result<Vec<Document>> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(MAX_FILE + 1).read_to_string(&mut text))
        .with_context(|| format!("cannot read `{shown}`"))?;
    anyhow::ensure!(text.len() as u64 <= MAX_FILE, "`{shown}` has over {MAX_FILE} bytes");
    let json = serde_json::from_str(&text).with_context(|| format!("`{shown}` is not JSON"))?;
    let documents = match json {
        Json::Array(documents) => {
            (0..).zip(&documents).map(|(index, document)| of_list(index, document)).collect()
        }
        document => Document::from_json(&document).map(|document| vec![document]).map_err(Into::into),
    };
    documents.with_context(|| format!("`{shown}` describes no contract"))
}

fn of_list(index: usize, document: &Json) -> anyhow::Result<Document> {
    Document::from_json(document).with_context(|| format!("document {index}"))
}
