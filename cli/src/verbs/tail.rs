//! `weir tail`: events as they are published.

use clap_complete::engine::ArgValueCompleter;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    args::Target,
    client::{Client, Route},
    complete,
    output::{self, printable},
    payload,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
In a pattern, `*` stands for one segment of a topic, and `>` at the end for the rest. Retained values come
first. The number before an event is its place in its topic.

Examples:
  weir tail '>'
  weir tail 'settings.changed.*'
  weir tail --json 'sensors.>' | jq .payload")]
pub(crate) struct Args {
    /// The pattern that topics must match
    #[arg(value_name = "PATTERN", add = ArgValueCompleter::new(complete::topic_pattern))]
    pattern: String,
    /// Print JSON, one object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Event<'a> {
    pub(super) topic: String,
    pub(super) sender: String,
    sequence: u64,
    lost: u64,
    #[serde(default)]
    retained: bool,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    payload_text: Option<String>,
    payload_base64: Option<String>,
}

impl Event<'_> {
    pub(super) fn shown_payload(&self) -> String {
        let (text, base64) = (self.payload_text.as_deref(), self.payload_base64.as_deref());
        payload::shown(self.payload, text, base64).unwrap_or_default()
    }
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.target).await?;
    let route = Route::new(&["events"]).with("pattern", Some(&args.pattern));
    let lines = client.stream(&route).await?;
    lines
        .print(|line| {
            if args.json {
                output::json_line(line)
            } else {
                output::line(&human(&serde_json::from_slice(line)?))
            }
        })
        .await
}

fn human(event: &Event<'_>) -> String {
    let payload = event.shown_payload();
    let lost =
        if event.lost > 0 { format!("... {} events were lost here\n", event.lost) } else { String::new() };
    let retained = if event.retained { " (retained)" } else { "" };
    let (topic, sender) = (printable(&event.topic), printable(&event.sender));
    format!("{lost}{} {topic} from {sender}{retained} {payload}", event.sequence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        human(&serde_json::from_str(line).unwrap())
    }

    #[test]
    fn an_event_is_one_line_whatever_its_payload_is() {
        let envelope = r#""topic":"a.b","sender":"main","sequence":4,"lost":0"#;
        assert_eq!(shown(&format!(r#"{{{envelope},"payload":{{"n":1}}}}"#)), r#"4 a.b from main {"n":1}"#);
        assert_eq!(shown(&format!(r#"{{{envelope},"payload-text":"x\ny"}}"#)), r#"4 a.b from main "x\ny""#);
        assert_eq!(
            shown(&format!(r#"{{{envelope},"payload-base64":"/wA="}}"#)),
            "4 a.b from main base64:/wA="
        );
    }

    #[test]
    fn what_was_lost_is_said_where_it_was_lost() {
        let line = r#"{"topic":"a","sender":"main","sequence":9,"lost":3,"payload":1}"#;
        assert_eq!(shown(line), "... 3 events were lost here\n9 a from main 1");
    }

    #[test]
    fn the_last_value_of_a_retained_topic_is_marked() {
        let line = r#"{"topic":"a","sender":"main","sequence":9,"lost":0,"retained":true,"payload":1}"#;
        assert_eq!(shown(line), "9 a from main (retained) 1");
    }
}
