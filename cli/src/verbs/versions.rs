//! `weir versions`, `accept` and `rollback`: the versions of one extension with `update`.

use clap_complete::engine::ArgValueCompleter;
use weir_host::control::{DataSnapshot, DataStatus, Standing, VersionFigures, VersionStatus, VersionsStatus};

use super::orders::send;
use crate::{
    args::Asked,
    client::{Client, Route},
    complete,
    output::printable,
    tables::{NOTHING, SHORT_HASH, lined_up, moment, size, time},
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Extensions with `update` have versions: a component with its configuration. A new one is on probation: if it
does not hold, the last proven one comes back by itself. RAN is how long it ran on probation, FAILED is
requests that ended in an error, P99 is the time within which 99 of 100 requests ended. Below are the last
changes.

Examples:
  weir versions storage
  weir versions --json storage | jq -r '.versions[] | select(.standing == \"refused\") | .reason'")]
pub(crate) struct Args {
    /// The extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
It needs no more probation, and comes back if a later version does not hold.

Examples:
  weir accept storage")]
pub(crate) struct AcceptArgs {
    /// The extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: String,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The refused version is not run again, until its component or configuration changes or `weir reload ID --now`
asks for it.

Examples:
  weir rollback storage
  weir rollback storage 4
  weir rollback storage --data-too")]
pub(crate) struct RollBackArgs {
    /// The extension
    #[arg(value_name = "ID", add = ArgValueCompleter::new(complete::extension))]
    id: String,
    /// A proven version, from `weir versions`; by default the latest one before
    #[arg(value_name = "VERSION")]
    to: Option<u64>,
    /// Restore what the extension had in its stores, if the version cannot read what is there; what was written
    /// since is lost
    #[arg(long)]
    data_too: bool,
    #[command(flatten)]
    asked: Asked,
}

pub(super) async fn run(Args { id, asked }: Args) -> anyhow::Result<()> {
    let route = Route::named(&["extensions", &id, "versions"])?;
    asked.get(&route, |status: VersionsStatus| versions(&status)).await
}

pub(super) async fn accept(AcceptArgs { id, asked }: AcceptArgs) -> anyhow::Result<()> {
    let route = Route::named(&["extensions", &id, "accept"])?;
    send(&mut Client::connect(&asked.target).await?, &route, asked.json).await
}

pub(super) async fn roll_back(RollBackArgs { id, to, data_too, asked }: RollBackArgs) -> anyhow::Result<()> {
    let to = to.map(|number| number.to_string());
    let route = Route::named(&["extensions", &id, "rollback"])?.with("version", to.as_deref());
    let route = route.with("data-too", data_too.then_some("true"));
    send(&mut Client::connect(&asked.target).await?, &route, asked.json).await
}

fn versions(status: &VersionsStatus) -> String {
    let facts = [
        ("serves", status.serving.map_or(NOTHING.to_owned(), |number| runs(status, number))),
        ("comes back", comes_back(status)),
        ("held back", status.held_back.clone().unwrap_or(NOTHING.to_owned())),
    ];
    let kept = (!status.is_kept).then(|| {
        let text = "in memory, until Main ends: `main.state-dir` is not set, or cannot be used";
        ("kept", text.to_owned())
    });
    let canary = status.canary.map(|number| ("canary", format!("{}, in one instance", runs(status, number))));
    let [serves, others @ ..] = facts;
    let data = status.data.as_ref().map(|data| ("data", what_data(data)));
    let facts = [serves].into_iter().chain(canary).chain(others).chain(data).chain(kept);
    let mut text: String = facts.map(|(name, value)| format!("{name:<12}{}\n", printable(&value))).collect();
    text.push('\n');
    text.push_str(&lined_up(
        &status.versions,
        &[
            ("VERSION", &|version| version.number.to_string()),
            ("STANDING", &|version| version.standing.to_string()),
            ("SINCE", &|version| moment(version.since)),
            ("RAN", &|version| time(version.ran.as_secs_f64())),
            ("REQUESTS", &|version| version.figures.requests().to_string()),
            ("FAILED", &|version| version.figures.failed.values().sum::<u64>().to_string()),
            ("P99", &|version| p99(&version.figures)),
            ("MEMORY", &|version| size(version.figures.memory)),
            ("SHA-256", &|version| printable(&version.hash.chars().take(SHORT_HASH).collect::<String>())),
            ("WHY", &|version| version.reason.as_deref().map_or(NOTHING.to_owned(), printable)),
        ],
    ));
    if !status.changes.is_empty() {
        let changes: Vec<_> = status.changes.iter().collect();
        text.push('\n');
        text.push_str(&lined_up(
            &changes,
            &[
                ("TIME", &|change| moment(change.time)),
                ("VERSION", &|change| change.version.to_string()),
                ("BECAME", &|change| change.standing.to_string()),
                ("SERVES", &|change| change.serves.to_string()),
                ("WHY", &|change| printable(&change.reason)),
            ],
        ));
    }
    text
}

/// Says what is known of a version that runs.
fn runs(status: &VersionsStatus, number: u64) -> String {
    let version = status.versions.iter().find(|version| version.number == number);
    match version {
        Some(VersionStatus { standing: Standing::Probation, ran, .. }) => {
            let left = time(status.prove_for.saturating_sub(*ran).as_secs_f64());
            format!("version {number}, on probation until it has run for another {left}")
        }
        Some(VersionStatus { standing, .. }) => format!("version {number}, {standing}"),
        None => format!("version {number}"),
    }
}

/// Says which version would come back. One that serves already is none.
fn comes_back(status: &VersionsStatus) -> String {
    let other = status.fallback.filter(|fallback| Some(*fallback) != status.serving);
    other.map_or(NOTHING.to_owned(), |fallback| format!("version {fallback}"))
}

/// Says which versions can read the data that is there, and what else is kept.
fn what_data(data: &DataStatus) -> String {
    let since =
        data.since.as_ref().map_or("for all versions".to_owned(), |since| format!("for {since} and later"));
    let kept = |snapshot: &DataSnapshot| {
        let (taken, bytes) = (moment(snapshot.taken), size(snapshot.bytes));
        format!("{taken} ({bytes}, before version {})", snapshot.before)
    };
    let snapshots = data.snapshots.iter().map(|snapshot| format!("; kept: that of {}", kept(snapshot)));
    let aside = data.put_aside.iter().map(|snapshot| format!("; put aside: that of {}", kept(snapshot)));
    std::iter::once(since).chain(snapshots).chain(aside).collect()
}

/// The 99th percentile. It has no number if it is above all bounds.
fn p99(figures: &VersionFigures) -> String {
    match figures.p99() {
        Some(p99) => time(p99.as_secs_f64()),
        None if figures.requests() > 0 => "over 1 min".to_owned(),
        None => NOTHING.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fixture() -> VersionsStatus {
        let json = r#"{"extension":"storage","serving":3,"fallback":1,"held-back":null,"prove-for":600.0,"is-kept":true,
            "versions":[
                {"number":3,"hash":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                 "standing":"probation","since":"2026-03-01T10:07:00.000Z","ran":168.0,"failures":0,
                 "figures":{"failed":{},"durations":{"sum":0.0,"buckets":[]},"memory":1179648}},
                {"number":2,"hash":"caaab906f77b0ab5","standing":"refused",
                 "since":"2026-03-01T10:06:00.000Z","ran":1.5,"failures":2,"reason":"it failed 2 times"},
                {"number":1,"hash":"98ece1af743de2cd","standing":"proven",
                 "since":"2026-03-01T10:00:00.000Z","ran":600.0,"failures":0,"reason":"it held for 10m",
                 "figures":{"failed":{"handler":3,"timeout":1},"durations":{"sum":1.0,"buckets":[]},"memory":65536}}],
            "changes":[
                {"time":"2026-03-01T10:06:00.000Z","version":2,"standing":"refused","serves":1,
                 "reason":"it failed 2 times","requests":0,"failed":0,"memory":0}]}"#;
        let mut status: VersionsStatus = serde_json::from_str(json).unwrap();
        // The bound of the bucket with the 990th request is 1.05 ms.
        status.versions[2].figures.durations.buckets = [vec![0; 20], vec![990, 10]].concat();
        status
    }

    /// The cells of the line that begins with this text.
    fn cells(text: &str, begin: &str) -> Vec<String> {
        let line = text.lines().find(|line| line.starts_with(begin));
        let line = line.unwrap_or_else(|| panic!("no line {begin} in {text}"));
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(ToOwned::to_owned).collect()
    }

    #[test]
    fn a_version_has_a_line_with_what_it_came_to() {
        let text = versions(&fixture());
        let first = ["3", "probation", "2026-03-01T10:07:00.000Z", "2 min 48 s", "0", "0", "-"];
        assert_eq!(cells(&text, "3 "), [&first[..], &["1.1 MiB", "9f86d081884c", "-"][..]].concat());
        let second = ["2", "refused", "2026-03-01T10:06:00.000Z", "1.5 s", "0", "0", "-"];
        let rest = ["0 B", "caaab906f77b", "it failed 2 times"];
        assert_eq!(cells(&text, "2 "), [&second[..], &rest[..]].concat());
        let third = cells(&text, "1 ");
        assert_eq!((&*third[4], &*third[5]), ("1000", "4"));
        assert_eq!(third[6], "1.0 ms");
    }

    #[test]
    fn above_the_table_stands_what_serves_and_what_would_come_back() {
        let text = versions(&fixture());
        let serves = ["serves", "version 3, on probation until it has run for another 7 min 12 s"];
        assert_eq!(cells(&text, "serves"), serves);
        assert_eq!(cells(&text, "comes back"), ["comes back", "version 1"]);
        assert_eq!(cells(&text, "held back"), ["held back", "-"]);
        assert!(!text.contains("kept"), "{text}");
    }

    #[test]
    fn a_version_that_is_held_back_is_named_with_the_reason() {
        let reason = "version 2 was refused: it failed 2 times";
        let status = VersionsStatus { serving: Some(1), held_back: Some(reason.to_owned()), ..fixture() };
        let text = versions(&status);
        assert_eq!(cells(&text, "serves"), ["serves", "version 1, proven"]);
        assert_eq!(cells(&text, "comes back"), ["comes back", "-"]);
        assert_eq!(cells(&text, "held back"), ["held back", reason]);
    }

    #[test]
    fn a_version_that_one_instance_tries_stands_below_the_one_that_serves() {
        let text = versions(&VersionsStatus { serving: Some(1), canary: Some(3), ..fixture() });
        assert_eq!(cells(&text, "serves"), ["serves", "version 1, proven"]);
        let canary = "version 3, on probation until it has run for another 7 min 12 s, in one instance";
        assert_eq!(cells(&text, "canary"), ["canary", canary]);
    }

    #[test]
    fn changes_stand_below_unless_there_are_none() {
        let text = versions(&fixture());
        let change = ["2026-03-01T10:06:00.000Z", "2", "refused", "1", "it failed 2 times"];
        assert_eq!(cells(&text, "2026-"), change);
        let text = versions(&VersionsStatus { changes: [].into(), ..fixture() });
        assert!(!text.contains("BECAME"), "{text}");
    }

    #[test]
    fn versions_that_are_kept_in_memory_are_said_to_be() {
        let text = versions(&VersionsStatus { is_kept: false, ..fixture() });
        assert!(text.contains("kept        in memory, until Main ends: `main.state-dir`"), "{text}");
    }

    #[test]
    fn reasons_cannot_play_with_the_terminal() {
        let mut status = fixture();
        let reason = "\x1b[2Jb\nc".to_owned();
        (status.held_back, status.versions[0].reason) = (Some(reason.clone()), Some(reason.clone()));
        status.changes[0].reason = reason;
        let text = versions(&status);
        assert!(!text.contains('\x1b') && !text.contains("b\nc"), "{text}");
    }
}
