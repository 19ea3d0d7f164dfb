//! `weir check-contract`: whether the next version of a contract breaks its callers.

use std::path::PathBuf;

use clap::ValueHint;
use serde_json::{Value, json};
use weir_host::openrpc::{Document, Finding, Severity, compare};

use crate::{
    contracts::served_by_file,
    exit::Said,
    output::{self, counted},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Each file is a component, a document with the ending `.json`, or WIT. Every contract that OLD serves is compared
with the one of the same name and version in NEW. Exit code 1: a caller or a job of OLD can fail with NEW.

Examples:
  weir check-contract settings-1.0.wasm settings.wasm
  weir check-contract --json settings.json settings.wasm | jq .compatible")]
pub(crate) struct Args {
    /// The version before: a component, a document or WIT
    #[arg(value_name = "OLD", value_hint = ValueHint::FilePath)]
    old: PathBuf,
    /// The version now
    #[arg(value_name = "NEW", value_hint = ValueHint::FilePath)]
    new: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A contract of the old version, and its differences in the new version.
struct Judged {
    contract: String,
    findings: Vec<Finding>,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let (old, new) = (served_by_file(&args.old)?, served_by_file(&args.new)?);
    let judged: Vec<Judged> = old.iter().map(|old| judge(old, &new)).collect();
    let is_compatible = judged.iter().all(|judged| judged.breaking() == 0);
    if args.json {
        let contracts: Vec<Value> = judged.iter().map(Judged::json).collect();
        output::json(&json!({ "compatible": is_compatible, "contracts": contracts }))?;
    } else {
        output::write(judged.iter().map(Judged::text).collect::<String>().as_bytes())?;
    }
    if is_compatible { Ok(()) } else { Err(Said.into()) }
}

fn judge(old: &Document, new: &[Document]) -> Judged {
    let findings = match new.iter().find(|new| new.contract == old.contract) {
        Some(new) => compare(old, new),
        None => {
            let message = "is removed".to_owned();
            vec![Finding { path: "$".to_owned(), message, severity: Severity::Breaking }]
        }
    };
    Judged { contract: old.contract.to_string(), findings }
}

impl Judged {
    fn breaking(&self) -> u64 {
        self.findings.iter().map(|finding| u64::from(finding.severity == Severity::Breaking)).sum()
    }

    fn text(&self) -> String {
        let mut text = match self.breaking() {
            0 => format!("`{}` is compatible\n", self.contract),
            breaking => format!(
                "`{}` is not compatible: {} for `{}`\n",
                self.contract,
                counted(breaking, "change"),
                next(&self.contract)
            ),
        };
        for finding in &self.findings {
            text.push_str(&format!("  {:<10}  {finding}\n", name(finding.severity)));
        }
        text
    }

    fn json(&self) -> Value {
        let findings: Vec<Value> = self
            .findings
            .iter()
            .map(|Finding { path, message, severity }| {
                json!({ "path": path, "message": message, "severity": name(*severity) })
            })
            .collect();
        json!({ "contract": self.contract, "compatible": self.breaking() == 0, "findings": findings })
    }
}

/// Returns the contract's name with the next version number.
fn next(contract: &str) -> String {
    match contract.split_once('@').map(|(name, version)| (name, version.parse::<u32>())) {
        Some((name, Ok(version))) => format!("{name}@{}", version + 1),
        _ => contract.to_owned(),
    }
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Breaking => "breaking",
        Severity::Compatible => "compatible",
    }
}
