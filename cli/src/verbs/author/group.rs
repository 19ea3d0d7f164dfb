//! A child process with a process group of its own. The group ends when its owner drops it.

use std::{
    io,
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus},
    time::Duration,
};

use anyhow::Context;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};
use tokio::net::unix::pipe::Receiver;

/// How long the child may take to end after its group was asked to. Then the whole group is killed.
const END_WITHIN: Duration = Duration::from_secs(15);

/// A child process and its group. Ctrl-C on the terminal does not reach the group. The group is ended when this is
/// dropped, unless [`Group::wait`] has returned the child's end.
#[derive(Debug)]
pub(super) struct Group {
    child: Child,
    /// A descriptor of the process, which is readable once the child has ended. Tokio has no type for it, and takes it
    /// for a pipe.
    ended: Receiver,
    /// Whether the end of the child was seen. Its number may then be another process's.
    is_reaped: bool,
}

impl Group {
    pub(super) fn spawn(command: &mut Command) -> anyhow::Result<Self> {
        let program = command.get_program().to_string_lossy().into_owned();
        let child = command.process_group(0).spawn();
        let mut child = child.with_context(|| format!("cannot run `{program}`"))?;
        let ended = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
            .map_err(io::Error::from)
            .and_then(Receiver::from_owned_fd_unchecked);
        match ended {
            Ok(ended) => Ok(Self { child, ended, is_reaped: false }),
            Err(error) => {
                child.kill().and_then(|()| child.wait())?;
                Err(error).with_context(|| format!("cannot wait for `{program}`"))
            }
        }
    }

    pub(super) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if !self.is_reaped {
            self.ended.readable().await?;
            self.is_reaped = true;
        }
        self.child.wait()
    }

    fn end(&mut self) {
        let group = Pid::from_child(&self.child);
        // This fails if the whole group has ended, which is the aim.
        let _ended = kill_process_group(group, Signal::TERM);
        self.wait_within(END_WITHIN);
        // The child may have left children. The child is not reaped yet, so its number is not another process's.
        let _ended = kill_process_group(group, Signal::KILL);
        let _reaped = self.child.wait();
    }

    fn wait_within(&self, time: Duration) {
        let mut ended = [PollFd::new(&self.ended, PollFlags::IN)];
        // If the wait fails, the kill comes at once.
        let _ready = poll(&mut ended, Timespec::try_from(time).ok().as_ref());
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if !self.is_reaped {
            self.end();
        }
    }
}
