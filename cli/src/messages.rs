//! `weir call`, `publish` and `tail`.

mod arguments;

use hyper::Method;
use serde::de::IgnoredAny;
use serde_json::Value;
use weir_host::client::Receipt;

use crate::{
    args::{CallArgs, PublishArgs, TailArgs},
    client::{Client, Patience, Route},
    exit::{self, Usage},
    model,
    output::{self, counted, printable},
    payload::{self, names_source, payload},
    trace,
};

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
    let patience = args.timeout.map_or(Patience::WhileMainAnswers, |time| Patience::Asked(time.into()));
    if !args.raw && !args.no_check {
        arguments::check(&mut client, &args, &payload, patience).await?;
    }
    let trace = args.trace.then(|| client.begin_trace()).transpose()?;
    let answer = client.ask(Method::POST, &route, payload, patience).await;
    if let Some(trace) = trace {
        let tree = trace::of_call(&mut client, trace).await.unwrap_or_else(|error| exit::chain(&error));
        output::complain(tree.trim_end());
    }
    let answer = answer?;
    if !output::is_terminal() {
        return output::write(&answer);
    }
    match serde_json::from_slice::<Value>(&answer) {
        Ok(value) => output::json(&value),
        Err(_) => output::write(further_in(&answer).as_bytes()),
    }
}

pub(crate) async fn publish(args: PublishArgs) -> anyhow::Result<()> {
    let route = Route::named(&["publish", &args.topic])?.with("to", args.to.as_deref());
    let payload = payload(args.payload.as_deref())?;
    let mut client = Client::connect(&args.asked.target).await?;
    let answer = client.ask(Method::POST, &route, payload, Patience::WhileMainAnswers).await?;
    if args.asked.json {
        return output::json(&serde_json::from_slice::<Value>(&answer)?);
    }
    output::line(&received(&serde_json::from_slice(&answer)?))
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

/// Indents a provider's text, so that it cannot look like this command's own output.
fn further_in(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.lines().map(|line| format!("    {}\n", printable(line))).collect()
}

/// The outcome of a publication.
fn received(&Receipt { delivered, shed, refused, .. }: &Receipt) -> String {
    let mut text = format!("delivered to {}", counted(delivered.into(), "subscription"));
    if shed > 0 {
        text.push_str(&format!(
            "; lost for want of room: {}, this one or older",
            counted(shed.into(), "event")
        ));
    }
    if refused > 0 {
        text.push_str(&format!("; refused for want of room by {}", counted(refused.into(), "subscription")));
    }
    text
}

fn human(event: &model::Event<'_>) -> String {
    let payload =
        payload::shown(event.payload, event.payload_text.as_deref(), event.payload_base64.as_deref());
    let payload = payload.unwrap_or_default();
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
    fn a_text_that_is_answered_cannot_look_like_what_the_command_says() {
        let answer = "done\nerror: Main cannot be reached\rerror: \u{61c}\u{200b}\u{e0041}";
        let shown = "    done\n    error: Main cannot be reached\\rerror: \\u{61c}\\u{200b}\\u{e0041}\n";
        assert_eq!(further_in(answer.as_bytes()), shown);
        assert_eq!(further_in(b""), "");
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

    #[test]
    fn a_receipt_says_what_was_lost_and_who_refused() {
        let said = |delivered, shed, refused| {
            let mut receipt = Receipt::default();
            (receipt.delivered, receipt.shed, receipt.refused) = (delivered, shed, refused);
            received(&receipt)
        };
        assert_eq!(said(0, 0, 0), "delivered to 0 subscriptions");
        assert_eq!(
            said(1, 2, 0),
            "delivered to 1 subscription; lost for want of room: 2 events, this one or older"
        );
        assert_eq!(said(3, 0, 1), "delivered to 3 subscriptions; refused for want of room by 1 subscription");
    }
}
