//! `weir call`: an operation of a contract, and its answer.

use clap_complete::engine::ArgValueCompleter;
use hyper::Method;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::trace;
use crate::{
    args::Target,
    client::{Client, Patience, Route, is_misfit},
    complete,
    exit::{self, Usage},
    output::{self, printable},
    payload::{names_source, payload},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal, an answer in JSON is indented; otherwise its bytes are printed as they are. If the provider
describes the contract, as `weir describe` shows, the arguments are checked before they are sent.

Examples:
  weir call device.info@1 memory
  weir call local.storage@1 set '{\"key\": \"volume\", \"value\": 11}'
  weir call --timeout 30s firmware@1 install @update.bin
  echo hello | weir call echo@1 echo -")]
pub(crate) struct Args {
    /// The contract, as in `device.info@1`
    #[arg(value_name = "CONTRACT", add = ArgValueCompleter::new(complete::contract))]
    contract: String,
    /// The operation, as in `memory`
    #[arg(value_name = "OPERATION", add = ArgValueCompleter::new(complete::operation))]
    operation: String,
    /// The arguments: JSON, `-` for all of stdin, or `@file`; none by default
    #[arg(value_name = "JSON|-|@FILE", allow_hyphen_values = true)]
    #[arg(add = ArgValueCompleter::new(complete::argument))]
    payload: Option<String>,
    /// Send the arguments as they are, JSON or not
    #[arg(long)]
    raw: bool,
    /// Send the arguments also if they do not fit what the provider describes
    #[arg(long)]
    no_check: bool,
    /// Record the call and what it causes, and print that to stderr, as `weir trace` does
    #[arg(long)]
    trace: bool,
    /// Time limit for the answer, as in `2s`; by default, that of the configuration
    #[arg(long, value_name = "TIME")]
    timeout: Option<humantime::Duration>,
    /// The provider to call: an extension, a peer, or `main`; by default, the contract's owner
    #[arg(long, value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    provider: Option<String>,
    #[command(flatten)]
    target: Target,
}

pub(super) async fn run(args: Args) -> anyhow::Result<()> {
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
    client.is_strict = !args.raw && !args.no_check;
    let trace = args.trace.then(|| client.begin_trace()).transpose()?;
    let answer = client.ask(Method::POST, &route, payload, patience).await;
    if let Some(trace) = trace
        && !is_misfit(&answer)
    {
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

/// Indents a provider's text, so that it cannot look like this command's own output.
fn further_in(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    text.lines().map(|line| format!("    {}\n", printable(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_answered_cannot_look_like_what_the_command_says() {
        let answer = "done\nerror: Main cannot be reached\rerror: \u{61c}\u{200b}\u{e0041}";
        let shown = "    done\n    error: Main cannot be reached\\rerror: \\u{61c}\\u{200b}\\u{e0041}\n";
        assert_eq!(further_in(answer.as_bytes()), shown);
        assert_eq!(further_in(b""), "");
    }
}
