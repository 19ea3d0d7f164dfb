//! Kinds that receive events or pass jobs on, and report at the end.

use std::fmt::Debug;

use weir_sdk::raw::{
    channel::{self, Message},
    config, events,
    queues::{self, Taking},
    requests::Options,
};

use crate::quiet;

pub(crate) const PATIENT: Options = Options { timeout_ms: Some(60_000), parent: None };

pub(crate) fn run(kind: &str) -> Option<Result<(), String>> {
    Some(match kind {
        "subscriber" => subscriber(),
        "stalled" => stalled(),
        "reader" => reader(),
        "writer" => writer(),
        _ => return None,
    })
}

/// Receives packets, whole and in order. After the number that a request names, answers how long each waited,
/// and begins anew.
fn subscriber() -> Result<(), String> {
    channel::serve(&configured("contract")?, &["report".to_owned()]).map_err(text)?;
    events::subscribe("paced").map_err(text)?;
    events::subscribe("unpaced").map_err(text)?;
    let mut waits: Vec<[u8; 4]> = Vec::new();
    let mut asked = None;
    while let Some(message) = channel::receive() {
        match message {
            Message::Event(event) => {
                let wanted = [waits.len(), event.payload.len()];
                let came = [number(&event.payload, 0)?, number(&event.payload, 1)?];
                if came != wanted || event.lost > 0 {
                    return Err(format!("{came:?} came for {wanted:?}, {} lost", event.lost));
                }
                waits.push(event.waited_us.to_le_bytes());
            }
            Message::Request(request) => asked = Some((request.id, number(&request.payload, 0)?)),
            _ => {}
        }
        if let Some((request, packets)) = asked
            && waits.len() >= packets
        {
            channel::respond(request, Ok(waits.as_flattened())).map_err(text)?;
            waits.clear();
            asked = None;
        }
    }
    Ok(())
}

fn stalled() -> Result<(), String> {
    events::subscribe("paced").map_err(text)?;
    quiet::asleep_in_poll()
}

/// Takes jobs, or none, as `prepare` says. Answers which ones came: a bit for each.
fn reader() -> Result<(), String> {
    let first = channel::serve(&configured("contract")?, &["prepare", "report"].map(str::to_owned));
    let prepare = first.map_err(text)?;
    let queue = queues::open("jobs").map_err(text)?;
    let (mut came, mut bytes) = (Vec::new(), 0);
    while let Some(message) = channel::receive() {
        match message {
            Message::Job(job) => {
                let bit = number(&job.payload, 0)?;
                if job.payload.len() != bytes {
                    return Err(format!("job {bit} has {} bytes", job.payload.len()));
                }
                let byte = came.get_mut(bit / 8).ok_or("a job of no number")?;
                if job.deliveries > 1 || *byte & (1 << (bit % 8)) != 0 {
                    return Err(format!("job {bit} came again"));
                }
                *byte |= 1 << (bit % 8);
                if number(&job.payload, 1)? == 1 {
                    events::publish("last", b"", PATIENT).map_err(text)?;
                }
            }
            Message::Request(request) if request.operation == prepare => {
                let [takes, jobs] = [number(&request.payload, 0)?, number(&request.payload, 1)?];
                bytes = number(&request.payload, 2)?;
                came = vec![0_u8; jobs.div_ceil(8)];
                let how = if takes == 1 { Taking::OneByOne } else { Taking::Next(0) };
                queues::take(queue, how).map_err(text)?;
                channel::respond(request.id, Ok(b"")).map_err(text)?;
            }
            Message::Request(request) => {
                channel::respond(request.id, Ok(&came)).map_err(text)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Puts its share of the jobs at each `go`.
fn writer() -> Result<(), String> {
    let index: usize = configured("index")?.parse().map_err(text)?;
    let queue = queues::open("jobs").map_err(text)?;
    events::subscribe("go").map_err(text)?;
    while let Some(message) = channel::receive() {
        let Message::Event(event) = message else { continue };
        let [writers, extensions, jobs] =
            [number(&event.payload, 0)?, number(&event.payload, 1)?, number(&event.payload, 2)?];
        if index >= extensions {
            continue;
        }
        let mut job = vec![0; number(&event.payload, 3)?];
        for number in (index..jobs).step_by(writers) {
            let is_last = number + writers >= jobs;
            let head = job.first_chunk_mut::<5>().ok_or("a job is too short")?;
            head[..4].copy_from_slice(&u32::try_from(number).map_err(text)?.to_le_bytes());
            head[4] = is_last.into();
            queues::put(queue, &job, PATIENT).map_err(text)?;
        }
    }
    Ok(())
}

/// The number at that place of a message: four bytes each, little-endian.
pub(crate) fn number(message: &[u8], place: usize) -> Result<usize, String> {
    let bytes = message.as_chunks().0.get(place).ok_or("a message is too short")?;
    usize::try_from(u32::from_le_bytes(*bytes)).map_err(text)
}

pub(crate) fn configured(key: &str) -> Result<String, String> {
    config::get(key).ok().flatten().ok_or_else(|| format!("no `{key}`"))
}

pub(crate) fn text(error: impl Debug) -> String {
    format!("{error:?}")
}
