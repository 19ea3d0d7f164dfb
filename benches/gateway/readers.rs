//! Many subscribers on one thread, that read and count.

use std::{
    io::{ErrorKind, Read},
    net::TcpStream,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::{
    buffer::spare_capacity,
    event::{
        Timespec,
        epoll::{self, CreateFlags, EventData, EventFlags},
    },
};

use crate::{
    Answering, line, now,
    subscriber::{Frames, Way},
};

/// Without a packet for so long, something is lost.
const PATIENCE: Duration = Duration::from_secs(30);

const READ: usize = 64 * 1024;

#[derive(Debug)]
struct Reader {
    stream: TcpStream,
    frames: Frames,
    /// Packets of this round that have come.
    came: usize,
}

pub(crate) fn start(way: Way, address: &str, subscribers: u32) -> Result<Answering> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let mut readers = Vec::new();
    for number in 0..subscribers {
        let stream = way.subscribe(address)?;
        stream.set_nonblocking(true)?;
        epoll::add(&epoll, &stream, EventData::new_u64(number.into()), EventFlags::IN)?;
        readers.push(Reader { stream, frames: Frames::new(way), came: 0 });
    }
    let mut input = vec![0; READ];
    let mut events = Vec::with_capacity(readers.len());
    Ok(Box::new(move |asked| {
        let (count, bytes) = asked.split_once(' ').context("two numbers are needed")?;
        let mut round = Round::new(count.parse()?, bytes.parse()?, readers.len());
        let mut end = Instant::now() + PATIENCE;
        while !round.is_over() {
            events.clear();
            let patience = Timespec::try_from(PATIENCE)?;
            epoll::wait(&epoll, spare_capacity(&mut events), Some(&patience))?;
            for event in &events {
                let reader =
                    usize::try_from(event.data.u64()).ok().and_then(|number| readers.get_mut(number));
                reader.context("an event of no reader")?.read(&mut input, &mut round)?;
                end = Instant::now() + PATIENCE;
            }
            ensure!(
                Instant::now() < end,
                "{} of {} packets have come to all",
                round.times.len(),
                round.count
            );
        }
        for reader in &mut readers {
            reader.came = 0;
        }
        Ok(line(&round.times))
    }))
}

impl Reader {
    fn read(&mut self, input: &mut [u8], round: &mut Round) -> Result<()> {
        let read = match self.stream.read(input) {
            Ok(0) => anyhow::bail!("a subscriber was sent away"),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let (mut is_short, bytes, came) = (false, round.bytes, &mut self.came);
        let input = input.get(..read).unwrap_or_default();
        self.frames.take(
            input,
            |payload| is_short |= payload < bytes,
            || {
                round.came(*came);
                *came += 1;
            },
        );
        ensure!(!is_short, "something else than a packet has come");
        Ok(())
    }
}

/// Packets, and to how many subscribers each has come.
#[derive(Debug)]
struct Round {
    count: usize,
    bytes: u64,
    subscribers: usize,
    came: Vec<usize>,
    times: Vec<u64>,
}

impl Round {
    fn new(count: usize, bytes: u64, subscribers: usize) -> Self {
        Self { count, bytes, subscribers, came: vec![0; count], times: Vec::with_capacity(count) }
    }

    fn is_over(&self) -> bool {
        self.times.len() >= self.count
    }

    /// Another subscriber has the packet. Packets come to all in order.
    fn came(&mut self, packet: usize) {
        if let Some(came) = self.came.get_mut(packet) {
            *came += 1;
            if *came == self.subscribers {
                self.times.push(now());
            }
        }
    }
}
