//! Waits for changes of a project's files.

use std::{
    convert::Infallible,
    fs, io,
    mem::MaybeUninit,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::Context;
use rustix::{
    fs::inotify::{self, CreateFlags, Reader, WatchFlags},
    io::Errno,
};
use tokio::net::unix::pipe::Receiver;

/// After the last change, before anything is done: editors write a file in several steps.
const QUIET: Duration = Duration::from_millis(100);

/// Directories and files that tools write themselves.
const WRITTEN_BY_TOOLS: [&str; 7] =
    ["target", "node_modules", "dist", "__pycache__", "Cargo.lock", "package-lock.json", "go.sum"];

/// Room for some events.
const BUFFER: usize = 4096;

pub(super) struct Watch {
    dir: PathBuf,
    /// No pipe, but the kernel tells of it as of one.
    inotify: Receiver,
}

impl Watch {
    /// Watches a directory and all below it, from now on.
    pub(super) fn new(dir: &Path) -> anyhow::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)
            .map_err(io::Error::from)
            .and_then(Receiver::from_owned_fd_unchecked)
            .context("cannot watch files")?;
        let watch = Self { dir: dir.to_owned(), inotify };
        watch.add(&watch.dir)?;
        Ok(watch)
    }

    /// Ends once files have changed, and then no more for a moment.
    pub(super) async fn changed(&self) -> anyhow::Result<()> {
        while !self.next_are_changes().await? {}
        while let Ok(more) = tokio::time::timeout(QUIET, self.next_are_changes()).await {
            more?;
        }
        // There may be new directories. Those that are watched stay so.
        self.add(&self.dir)
    }

    /// Waits for events. Whether one is of a source.
    async fn next_are_changes(&self) -> anyhow::Result<bool> {
        self.inotify.readable().await?;
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&self.inotify, &mut buffer);
        let mut are_changes = false;
        let read: io::Result<Infallible> = self.inotify.try_io(|| {
            loop {
                let event = events.next()?;
                // Without a name: events were lost, or a watched directory has gone.
                are_changes |= event.file_name().is_none_or(|name| is_source(&name.to_string_lossy()));
            }
        });
        match read {
            Err(end) if end.kind() == io::ErrorKind::WouldBlock => Ok(are_changes),
            Err(error) => Err(error).context("cannot watch files"),
            Ok(never) => match never {},
        }
    }

    fn add(&self, dir: &Path) -> anyhow::Result<()> {
        let of = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::ONLYDIR
            | WatchFlags::DONT_FOLLOW;
        match inotify::add_watch(&self.inotify, dir, of) {
            Ok(_) => {}
            // It has gone again.
            Err(Errno::NOENT | Errno::NOTDIR) if dir != self.dir => return Ok(()),
            Err(error) => {
                return Err(io::Error::from(error))
                    .with_context(|| format!("cannot watch `{}`", dir.display()));
            }
        }
        let Ok(entries) = fs::read_dir(dir) else { return Ok(()) };
        for entry in entries.flatten() {
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && is_source(&entry.file_name().to_string_lossy()) {
                self.add(&entry.path())?;
            }
        }
        Ok(())
    }
}

/// Whether this may be a file that a person changes, or a directory of such files.
fn is_source(name: &str) -> bool {
    !name.starts_with('.') && !name.ends_with('~') && !WRITTEN_BY_TOOLS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed_after(change: impl FnOnce(&Path)) -> bool {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("src/deep")).unwrap();
        fs::create_dir(dir.path().join("target")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let watch = Watch::new(dir.path()).unwrap();
            change(dir.path());
            tokio::time::timeout(QUIET * 5, watch.changed()).await.is_ok()
        })
    }

    #[test]
    fn a_change_of_a_source_at_any_depth_is_noticed() {
        assert!(changed_after(|dir| fs::write(dir.join("weir.toml"), "").unwrap()));
        assert!(changed_after(|dir| fs::write(dir.join("src/deep/lib.rs"), "").unwrap()));
        // As editors write a file.
        assert!(changed_after(|dir| {
            fs::write(dir.join("src/.lib.rs.new"), "").unwrap();
            fs::rename(dir.join("src/.lib.rs.new"), dir.join("src/lib.rs")).unwrap();
        }));
    }

    #[test]
    fn what_tools_write_is_no_change() {
        assert!(!changed_after(|dir| {
            fs::write(dir.join("Cargo.lock"), "").unwrap();
            fs::write(dir.join("target/a.wasm"), "").unwrap();
            fs::write(dir.join("src/.lib.rs.swp"), "").unwrap();
            fs::create_dir(dir.join(".weir")).unwrap();
        }));
    }

    #[tokio::test]
    async fn files_in_a_new_directory_are_watched_after_it_was_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let watch = Watch::new(dir.path()).unwrap();
        fs::create_dir(dir.path().join("new")).unwrap();
        watch.changed().await.unwrap();
        fs::write(dir.path().join("new/file.rs"), "").unwrap();
        watch.changed().await.unwrap();
    }
}
