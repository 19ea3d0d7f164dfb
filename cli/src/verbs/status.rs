//! `weir status`: one extension and its last failures.

use clap_complete::engine::ArgValueCompleter;
use serde_json::Value;
use weir_host::control::{BeingCompiled, ExtensionStatus, FailureRecord, HandledMessage};

use super::plan;
use crate::{
    args::Asked,
    client::{Client, Route},
    complete,
    output::{self, printable},
    tables::{COMPILING, NOTHING, limit_hit, list, mark, moment, restarts, size, then, time},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir status storage
  weir status --json storage | jq '.failures[-1].trace'")]
pub(crate) struct Args {
    /// The extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: String,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let mut client = Client::connect(&args.asked.target).await?;
    let route = Route::named(&["extensions", &args.id])?;
    if args.asked.json {
        return output::json(&client.get::<Value>(&route).await?);
    }
    let extension = client.get(&route).await?;
    let compared = plan::compared(&mut client, &args.id).await;
    output::write(status(&extension, compared).as_bytes())
}

/// Shows all of `weir status`. `compared` is the comparison with the file.
fn status(extension: &ExtensionStatus, compared: Option<&str>) -> String {
    let told = |reason: &String| {
        // The state is not shown twice: an extension's own words may begin with it.
        let own = reason.strip_prefix(extension.state.as_str()).and_then(|rest| rest.strip_prefix(": "));
        format!(": {}", own.unwrap_or(reason))
    };
    let reason = extension.reason.as_ref().map(told).unwrap_or_default();
    let state = match &extension.compiling {
        Some(BeingCompiled { bytes, since }) => {
            format!("{COMPILING}: {}, since {}", size(*bytes), moment(*since))
        }
        None => format!("{}{reason}", extension.state),
    };
    let facts = [
        ("id", extension.id.to_string()),
        ("state", state),
        ("since", moment(extension.since)),
        ("class", extension.class.clone()),
        ("fulfills", list(&extension.fulfills)),
        ("sha-256", extension.hash.clone().unwrap_or(NOTHING.to_owned())),
        ("cpu", time(extension.cpu.as_secs_f64())),
        ("memory", format!("{} of {}", size(extension.memory), size(extension.memory_limit))),
        ("inbox", format!("{} messages, {}", extension.inbox_messages, size(extension.inbox_bytes))),
        ("messages", format!("{} received, {} sent", extension.received, extension.sent)),
        ("shed", extension.shed.to_string()),
        ("late", extension.late.to_string()),
        ("restarts", restarts(extension)),
        ("config", compared.unwrap_or(NOTHING).to_owned()),
    ];
    let refused = extension.refused.map(|refused| ("refused", refused.to_string()));
    let http = extension.http.as_ref().map(|http| {
        let classes = http.answers.classes().map(|(class, count)| format!("{count} {class}"));
        let socket = http.socket.as_ref().map(|socket| format!(" at unix:{}", socket.display()));
        ("http", format!("{}{}, {}", http.path, socket.unwrap_or_default(), classes.join(", ")))
    });
    let version = extension.version.map(|version| {
        let what = mark(&version).unwrap_or(version.standing.as_str());
        ("version", format!("{} ({what})", version.number))
    });
    let mut text: String = facts
        .iter()
        .chain(&http)
        .chain(&version)
        .chain(&refused)
        .map(|(name, value)| format!("{name:<10}{}\n", printable(value)))
        .collect();
    text.extend(extension.failures.iter().map(failure));
    text
}

fn failure(failure: &FailureRecord) -> String {
    let mut text =
        format!("\nfailed {}\n  {:<10}{}\n", moment(failure.time), "cause", printable(&failure.cause));
    let mut fact = |name: &str, value: &str| text.push_str(&format!("  {name:<10}{}\n", printable(value)));
    if let Some(HandledMessage { message, sequence, sender, operation }) = &failure.handling {
        let number = message.map(|id| format!(", message {id}"));
        let number = number.or(sequence.map(|number| format!(", sequence {number}"))).unwrap_or_default();
        fact("handling", &format!("{operation} for {sender}{number}"));
    }
    if let Some(hit) = &failure.limit {
        fact("limit", &limit_hit(hit));
    }
    fact("then", &then(failure));
    if let Some(hash) = &failure.hash {
        fact("sha-256", hash);
    }
    for (index, function) in failure.trace.iter().enumerate() {
        fact(if index == 0 { "trace" } else { "" }, function);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{tables::assert_golden, verbs::ps::Extensions};

    fn fixture() -> Vec<ExtensionStatus> {
        let json = include_str!("../../tests/golden/extensions.json");
        serde_json::from_str::<Extensions>(json).unwrap().extensions
    }

    #[test]
    fn status_says_all_with_failures_and_their_traces() {
        assert_golden("status", &status(&fixture()[1], Some("as the file has it")));
    }

    #[test]
    fn names_from_outside_cannot_play_with_the_terminal() {
        let mut fixture = fixture();
        fixture[1].reason = Some("a\x1b[2Jb\nc".to_owned());
        fixture[1].failures[0].cause = "\x1b]0;title\x07".to_owned();
        let text = status(&fixture[1], None);
        assert!(!text.contains(['\x1b', '\x07']), "{text}");
    }
}
