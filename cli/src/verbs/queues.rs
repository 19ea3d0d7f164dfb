//! `weir queues`: shared queues and their jobs.

use std::time::SystemTime;

use bytes::Bytes;
use clap::{ArgGroup, Subcommand};
use clap_complete::engine::ArgValueCompleter;
use hyper::Method;
use serde::Deserialize;
use serde_json::value::RawValue;
use weir_host::traffic::{JobStatus, QueueStatus};

use crate::{
    args::Asked,
    client::{Client, Patience, Route},
    complete,
    output::{self, counted, printable},
    payload::{self, payload},
    tables::{NOTHING, age, lined_up, size},
};

/// The most characters of a payload that are shown.
const SHOWN: usize = 60;

#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
LIMIT bounds the jobs that wait or are in hand. DONE counts finished jobs, RETURNED deliveries that came back
undone, DEAD jobs delivered too often, SHED jobs lost for want of room, and REFUSED refused jobs. IDLE is
readers that wait for a job, BLOCKED is senders that wait for room.

Examples:
  weir queues
  weir queues show uploads
  weir queues --json | jq -r '.queues[] | select(.dead > 0) | .queue'"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show the jobs that wait in a queue, first to last
    Show(ShowArgs),
    /// Put a job at the end of a queue
    Put(PutArgs),
    /// Put dead letters back into the queues where they died
    Requeue(RequeueArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
DELIVERIES counts how often a job was delivered from this queue. A dead letter also has DIED: the queue where
it died, and after how many deliveries. Payloads are shortened; --json has payloads of up to 4096 bytes.

Examples:
  weir queues show uploads
  weir queues show --max 1 uploads
  weir queues show --json uploads-dead | jq '.jobs[].\"died-in\"'")]
pub(crate) struct ShowArgs {
    /// The queue
    #[arg(value_name = "QUEUE", add = ArgValueCompleter::new(complete::queue))]
    queue: String,
    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    max: u32,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "\
If the queue is full, its `when-full` decides: the command may wait for room, up to
`main.request-timeout`.

Examples:
  weir queues put uploads '{\"file\": \"/data/1.log\"}'
  weir queues put uploads @job.json")]
pub(crate) struct PutArgs {
    /// The queue
    #[arg(value_name = "QUEUE", add = ArgValueCompleter::new(complete::queue))]
    queue: String,
    /// The payload: text, `-` for all of stdin, or `@file`; empty by default
    #[arg(value_name = "PAYLOAD|-|@FILE", allow_hyphen_values = true)]
    payload: Option<String>,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("which").required(true), after_help = "\
Requeued jobs are delivered as if they were new. A dead letter that finds no room stays.

Examples:
  weir queues requeue --id 4711 uploads-dead
  weir queues requeue --all uploads-dead")]
pub(crate) struct RequeueArgs {
    /// The queue in which the dead letters wait
    #[arg(value_name = "QUEUE", add = ArgValueCompleter::new(complete::queue))]
    queue: String,
    /// The dead letter with this id, from `weir queues show`
    #[arg(long, value_name = "ID", group = "which")]
    id: Option<u64>,
    /// Every dead letter
    #[arg(long, group = "which")]
    all: bool,
    #[command(flatten)]
    asked: Asked,
}

#[derive(Deserialize)]
struct Queues {
    queues: Vec<QueueStatus>,
}

#[derive(Deserialize)]
struct Jobs {
    jobs: Vec<Job>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Job {
    #[serde(flatten)]
    status: JobStatus,
    payload: Option<Box<RawValue>>,
    payload_text: Option<String>,
    payload_base64: Option<String>,
}

#[derive(Deserialize)]
struct Put {
    id: u64,
}

#[derive(Deserialize)]
struct Requeued {
    requeued: u64,
}

pub(super) async fn run(Args { command, asked }: Args) -> anyhow::Result<()> {
    match command {
        None => asked.get(&Route::new(&["queues"]), queues).await,
        Some(Command::Show(args)) => show(args).await,
        Some(Command::Put(args)) => put(args).await,
        Some(Command::Requeue(args)) => requeue(args).await,
    }
}

async fn show(ShowArgs { queue, max, asked: Asked { json, target } }: ShowArgs) -> anyhow::Result<()> {
    let route = Route::named(&["queues", &queue, "jobs"])?.with("max", Some(&max.to_string()));
    let mut client = Client::connect(&target).await?;
    if json {
        // Main's own text is kept, since numbers in payloads may have more digits than Rust's types.
        let answer: Box<RawValue> = client.get(&route).await?;
        return output::json_line(answer.get().as_bytes());
    }
    let Jobs { jobs: shown } = client.get(&route).await?;
    output::write(jobs(&queue, &shown, SystemTime::now()).as_bytes())
}

async fn put(PutArgs { queue, payload: text, asked }: PutArgs) -> anyhow::Result<()> {
    let route = Route::named(&["queues", &queue, "jobs"])?;
    let (payload, patience) = (payload(text.as_deref())?, Patience::WhileMainAnswers);
    asked.send(Method::POST, &route, payload, patience, |Put { id }| format!("put as job {id}\n")).await
}

async fn requeue(RequeueArgs { queue, id, all: _, asked }: RequeueArgs) -> anyhow::Result<()> {
    let id = id.map(|id| id.to_string());
    let route = Route::named(&["queues", &queue, "requeue"])?.with("id", id.as_deref());
    let text = |Requeued { requeued }| match requeued {
        0 => format!("no dead letter waits in `{}`\n", printable(&queue)),
        requeued => format!("requeued {}\n", counted(requeued, "job")),
    };
    asked.send(Method::POST, &route, Bytes::new(), Patience::Query, text).await
}

fn queues(Queues { queues }: Queues) -> String {
    if queues.is_empty() {
        return "no queues are configured\n".to_owned();
    }
    lined_up(
        &queues,
        &[
            ("QUEUE", &|of| of.queue.to_string()),
            ("WAITING", &|of| of.waiting.to_string()),
            ("IN HAND", &|of| of.in_hand.to_string()),
            ("LIMIT", &|of| of.messages_limit.to_string()),
            ("BYTES", &|of| format!("{} / {}", size(of.bytes), size(of.bytes_limit))),
            ("PUT/S", &|of| of.put_rate.to_string()),
            ("DONE/S", &|of| of.done_rate.to_string()),
            ("DONE", &|of| of.done.to_string()),
            ("RETURNED", &|of| of.returned.to_string()),
            ("DEAD", &|of| of.dead.to_string()),
            ("SHED", &|of| of.shed.to_string()),
            ("REFUSED", &|of| of.refused.to_string()),
            ("IDLE", &|of| of.idle_readers.to_string()),
            ("BLOCKED", &|of| of.blocked.to_string()),
            ("WHEN FULL", &when_full),
        ],
    )
}

fn when_full(queue: &QueueStatus) -> String {
    if queue.configured { printable(&queue.when_full) } else { "no longer configured".to_owned() }
}

fn jobs(queue: &str, jobs: &[Job], now: SystemTime) -> String {
    if jobs.is_empty() {
        return format!("no job waits in `{}`\n", printable(queue));
    }
    lined_up(
        jobs,
        &[
            ("ID", &|of| of.status.id.to_string()),
            ("SENDER", &|of| printable(&of.status.sender)),
            ("AGE", &|of| age(of.status.put, now)),
            ("DELIVERIES", &|of| of.status.deliveries.to_string()),
            ("DIED", &|of| died(&of.status)),
            ("BYTES", &|of| size(of.status.bytes as u64)),
            ("PAYLOAD", &shortened),
        ],
    )
}

fn died(JobStatus { died_in, died_after, .. }: &JobStatus) -> String {
    let died = |queue| format!("in {queue} after {}", died_after.unwrap_or_default());
    died_in.as_ref().map_or(NOTHING.to_owned(), died)
}

fn shortened(job: &Job) -> String {
    let Job { payload, payload_text, payload_base64, .. } = job;
    let shown = payload::shown(payload.as_deref(), payload_text.as_deref(), payload_base64.as_deref());
    let shown = shown.unwrap_or(NOTHING.to_owned());
    match shown.char_indices().nth(SHOWN).and_then(|(end, _)| shown.get(..end)) {
        Some(beginning) => format!("{beginning}…"),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::{assert_golden, traffic};

    fn now() -> SystemTime {
        humantime::parse_rfc3339("2026-11-20T13:29:43.000Z").unwrap()
    }

    #[test]
    fn queues_line_up_with_what_became_of_their_jobs() {
        assert_golden("queues", &queues(traffic("queues")));
    }

    #[test]
    fn jobs_line_up_with_where_they_died_and_the_beginning_of_what_they_are() {
        assert_golden("jobs", &jobs("uploads-dead", &traffic::<Jobs>("jobs").jobs, now()));
    }

    #[test]
    fn where_there_is_nothing_it_is_said_so() {
        assert_eq!(queues(Queues { queues: Vec::new() }), "no queues are configured\n");
        assert_eq!(jobs("uploads", &[], now()), "no job waits in `uploads`\n");
    }

    #[test]
    fn payloads_from_outside_cannot_play_with_the_terminal() {
        let mut all: Jobs = traffic("jobs");
        all.jobs[0].status.sender = "a\x1b[2J".to_owned();
        all.jobs[0].payload_text = Some("\u{9b}2J\u{202e}\nforged".to_owned());
        all.jobs[0].payload = None;
        let text = jobs("uploads", &all.jobs, now());
        assert!(!text.contains(['\x1b', '\u{9b}', '\u{202e}']), "{text}");
        assert_eq!(text.lines().count(), all.jobs.len() + 1, "{text}");
    }
}
