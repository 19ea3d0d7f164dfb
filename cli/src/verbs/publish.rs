//! `weir publish`: an event, and what became of it.

use clap_complete::engine::ArgValueCompleter;
use hyper::Method;
use weir_host::client::Receipt;

use crate::{
    args::Asked,
    client::{Patience, Route},
    complete,
    output::counted,
    payload::payload,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  weir publish device.rebooting
  weir publish settings.changed.volume 11
  weir publish --to telemetry settings.changed.volume @volume.json")]
pub(crate) struct Args {
    /// The topic, as in `settings.changed.volume`
    #[arg(value_name = "TOPIC", add = ArgValueCompleter::new(complete::topic))]
    topic: String,
    /// The payload: text, `-` for all of stdin, or `@file`; empty by default
    #[arg(value_name = "PAYLOAD|-|@FILE", allow_hyphen_values = true)]
    payload: Option<String>,
    /// Only to this extension or peer
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    to: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
    let route = Route::named(&["publish", &args.topic])?.with("to", args.to.as_deref());
    let payload = payload(args.payload.as_deref())?;
    args.asked.send(Method::POST, &route, payload, Patience::WhileMainAnswers, received).await
}

/// Says how many subscriptions got the event, and what was lost or refused.
fn received(Receipt { delivered, shed, refused, .. }: Receipt) -> String {
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
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_says_what_was_lost_and_who_refused() {
        let said = |delivered, shed, refused| {
            let mut receipt = Receipt::default();
            (receipt.delivered, receipt.shed, receipt.refused) = (delivered, shed, refused);
            received(receipt)
        };
        assert_eq!(said(0, 0, 0), "delivered to 0 subscriptions\n");
        assert_eq!(
            said(1, 2, 0),
            "delivered to 1 subscription; lost for want of room: 2 events, this one or older\n"
        );
        assert_eq!(
            said(3, 0, 1),
            "delivered to 3 subscriptions; refused for want of room by 1 subscription\n"
        );
    }
}
