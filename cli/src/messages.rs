//! `weir call`, `publish` and `tail`.

use std::{fs::File, io::Read};

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{
    args::{CallArgs, PublishArgs, TailArgs},
    client::{self, Client, Route},
    exit::Usage,
    model,
    output::{self, printable},
};

/// Bytes of a payload: what Main accepts.
const MAX_PAYLOAD: u64 = 64 * 1024 * 1024;

pub(crate) async fn call(args: CallArgs) -> anyhow::Result<()> {
    let route = Route::named(&["call", &args.contract, &args.operation])?
        .with("timeout", args.timeout.map(|timeout| timeout.to_string()).as_deref())
        .with("provider", args.provider.as_deref());
    if let Some(text) = &args.payload
        && !args.raw
        && !names_source(text)
        && let Err(error) = serde_json::from_str::<IgnoredAny>(text)
    {
        let advice = "quote it for the shell, or send it as it is with `--raw`";
        return Err(Usage(format!("the arguments are not JSON: {error}; {advice}")).into());
    }
    let payload = payload(args.payload.as_deref())?;
    let mut client = Client::connect(&args.target).await?;
    let answer = client::body(client.send(Method::POST, &route, payload).await?).await?;
    if !output::is_terminal() {
        return output::write(&answer);
    }
    match serde_json::from_slice::<Value>(&answer) {
        Ok(value) => {
            let laid_out = serde_json::to_string_pretty(&value)?;
            let lines: Vec<_> = laid_out.lines().map(printable).collect();
            output::line(&lines.join("\n"))
        }
        Err(_) if answer.is_empty() => Ok(()),
        Err(_) => {
            let text = String::from_utf8_lossy(&answer);
            let lines: Vec<_> = text.lines().map(printable).collect();
            output::line(&lines.join("\n"))
        }
    }
}

pub(crate) async fn publish(args: PublishArgs) -> anyhow::Result<()> {
    let route = Route::named(&["publish", &args.topic])?.with("to", args.to.as_deref());
    let payload = payload(args.payload.as_deref())?;
    let mut client = Client::connect(&args.target).await?;
    let answer = client::body(client.send(Method::POST, &route, payload).await?).await?;
    if args.json {
        return output::json(&serde_json::from_slice::<Value>(&answer)?);
    }
    let model::Receipt { delivered, shed } = serde_json::from_slice(&answer)?;
    let lost = if shed > 0 { format!(", {shed} of them full: lost there") } else { String::new() };
    output::line(&format!(
        "delivered to {delivered} of {} subscriptions{lost}",
        delivered.saturating_add(shed)
    ))
}

pub(crate) async fn tail(args: TailArgs) -> anyhow::Result<()> {
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

fn human(event: &model::Event<'_>) -> String {
    let payload = match (event.payload, &event.payload_text, &event.payload_base64) {
        (Some(json), ..) => json.get().to_owned(),
        (None, Some(text), _) => format!("{text:?}"),
        (None, None, Some(base64)) => format!("base64:{base64}"),
        (None, None, None) => String::new(),
    };
    let lost =
        if event.lost > 0 { format!("... {} events were lost here\n", event.lost) } else { String::new() };
    let (topic, sender) = (printable(&event.topic), printable(&event.sender));
    format!("{lost}{} {topic} from {sender} {}", event.sequence, printable(&payload))
}

/// Whether a payload's argument says where it is to be read, and is not the payload.
fn names_source(text: &str) -> bool {
    text == "-" || text.starts_with('@')
}

/// The payload that an argument stands for.
fn payload(argument: Option<&str>) -> anyhow::Result<Bytes> {
    match argument {
        None => Ok(Bytes::new()),
        Some("-") => read(std::io::stdin().lock()).context("cannot read stdin"),
        Some(text) => match text.strip_prefix('@') {
            None => Ok(text.to_owned().into()),
            Some(path) => File::open(path)
                .map_err(Into::into)
                .and_then(read)
                .with_context(|| format!("cannot read `{path}`")),
        },
    }
}

fn read(source: impl Read) -> anyhow::Result<Bytes> {
    let mut bytes = Vec::new();
    source.take(MAX_PAYLOAD + 1).read_to_end(&mut bytes)?;
    anyhow::ensure!(
        bytes.len() as u64 <= MAX_PAYLOAD,
        "it has over {MAX_PAYLOAD} bytes, as many as a payload can have"
    );
    Ok(bytes.into())
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
}
