//! Main's answers around its reports, as far as the view shows them. Fields of a newer Main are ignored.

use std::{collections::BTreeMap, time::Instant};

use serde::{Deserialize, de::DeserializeOwned};
use weir_reports::{ExtensionStatus, OperationStatus, PeerStatus};

use crate::source::{Answers, Fault};

/// One look at Main.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) pid: Option<u64>,
    pub(crate) extensions: Vec<ExtensionStatus>,
    pub(crate) peers: Vec<PeerStatus>,
    /// `None` if Main does not count them.
    pub(crate) operations: Option<Operations>,
    /// The extension that the log is of.
    pub(crate) log_of: Option<String>,
    /// The lines of the log, oldest first.
    pub(crate) log: Vec<LogLine>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Operations {
    /// The upper bound of each bucket but the last, in seconds.
    pub(crate) bounds: Vec<f64>,
    pub(crate) operations: Vec<OperationStatus>,
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
    extensions: Vec<ExtensionStatus>,
}

#[derive(Deserialize)]
struct Peers {
    peers: Vec<PeerStatus>,
}

impl Look {
    /// Reads the answers of one look. `log_of` is the extension whose log was asked for.
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

/// Reads the lines of a log. Anything else, such as a note of a newer Main, is left out.
fn log(text: &[u8]) -> Vec<LogLine> {
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

impl Operations {
    /// Returns the buckets of each provider's operations, by contract and operation.
    pub(crate) fn by_provider(&self) -> BTreeMap<&str, Counts> {
        let mut all = BTreeMap::<_, Counts>::new();
        for OperationStatus { provider, contract, operation, durations, .. } in &self.operations {
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
    use weir_reports::ExtensionState;

    use super::*;
    use crate::model::tests::answer;

    #[test]
    fn what_only_a_newer_main_says_is_ignored_and_what_an_older_one_does_not_say_may_be_missing() {
        let answers = Answers {
            log: b"{\"missed\":3}\n{\"message\":\"hello\"}\n\n".to_vec(),
            ..Answers::of(answer(r#"{"id":"a","mood":"good","state":"asleep"}"#))
        };
        let look = Look::read(&answers, None).unwrap();
        assert_eq!(look.extensions[0].id.as_str(), "a");
        assert_eq!(look.extensions[0].state, ExtensionState::Other);
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
