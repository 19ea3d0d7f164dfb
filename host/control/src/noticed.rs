//! A connection that notices whether its other end is still there.

use std::{
    io::{self, IoSlice},
    os::fd::AsFd,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    time::Timespec,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
};

/// A connection that looks, at each read, whether the other end has closed it.
#[derive(Debug)]
pub(super) struct Noticed {
    stream: UnixStream,
    /// Whether it had closed it at the last read.
    has_gone: Arc<AtomicBool>,
}

impl Noticed {
    pub(super) fn new(stream: UnixStream) -> (Self, Arc<AtomicBool>) {
        let has_gone = Arc::<AtomicBool>::default();
        (Self { stream, has_gone: has_gone.clone() }, has_gone)
    }
}

/// Whether nobody is at the other end. One that has only said that it sends no more still waits for the answer.
fn has_hung_up(stream: impl AsFd) -> bool {
    // Told without being asked for.
    let mut looked = [PollFd::new(&stream, PollFlags::empty())];
    poll(&mut looked, Some(&Timespec::default())).is_ok()
        && looked.iter().any(|stream| stream.revents().contains(PollFlags::HUP))
}

impl AsyncRead for Noticed {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.stream).poll_read(context, buffer));
        self.has_gone.store(has_hung_up(&self.stream), Ordering::Relaxed);
        Poll::Ready(read)
    }
}

impl AsyncWrite for Noticed {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
