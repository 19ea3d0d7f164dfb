//! Main's answers, as far as the view shows them. Fields of a newer Main are ignored, those of an older one are
//! missing: only names are needed.

use std::{collections::BTreeMap, time::Instant};

use serde::{Deserialize, de::DeserializeOwned};

use crate::source::{Answers, Fault};

/// One look at Main.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) pid: Option<u64>,
    pub(crate) extensions: Vec<Extension>,
    pub(crate) peers: Vec<Peer>,
    /// None: Main does not count them.
    pub(crate) operations: Option<Operations>,
    /// The extension that the log is of.
    pub(crate) log_of: Option<String>,
    /// Oldest first.
    pub(crate) log: Vec<LogLine>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Extension {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) state: String,
    pub(crate) reason: Option<String>,
    #[serde(default)]
    pub(crate) since: String,
    pub(crate) compiling: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    pub(crate) restarts: u64,
    #[serde(default)]
    pub(crate) cpu_seconds: f64,
    /// Of the last second.
    pub(crate) cpu_share: Option<f64>,
    #[serde(default)]
    pub(crate) memory: u64,
    #[serde(default)]
    pub(crate) memory_limit: u64,
    #[serde(default)]
    pub(crate) inbox_messages: u64,
    #[serde(default)]
    pub(crate) received: u64,
    #[serde(default)]
    pub(crate) sent: u64,
    #[serde(default)]
    pub(crate) shed: u64,
    #[serde(default)]
    pub(crate) late: u64,
    /// None: its requests are not checked.
    pub(crate) refused: Option<u64>,
    #[serde(default)]
    pub(crate) class: String,
    #[serde(default)]
    pub(crate) fulfills: Vec<String>,
    /// Oldest first.
    #[serde(default)]
    pub(crate) failures: Vec<Failure>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Failure {
    #[serde(default)]
    pub(crate) time: String,
    #[serde(default)]
    pub(crate) cause: String,
    #[serde(default)]
    pub(crate) then: String,
    pub(crate) next_restart: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) sessions: Vec<Session>,
    #[serde(default)]
    pub(crate) fulfills: Vec<String>,
    #[serde(default)]
    pub(crate) sent: u64,
    #[serde(default)]
    pub(crate) received: u64,
    #[serde(default)]
    pub(crate) shed: u64,
    #[serde(default)]
    pub(crate) late: u64,
    #[serde(default)]
    pub(crate) denied: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Session {
    #[serde(default)]
    pub(crate) since: String,
    #[serde(default)]
    pub(crate) waiting: u64,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Operations {
    /// The upper bound of each bucket but the last, in seconds.
    pub(crate) bounds: Vec<f64>,
    pub(crate) operations: Vec<Operation>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Operation {
    pub(crate) provider: String,
    #[serde(default)]
    pub(crate) contract: String,
    #[serde(default)]
    pub(crate) operation: String,
    pub(crate) durations: Durations,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Durations {
    pub(crate) buckets: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct LogLine {
    #[serde(default)]
    pub(crate) time: String,
    #[serde(default)]
    pub(crate) level: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) fields: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct Extensions {
    extensions: Vec<Extension>,
}

#[derive(Deserialize)]
struct Peers {
    peers: Vec<Peer>,
}

impl Look {
    /// `log_of` is the extension whose log was asked for.
    pub(crate) fn read(answers: &Answers, log_of: Option<String>) -> Result<Self, Fault> {
        let Extensions { extensions } = json(&answers.extensions)?;
        let peers = answers.peers.as_deref().map(json::<Peers>).transpose()?;
        Ok(Self {
            at: answers.at,
            pid: answers.pid,
            extensions,
            peers: peers.map(|all| all.peers).unwrap_or_default(),
            operations: answers.operations.as_deref().map(json).transpose()?,
            log_of,
            log: log(&answers.log),
        })
    }
}

fn json<T: DeserializeOwned>(text: &[u8]) -> Result<T, Fault> {
    serde_json::from_slice(text)
        .map_err(|_| Fault("cannot read the answer of Main; is it of another version?".to_owned()))
}

/// Leaves out what is no line: a note of a newer Main.
fn log(text: &[u8]) -> Vec<LogLine> {
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

impl Operations {
    /// The buckets of each provider's operations, by contract and operation.
    pub(crate) fn by_provider(&self) -> BTreeMap<&str, Counts> {
        let mut all = BTreeMap::<_, Counts>::new();
        for Operation { provider, contract, operation, durations } in &self.operations {
            let key = (contract.clone(), operation.clone());
            all.entry(provider.as_str()).or_default().insert(key, durations.buckets.clone());
        }
        all
    }
}

/// The buckets of one provider, by contract and operation.
pub(crate) type Counts = BTreeMap<(String, String), Vec<u64>>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_newer_main_are_ignored_and_those_of_an_older_one_may_be_missing() {
        let answers = Answers {
            log: b"{\"missed\":3}\n{\"message\":\"hello\"}\n\n".to_vec(),
            ..Answers::of(br#"{"extensions":[{"id":"a","mood":"good"}],"more":1}"#.to_vec())
        };
        let look = Look::read(&answers, None).unwrap();
        assert_eq!(look.extensions[0].id, "a");
        assert_eq!(look.log, [LogLine { message: "hello".to_owned(), ..LogLine::default() }]);
        assert!(look.operations.is_none());
    }

    #[test]
    fn an_answer_that_is_no_json_is_a_fault() {
        assert!(
            Look::read(&Answers::of(b"<html>".to_vec()), None).unwrap_err().0.contains("another version")
        );
    }
}
