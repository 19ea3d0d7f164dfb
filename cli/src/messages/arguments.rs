//! Arguments of a call, checked against what the provider describes before they are sent.

use weir_host::openrpc::{Document, Unknown};

use crate::{
    args::CallArgs,
    client::{Client, Patience},
    contracts,
    exit::Usage,
    output::printable,
};

/// Operations in a message.
const MAX_SHOWN: usize = 12;

/// Finds arguments that the provider would refuse, or ignore as unknown. What nobody describes fits.
pub(super) async fn check(
    client: &mut Client,
    args: &CallArgs,
    arguments: &[u8],
    patience: Patience,
) -> anyhow::Result<()> {
    let mut described = contracts::of_main_if_any(client, &args.contract, patience).await?;
    if let Some(provider) = &args.provider {
        described.retain(|described| described.provider.as_ref() == Some(provider));
    }
    let Some(described) = described.first() else { return Ok(()) };
    let document = &described.document;
    let fault = match document.method(&args.operation) {
        None => Some(unknown(document, &args.operation)),
        Some(_) => {
            let fit = document.check_arguments(&args.operation, arguments, Unknown::Refused);
            fit.err().map(|misfit| format!("the arguments do not fit: {misfit}"))
        }
    };
    match fault {
        None => Ok(()),
        Some(fault) => Err(Usage(format!("{fault}; `--no-check` sends them all the same")).into()),
    }
}

fn unknown(document: &Document, operation: &str) -> String {
    let names: Vec<String> = document
        .methods
        .iter()
        .take(MAX_SHOWN)
        .map(|method| format!("`{}`", printable(&method.name)))
        .collect();
    let more = if document.methods.len() > names.len() { ", …" } else { "" };
    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") + more };
    format!("`{}` has no operation `{}`; it has {known}", document.contract, printable(operation))
}
