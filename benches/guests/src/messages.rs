//! Kinds that call, receive events, pass jobs on, and send messages that stay waiting.

use std::fmt::Debug;

use weir_sdk::raw::{
    channel::{self, BatchOrder, Message},
    config, events,
    queues::{self, Taking},
    requests::{self, Options},
};

use crate::quiet;

const PATIENT: Options = Options { timeout_ms: Some(60_000), parent: None };

/// For messages that stay waiting.
const VERY_PATIENT: Options = Options { timeout_ms: Some(3_600_000), parent: None };

const PAYLOAD: &[u8] = b"sixteen bytes ok";

pub(crate) fn run(kind: &str) -> Option<Result<(), String>> {
    Some(match kind {
        "caller" => caller(),
        "answerer" => answerer(),
        "fill-request" => requests_to(kind, "mute@1", "hear"),
        "fill-response" => requests_to(kind, "idle.n0@1", "echo"),
        "fill-event" => fill(kind, || {
            let receipt = events::publish("paced", PAYLOAD, VERY_PATIENT).map_err(text)?;
            if receipt.delivered == 1 { Ok(()) } else { Err(text(receipt)) }
        }),
        "fill-job" => {
            let queue = queues::open("jobs");
            fill(kind, || {
                queues::put(*queue.as_ref().map_err(text)?, PAYLOAD, VERY_PATIENT).map(drop).map_err(text)
            })
        }
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

/// Takes jobs one by one, in batches or not at all, as `prepare` says. Answers which ones came: a bit for each.
fn reader() -> Result<(), String> {
    let first = channel::serve(&configured("contract")?, &["prepare", "report"].map(str::to_owned));
    let prepare = first.map_err(text)?;
    let queue = queues::open("jobs").map_err(text)?;
    let mut reader = Reader { prepare, queue, at_once: 0, bytes: 0, came: Vec::new() };
    loop {
        if reader.at_once > 1 {
            let batch = channel::receive_batch(reader.at_once, BatchOrder::AnyOrder, None).map_err(text)?;
            if batch.is_empty() {
                return Ok(());
            }
            reader.handle_batch(batch)?;
        } else {
            let Some(message) = channel::receive() else { return Ok(()) };
            reader.handle(message)?;
        }
    }
}

struct Reader {
    /// The number of that operation.
    prepare: u32,
    queue: u32,
    /// Jobs of a batch. 1: they come one by one; 0: none comes.
    at_once: u32,
    bytes: usize,
    came: Vec<u8>,
}

impl Reader {
    /// Finishes all jobs of a batch, and asks for the next.
    fn handle_batch(&mut self, batch: Vec<Message>) -> Result<(), String> {
        let jobs = batch.iter().filter_map(|message| match message {
            Message::Job(job) => Some(job.id),
            _ => None,
        });
        let jobs: Vec<_> = jobs.collect();
        for message in batch {
            self.handle(message)?;
        }
        if jobs.is_empty() {
            return Ok(());
        }
        queues::done_all(&jobs).map_err(text)?;
        queues::take(self.queue, Taking::Next(self.at_once)).map_err(text)
    }

    fn handle(&mut self, message: Message) -> Result<(), String> {
        match message {
            Message::Job(job) => self.note(&job.payload, job.deliveries),
            Message::Request(request) if request.operation == self.prepare => {
                self.at_once = u32::try_from(number(&request.payload, 0)?).map_err(text)?;
                self.came = vec![0; number(&request.payload, 1)?.div_ceil(8)];
                self.bytes = number(&request.payload, 2)?;
                let how = if self.at_once == 1 { Taking::OneByOne } else { Taking::Next(self.at_once) };
                queues::take(self.queue, how).map_err(text)?;
                channel::respond(request.id, Ok(b"")).map_err(text)
            }
            Message::Request(request) => channel::respond(request.id, Ok(&self.came)).map_err(text),
            _ => Ok(()),
        }
    }

    fn note(&mut self, job: &[u8], deliveries: u32) -> Result<(), String> {
        let bit = number(job, 0)?;
        if job.len() != self.bytes {
            return Err(format!("job {bit} has {} bytes", job.len()));
        }
        let byte = self.came.get_mut(bit / 8).ok_or("a job of no number")?;
        if deliveries > 1 || *byte & (1 << (bit % 8)) != 0 {
            return Err(format!("job {bit} came again"));
        }
        *byte |= 1 << (bit % 8);
        if number(job, 1)? == 1 {
            events::publish("last", b"", PATIENT).map_err(text)?;
        }
        Ok(())
    }
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

/// Makes the number of calls that a request names, one after the other with the named size. Answers when all
/// answers are there.
fn caller() -> Result<(), String> {
    channel::serve(&configured("serves")?, &["go".to_owned()]).map_err(text)?;
    let target = requests::open(&configured("calls")?, "echo", None).map_err(text)?;
    while let Some(message) = channel::receive() {
        let Message::Request(request) = message else { continue };
        let [calls, size] = [number(&request.payload, 0)?, number(&request.payload, 1)?];
        let mut payload = vec![0x5a; size];
        for call in 0..calls {
            for (place, byte) in payload.iter_mut().zip(call.to_le_bytes()) {
                *place = byte;
            }
            let answer = requests::call(target, &payload, PATIENT).map_err(text)?;
            if answer.len() != size || !answer.iter().take(4).eq(payload.iter().take(4)) {
                return Err(format!("call {call} was answered otherwise"));
            }
        }
        channel::respond(request.id, Ok(b"")).map_err(text)?;
    }
    Ok(())
}

fn answerer() -> Result<(), String> {
    channel::serve(&configured("serves")?, &["echo".to_owned()]).map_err(text)?;
    let mut next = channel::receive();
    while let Some(message) = next {
        next = match message {
            Message::Request(request) => {
                channel::respond_and_receive(request.id, Ok(&request.payload)).map_err(text)?
            }
            _ => channel::receive(),
        };
    }
    Ok(())
}

fn requests_to(kind: &str, contract: &str, operation: &str) -> Result<(), String> {
    let target = requests::open(contract, operation, None).map_err(text)?;
    fill(kind, || requests::send(target, PAYLOAD, VERY_PATIENT).map(drop).map_err(text))
}

/// Sends as many as a request says, answers, and then receives nothing more.
fn fill(kind: &str, mut send: impl FnMut() -> Result<(), String>) -> Result<(), String> {
    channel::serve(&format!("{kind}@1"), &["fill".to_owned()]).map_err(text)?;
    while let Some(message) = channel::receive() {
        let Message::Request(request) = message else { continue };
        let count = String::from_utf8(request.payload).map_err(text)?.parse::<u32>().map_err(text)?;
        for _ in 0..count {
            send()?;
        }
        channel::respond(request.id, Ok(count.to_string().as_bytes())).map_err(text)?;
        return quiet::asleep_in_poll();
    }
    Ok(())
}

/// The number at that place of a message: four bytes each, little-endian.
fn number(message: &[u8], place: usize) -> Result<usize, String> {
    let bytes = message.as_chunks().0.get(place).ok_or("a message is too short")?;
    usize::try_from(u32::from_le_bytes(*bytes)).map_err(text)
}

fn configured(key: &str) -> Result<String, String> {
    config::get(key).ok().flatten().ok_or_else(|| format!("no `{key}`"))
}

pub(crate) fn text(error: impl Debug) -> String {
    format!("{error:?}")
}
