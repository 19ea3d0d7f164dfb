//! Limits as text for people.

use std::time::Duration;

use serde_json::Number;
use weir_host::limits::{DirLimits, LimitUnit};

use super::{NOTHING, amount, finish, size, table, time};
use crate::{
    model::{ExtensionLimits, Limit, Limits},
    output::printable,
};

/// All of `weir limits`: a table for each extension, the sum of their memory, and the time of fuel.
pub(crate) fn limits(report: &Limits) -> String {
    let mut text: String =
        report.extensions.iter().map(|extension| of_one(extension, report.fuel_per_ms)).collect();
    text.push_str(&memory(report));
    text.push_str(&match report.fuel_per_ms {
        Some(rate) => format!("\nOne millisecond of this machine is {rate} of fuel, as measured.\n"),
        None => "\nThe time of fuel is not measured here. Without the compiler, Main measures it once it has loaded \
                 an artifact.\n"
            .to_owned(),
    });
    text
}

fn of_one(extension: &ExtensionLimits, fuel_per_ms: Option<u64>) -> String {
    let mut table = table(["LIMIT", "ALLOWED", "USED", "PEAK", "FROM"]);
    for limit in &extension.limits {
        let used = |value: &Option<Number>| {
            value.as_ref().map_or(NOTHING.to_owned(), |number| amount(limit.unit, number))
        };
        table.add_row([
            printable(&limit.key),
            allowed(limit, fuel_per_ms),
            used(&limit.used),
            used(&limit.peak) + &consequence(extension, limit),
            printable(&limit.source.text),
        ]);
    }
    for dir in &extension.dirs {
        for row in directory(dir) {
            table.add_row(row);
        }
    }
    let class = extension.fixed.get("class").and_then(|class| class.as_str()).unwrap_or_default();
    let from = format!("fixed, `{}`", printable(class));
    for (key, value) in &extension.fixed {
        if let Some(bound) = value.as_u64() {
            let bound = match key.as_str() {
                "host-stack" | "random-bytes" => size(bound),
                _ => bound.to_string(),
            };
            table.add_row([&printable(key), &bound, NOTHING, NOTHING, &from]);
        }
    }
    let from = "fixed, 64 KiB over `message-size`";
    table.add_row(["transfer", &size(extension.transfer), NOTHING, NOTHING, from]);
    format!("{}: class `{}`\n\n{}\n", printable(&extension.id), printable(&extension.class), finish(&table))
}

fn directory(dir: &DirLimits) -> [[String; 5]; 2] {
    let shown =
        |number: Option<u64>, show: &dyn Fn(u64) -> String| number.map_or_else(|| NOTHING.to_owned(), show);
    let row = |of: &str, numbers: [Option<u64>; 3], show: &dyn Fn(u64) -> String| {
        let [allowed, used, peak] = numbers.map(|number| shown(number, show));
        [format!("{of} in {}", printable(&dir.guest)), allowed, used, peak, "`grants.dirs`".to_owned()]
    };
    let mut bytes = row("bytes", [dir.max_bytes, dir.used_bytes, dir.peak_bytes], &size);
    if let Some(written) = dir.written_bytes {
        bytes[3] += &format!(", {} written", size(written));
    }
    [bytes, row("files", [dir.max_files, dir.used_files, dir.peak_files], &|number| number.to_string())]
}

/// The limit. Fuel also has a time.
fn allowed(limit: &Limit, fuel_per_ms: Option<u64>) -> String {
    let text = printable(&limit.text);
    match (limit.unit, limit.allowed.as_u64(), fuel_per_ms) {
        (LimitUnit::Fuel, Some(fuel), Some(rate)) if rate > 0 => {
            let nanoseconds = u128::from(fuel) * 1_000_000 / u128::from(rate);
            let took = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX));
            format!("{text} (≈ {})", time(took.as_secs_f64()))
        }
        _ => text,
    }
}

fn consequence(extension: &ExtensionLimits, limit: &Limit) -> String {
    match limit.key.as_str() {
        "cpu-share" => match extension.delayed_seconds {
            Some(seconds) if seconds > 0.0 => format!(", delayed {}", time(seconds)),
            _ => String::new(),
        },
        "log-rate" => match extension.log_dropped {
            Some(lines) if lines > 0 => format!(", {lines} dropped"),
            _ => String::new(),
        },
        "http.in-flight" => match extension.http_refused {
            Some(requests) if requests > 0 => format!(", {requests} refused"),
            _ => String::new(),
        },
        "http.total-timeout" => match extension.http_timed_out {
            Some(requests) if requests > 0 => format!(", {requests} ended"),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

fn memory(report: &Limits) -> String {
    let mut table = table(["ID", "MEMORY, STACK AND INBOX"]);
    for extension in &report.extensions {
        table.add_row([printable(&extension.id), size(extension.memory_sum)]);
    }
    let sum = size(report.memory_sum);
    let sum = match report.memory_budget {
        Some(budget) => format!("{sum} of {}, the `main.memory-budget`", size(budget)),
        None => format!("{sum}; `main.memory-budget` is not set"),
    };
    // The brackets keep it apart from ids.
    table.add_row(["(all)".to_owned(), sum]);
    finish(&table)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::assert_golden, *};

    fn fixture() -> Limits {
        serde_json::from_str(include_str!("../../tests/golden/limits.json")).unwrap()
    }

    #[test]
    fn limits_line_up_with_their_use_and_their_origin() {
        assert_golden("limits", &limits(&fixture()));
    }

    #[test]
    fn limits_of_no_running_main_show_no_use() {
        let mut report = fixture();
        (report.fuel_per_ms, report.memory_budget) = (None, None);
        report.extensions.truncate(1);
        for extension in &mut report.extensions {
            (extension.delayed_seconds, extension.log_dropped) = (None, None);
            (extension.http_refused, extension.http_timed_out) = (None, None);
            for limit in &mut extension.limits {
                (limit.used, limit.peak) = (None, None);
            }
            for dir in &mut extension.dirs {
                (dir.used_bytes, dir.used_files) = (None, None);
                (dir.peak_bytes, dir.peak_files, dir.written_bytes) = (None, None, None);
            }
        }
        assert_golden("limits-of-a-file", &limits(&report));
    }

    #[test]
    fn names_from_outside_cannot_play_with_the_terminal() {
        let mut report = fixture();
        report.extensions[0].limits[0].source.text = "a\x1b[2J\n.toml:1".to_owned();
        let text = limits(&report);
        assert!(!text.contains('\x1b') && text.contains("\\n.toml:1"), "{text}");
    }
}
