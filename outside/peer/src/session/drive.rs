//! The task of a session: it reads and it writes, and it ends with the session.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    time,
};

use super::{Outgoing, Session};
use crate::{
    Ended,
    frame::{FrameError, FromMain, READ_SIZE, frame_max, next_frame},
};

/// Time to write what is left when the session ends, and time for Main's last words when it reads no more.
const LAST_TIME: Duration = Duration::from_secs(1);

impl Session {
    /// Reads and writes until the session ends. `buffer` holds what came with the welcome.
    pub(crate) async fn run(self: Arc<Self>, stream: UnixStream, buffer: BytesMut) {
        let _over = Over(&self);
        let (reader, writer) = stream.into_split();
        tokio::join!(self.read_until_end(reader, buffer), self.write_until_end(writer));
    }

    async fn read_until_end(&self, mut reader: OwnedReadHalf, mut buffer: BytesMut) {
        tokio::select! {
            Err(ended) = self.read(&mut reader, &mut buffer) => self.finish(ended),
            _ended = self.ended() => {}
        }
    }

    /// Reads frames and acts on them. Never returns `Ok`: the error says why the session ends.
    async fn read(&self, reader: &mut OwnedReadHalf, buffer: &mut BytesMut) -> Result<(), Ended> {
        let max = frame_max(self.limits.message_size);
        let malformed = |error: FrameError| Ended::Protocol(error.to_string());
        loop {
            while let Some(frame) = next_frame(buffer, max).map_err(malformed)? {
                self.accept(FromMain::decode(&frame).map_err(malformed)?)?;
            }
            buffer.reserve(READ_SIZE);
            match reader.read_buf(buffer).await {
                Ok(0) => return Err(Ended::Broken("Main closed it without a reason".to_owned())),
                Ok(_) => {}
                Err(error) => return Err(Ended::Broken(error.to_string())),
            }
        }
    }

    /// Writes until the session ends, and then what was sent before, within a second.
    async fn write_until_end(&self, mut writer: OwnedWriteHalf) {
        let after_end = async {
            self.ended().await;
            time::sleep(LAST_TIME).await;
        };
        let written = tokio::select! {
            written = self.write(&mut writer) => written,
            () = after_end => return,
        };
        if let Err(error) = written {
            // Main may have said why before it closed the connection, and then the reader ends the session with that.
            self.outgoing.end();
            if time::timeout(LAST_TIME, self.ended()).await.is_err() {
                self.finish(Ended::Broken(error.to_string()));
            }
        }
    }

    async fn write(&self, writer: &mut OwnedWriteHalf) -> io::Result<()> {
        let mut buffer = BytesMut::new();
        while self.outgoing.take(&mut buffer).await {
            writer.write_all(&buffer).await?;
            buffer.clear();
            if buffer.capacity() > Outgoing::KEPT {
                buffer = BytesMut::new();
            }
        }
        Ok(())
    }
}

/// Ends the session with its task, also where a runtime drops the task.
struct Over<'s>(&'s Session);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.finish(Ended::Broken("the runtime of the session ended".to_owned()));
        self.0.state.send_modify(|state| state.is_over = true);
    }
}
