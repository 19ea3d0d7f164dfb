//! A native server of the peer protocol, with no more of it than the requests need, and a native caller of a program
//! that serves.

use std::{path::Path, sync::mpsc};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Bytes, BytesMut};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{UnixListener, UnixStream},
};
use weir_peer::frame::{FromMain, FromPeer, READ_SIZE, VERSION, frame_max, next_frame};

use super::SIDECAR;
use crate::scenarios::{
    calls::{Calls, Echo, Worker},
    device::PATIENCE,
};

/// The most bytes of a message: more than any message of this scenario has.
const MESSAGE_SIZE: u32 = 1024 * 1024;

/// A thread with an echo for every connection.
#[derive(Debug)]
pub(super) struct Native(Worker);

#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    input: BytesMut,
    output: BytesMut,
    /// The number of the last request.
    number: u32,
}

impl Native {
    pub(super) fn start(socket: &Path) -> Result<Self> {
        let worker = Worker::start()?;
        let listener = listen(&worker, socket)?;
        worker.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // The echo ends with its connection.
                let _echo = tokio::spawn(Connection::new(stream).echo());
            }
        });
        Ok(Self(worker))
    }

    /// Accepts one program that serves, and tells of it when it does.
    pub(super) fn accept(&self, socket: &Path) -> Result<mpsc::Receiver<Result<Connection>>> {
        let listener = listen(&self.0, socket)?;
        let (tell, served) = mpsc::sync_channel(1);
        self.0.spawn(async move {
            let served = match listener.accept().await {
                Ok((stream, _)) => Connection::new(stream).served().await,
                Err(error) => Err(error.into()),
            };
            // Telling fails if nothing waits any more.
            let _told = tell.send(served);
        });
        Ok(served)
    }

    /// Makes the requests from a task of the thread, each after the answer to the one before.
    pub(super) fn call_sidecar(&self, served: &mut Option<Connection>, calls: Calls) -> Result<()> {
        let connection = served.take().context("the program is gone")?;
        *served = Some(self.0.run(calls.in_turn(connection, calls.number))??);
        Ok(())
    }
}

fn listen(worker: &Worker, socket: &Path) -> Result<UnixListener> {
    let socket = socket.to_owned();
    Ok(worker.run(async move { UnixListener::bind(socket) })??)
}

impl Connection {
    fn new(stream: UnixStream) -> Self {
        Self { stream, input: BytesMut::new(), output: BytesMut::new(), number: 0 }
    }

    /// Answers calls with their payload.
    async fn echo(mut self) -> Result<()> {
        loop {
            self.fill().await?;
            while let Some(frame) = self.next()? {
                match FromPeer::decode(&frame)? {
                    FromPeer::Hello(_) => self.welcome(),
                    FromPeer::Call { id, payload, .. } => {
                        FromMain::Answer { id, payload }.encode(&mut self.output);
                    }
                    other => bail!("an echo has no use for {other:?}"),
                }
            }
            self.flush().await?;
        }
    }

    /// Waits until the program serves.
    async fn served(mut self) -> Result<Self> {
        loop {
            self.fill().await?;
            while let Some(frame) = self.next()? {
                match FromPeer::decode(&frame)? {
                    FromPeer::Hello(_) => self.welcome(),
                    FromPeer::Serve { id, .. } => {
                        FromMain::Answer { id, payload: Bytes::new() }.encode(&mut self.output);
                        self.flush().await?;
                        return Ok(self);
                    }
                    other => bail!("a program that serves does not begin with {other:?}"),
                }
            }
            self.flush().await?;
        }
    }

    fn welcome(&mut self) {
        let welcome = FromMain::Welcome {
            version: VERSION,
            session: 1,
            message_size: MESSAGE_SIZE,
            in_flight: 64,
            subscriptions: 64,
        };
        welcome.encode(&mut self.output);
    }

    fn next(&mut self) -> Result<Option<Bytes>> {
        Ok(next_frame(&mut self.input, frame_max(MESSAGE_SIZE))?)
    }

    async fn fill(&mut self) -> Result<()> {
        self.input.reserve(READ_SIZE);
        ensure!(self.stream.read_buf(&mut self.input).await? > 0, "the program has gone");
        Ok(())
    }

    async fn flush(&mut self) -> Result<()> {
        self.stream.write_all(&self.output).await?;
        self.output.clear();
        Ok(())
    }
}

impl Echo for Connection {
    async fn call(&mut self, payload: Bytes) -> Result<Bytes> {
        self.number += 1;
        let (request, (_, contract)) = (self.number, SIDECAR);
        let (sender, operation) = ("caller", "echo");
        let remaining_ms = u32::try_from(PATIENCE.as_millis())?;
        let frame = FromMain::Request {
            request,
            remaining_ms,
            message: request.into(),
            sender,
            contract,
            operation,
            payload,
        };
        frame.encode(&mut self.output);
        self.flush().await?;
        loop {
            if let Some(frame) = self.next()? {
                match FromPeer::decode(&frame)? {
                    FromPeer::Reply { request: of, payload } if of == request => return Ok(payload),
                    other => bail!("{other:?} in place of a reply"),
                }
            }
            self.fill().await?;
        }
    }
}
