//! What a component asks for, and which of it the operator grants.

use anyhow::Context;
use weir_package::{AskedGrant, OperatorsFile, asked_grants};

use crate::{exit::Usage, output::printable};
use weir_host::component::Inspection;

/// The keys that let an extension reach something, and what follows them in `grants.NAME`.
const KEYS: [&str; 9] =
    ["fulfills", "requires", "wants", "publishes", "subscribes", "puts", "takes", "runs", "grants"];

/// Stands in a proposed table for a value that only the operator knows.
const FILL_IN: &str = "FILL-IN";

/// What the operator grants.
#[derive(Debug, clap::Args)]
pub(super) struct Granted {
    /// Grant what it asks for under this key, such as `wants`, or under all; or `KEY = VALUE` in TOML
    #[arg(long, value_name = "KEY")]
    grant: Vec<String>,
}

impl Granted {
    /// Writes what is granted into the table of an extension. Returns what that changes.
    pub(super) fn write(
        &self,
        file: &mut OperatorsFile,
        id: &str,
        found: &Inspection,
    ) -> anyhow::Result<Vec<String>> {
        let mut granted = Vec::new();
        let asked = asked_grants(&found.stanza());
        for grant in &self.grant {
            let lines: Vec<&str> = if grant == "all" {
                let known = asked.iter().filter(|asked| !asked.has_text(FILL_IN));
                known.map(|asked| &*asked.line).collect()
            } else if grant.contains('=') {
                vec![value(grant)?]
            } else {
                vec![of_key(&asked, grant)?]
            };
            for line in lines {
                let before = file.to_string();
                file.grant(id, line).with_context(|| format!("cannot grant `{}`", printable(line)))?;
                if file.to_string() != before {
                    granted.push(line.to_owned());
                }
            }
        }
        Ok(granted)
    }
}

fn value(grant: &str) -> Result<&str, Usage> {
    let key = grant.split(['=', '.']).next().unwrap_or_default().trim();
    if KEYS.contains(&key) {
        return Ok(grant);
    }
    Err(Usage(format!("`{}` is no grant: the keys are {}", printable(key), KEYS.join(", "))))
}

fn of_key<'a>(asked: &'a [AskedGrant], key: &str) -> Result<&'a str, Usage> {
    let key = printable(key);
    let Some(asked) = asked.iter().find(|asked| asked.key == key) else {
        let keys: Vec<_> = asked.iter().map(|asked| &*asked.key).collect();
        let asked = if keys.is_empty() { "nothing".to_owned() } else { keys.join(", ") };
        return Err(Usage(format!("it does not ask for `{key}`, but for {asked}")));
    };
    if asked.has_text(FILL_IN) {
        return Err(Usage(format!(
            "`{key}` needs a value that only you know: give it with `--grant '{}'`, and another value for {FILL_IN}",
            printable(&asked.line)
        )));
    }
    Ok(&asked.line)
}

/// Returns the lines that an extension asks for and does not have in its table.
pub(super) fn missing(file: &OperatorsFile, id: &str, found: &Inspection) -> Vec<String> {
    let has = |line: &str| {
        let mut with = file.clone();
        with.grant(id, line).is_ok() && with.to_string() == file.to_string()
    };
    let asked = asked_grants(&found.stanza()).into_iter().map(|asked| asked.line);
    asked.filter(|line| !has(line)).collect()
}

/// Returns what changes in what is asked for from one version to the next: lines that begin with `-` and `+`.
pub(super) fn changes(before: &Inspection, after: &Inspection) -> Vec<String> {
    let (before, after) = (asked_grants(&before.stanza()), asked_grants(&after.stanza()));
    let without = |sign: char, of: &[AskedGrant], other: &[AskedGrant]| {
        let lines = of.iter().filter(|asked| !other.contains(asked));
        lines.map(|asked| format!("{sign} {}", asked.line)).collect::<Vec<_>>()
    };
    let gone = without('-', &before, &after);
    gone.into_iter().chain(without('+', &after, &before)).collect()
}

/// Says what was granted.
pub(super) fn shown(granted: &[String]) -> String {
    if granted.is_empty() { String::new() } else { format!("granted:\n{}", indented(granted)) }
}

/// Shows lines of a component, each indented and harmless.
pub(super) fn indented(lines: &[String]) -> String {
    lines.iter().flat_map(|line| line.lines()).map(|line| format!("  {}\n", printable(line))).collect()
}
