//! Limits for the stanza: what an extension used in a running Main, and room over it.

use std::path::Path;

use anyhow::{Context, bail};
use weir_host::config::{Limits, Shape};

use crate::{
    output::printable,
    payload, tables,
    verbs::limits::{ExtensionLimits, Limit, Limits as Measured},
};

/// The step in which memory grows, in bytes.
const PAGE: u64 = 64 * 1024;

/// The largest limits that a file can set: 4 GiB of memory, 10^15 units of fuel.
const MAX_MEMORY: u64 = 4 << 30;
const MAX_FUEL: u64 = 1_000_000_000_000_000;

/// Returns lines of TOML for the extension `id`, from a file with the output of `weir limits --json`. Each says what
/// was measured.
pub(super) fn limits(file: &Path, id: &str) -> anyhow::Result<String> {
    let name = file.display().to_string();
    let report: Measured = serde_json::from_slice(&payload::file(&name)?)
        .with_context(|| format!("`{name}` is not the output of `weir limits --json`"))?;
    let of_this = report.extensions.iter().find(|extension| extension.id == id);
    let extension = match (of_this, &*report.extensions) {
        (Some(extension), _) | (None, [extension]) => extension,
        (None, others) => {
            let ids: Vec<_> = others.iter().map(|extension| format!("`{}`", extension.id)).collect();
            let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            bail!("`{name}` has no extension `{id}`; its extensions: {ids}");
        }
    };
    let Some(memory) = peak(extension, "memory").filter(|bytes| *bytes > 0) else {
        bail!("in `{name}`, `{}` has not run: ask a Main that runs it", extension.id);
    };
    // The limits of memory and of fuel are at least the size of a message: it must fit in memory, and costs fuel.
    let message_size = Limits::medium().message_size;
    let with_room = |bytes: u64| bytes.saturating_add(bytes / 2).next_multiple_of(PAGE);
    let size = |bytes: u64| format!("\"{}\"", Shape::Size(0..=u64::MAX).text(bytes));

    let mut lines = format!("# limits with room over those measured in {}\n", printable(&name));
    let mut line = |key: &str, value: String, what: &str, measured: String| {
        let reached =
            match limit(extension, key).and_then(|limit| limit.allowed.as_u64()) == peak(extension, key) {
                true => ", which was the limit: it may need more",
                false => "",
            };
        lines.push_str(&format!("limits.{key} = {value}  # {what}: {measured}{reached}\n"));
    };
    let room = with_room(memory).clamp(message_size, MAX_MEMORY);
    line("memory", size(room), "peak", tables::size(memory));
    if let Some(stack) = peak(extension, "stack") {
        line("stack", size(with_room(stack)), "deepest", tables::size(stack));
    }
    match peak(extension, "fuel-per-message") {
        None | Some(0) => lines.push_str("# limits.fuel-per-message: it was sent no message\n"),
        Some(fuel) => {
            let room = fuel.saturating_mul(2).clamp(message_size, MAX_FUEL);
            line("fuel-per-message", grouped(room), "dearest message", grouped(fuel));
        }
    }
    Ok(lines)
}

fn peak(extension: &ExtensionLimits, key: &str) -> Option<u64> {
    limit(extension, key)?.peak.as_ref()?.as_u64()
}

fn limit<'e>(extension: &'e ExtensionLimits, key: &str) -> Option<&'e Limit> {
    extension.limits.iter().find(|limit| limit.key == key)
}

/// Writes a number as a file groups it: `2_400_600`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push('_');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(id: &str) -> anyhow::Result<String> {
        limits(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/limits.json"), id)
    }

    #[test]
    fn limits_have_room_over_what_was_measured_and_say_it() {
        let lines = measured("storage").unwrap();
        let lines: Vec<_> = lines.lines().skip(1).collect();
        assert_eq!(
            lines,
            [
                "limits.memory = \"1856 KiB\"  # peak: 1.2 MiB",
                "limits.fuel-per-message = 2_400_600  # dearest message: 1_200_300",
            ]
        );
        let lines = measured("telemetry").unwrap();
        assert!(lines.contains("limits.memory = \"6 MiB\"  # peak: 4.0 MiB\n"), "{lines}");
        let reached = "= 40_000_000  # dearest message: 20_000_000, which was the limit: it may need more\n";
        assert!(lines.ends_with(reached), "{lines}");
    }

    #[test]
    fn an_extension_that_was_not_measured_is_an_error_that_names_those_that_were() {
        let error = measured("uploader").unwrap_err().to_string();
        assert!(
            error.ends_with("no extension `uploader`; its extensions: `storage`, `telemetry`"),
            "{error}"
        );
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1_000", "1_234_567"]);
    }
}
