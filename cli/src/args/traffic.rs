//! Arguments of `weir tail`, `weir topics` and `weir queues`.

use clap::{ArgGroup, Args as ClapArgs, Subcommand};
use clap_complete::engine::ArgValueCompleter;

use super::{Asked, Target};
use crate::complete;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
SEQUENCE is the number of the topic's last event, and RETAINED the size of its retained value. LAG is waiting
events and their limit. SHED is events lost for want of room, REFUSED is refused events, and BLOCKED is
publishers that wait for room.

Examples:
  weir topics
  weir topics 'settings.changed.*'
  weir topics --json | jq '.subscriptions[] | select(.shed > 0) | .subscriber'")]
pub(crate) struct TopicsArgs {
    /// Only topics that match, and subscriptions that can get their events
    #[arg(value_name = "PATTERN")]
    #[arg(add = ArgValueCompleter::new(complete::topic_pattern))]
    pub(crate) pattern: Option<String>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
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
pub(crate) struct QueuesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<QueuesCommand>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueuesCommand {
    /// Show the jobs that wait in a queue, first to last
    Show(ShowArgs),
    /// Put a job at the end of a queue
    Put(PutArgs),
    /// Put dead letters back into the queues where they died
    Requeue(RequeueArgs),
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
DELIVERIES counts how often a job was delivered from this queue. A dead letter also has DIED: the queue where
it died, and after how many deliveries. Payloads are shortened; --json has payloads of up to 4096 bytes.

Examples:
  weir queues show uploads
  weir queues show --max 1 uploads
  weir queues show --json uploads-dead | jq '.jobs[].\"died-in\"'")]
pub(crate) struct ShowArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    #[arg(add = ArgValueCompleter::new(complete::queue))]
    pub(crate) queue: String,
    /// Maximum number of jobs
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) max: u32,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
If the queue is full, its `when-full` decides: the command may wait for room, up to
`main.request-timeout`.

Examples:
  weir queues put uploads '{\"file\": \"/data/1.log\"}'
  weir queues put uploads @job.json")]
pub(crate) struct PutArgs {
    /// The queue
    #[arg(value_name = "QUEUE")]
    #[arg(add = ArgValueCompleter::new(complete::queue))]
    pub(crate) queue: String,
    /// The payload: text, `-` for all of stdin, or `@file`; empty by default
    #[arg(value_name = "PAYLOAD|-|@FILE", allow_hyphen_values = true)]
    pub(crate) payload: Option<String>,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("which").required(true), after_help = "\
Requeued jobs are delivered as if they were new. A dead letter that finds no room stays.

Examples:
  weir queues requeue --id 4711 uploads-dead
  weir queues requeue --all uploads-dead")]
pub(crate) struct RequeueArgs {
    /// The queue in which the dead letters wait
    #[arg(value_name = "QUEUE")]
    #[arg(add = ArgValueCompleter::new(complete::queue))]
    pub(crate) queue: String,
    /// The dead letter with this id, from `weir queues show`
    #[arg(long, value_name = "ID", group = "which")]
    pub(crate) id: Option<u64>,
    /// Every dead letter
    #[arg(long, group = "which")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) asked: Asked,
}

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
In a pattern, `*` stands for one segment of a topic, and `>` at the end for the rest. Retained values come
first. The number before an event is its place in its topic.

Examples:
  weir tail '>'
  weir tail 'settings.changed.*'
  weir tail --json 'sensors.>' | jq .payload")]
pub(crate) struct TailArgs {
    /// The pattern that topics must match
    #[arg(value_name = "PATTERN")]
    #[arg(add = ArgValueCompleter::new(complete::topic_pattern))]
    pub(crate) pattern: String,
    /// Print JSON, one object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}
