//! Unix sockets that Main listens on: bound for its owner alone or for every user, by one Main at a time.
//!
//! Knows nothing of what is said on them.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::{
        fd::AsFd,
        unix::{
            fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt},
            net::UnixListener,
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::Mode,
    io::Errno,
    net::{
        AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, send,
        socket_with,
        sockopt::{set_socket_send_buffer_size, socket_send_buffer_size},
    },
};

const BACKLOG: i32 = 128;

/// Bytes that the system is asked to buffer for the last words on a connection. It gives what it allows.
const LAST_BUFFER: usize = 512 * 1024;

/// Why a socket cannot be bound.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Another Main has it.
    #[error("`{}` is in use: another Main answers there; stop it, or choose another socket", .0.display())]
    InUse(PathBuf),
    /// The path is taken by something else than a socket.
    #[error("`{}` is there and is not a socket; remove it, or choose another path", .0.display())]
    NotASocket(PathBuf),
    /// The path is empty, has a NUL or is too long.
    #[error("`{}` is not the path of a socket: it must have 1 to 107 bytes", .0.display())]
    Path(PathBuf),
    /// The system refused an operation.
    #[error("cannot {doing} `{}`", path.display())]
    Io {
        /// The operation.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Which users can open a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opens {
    /// Its owner. A directory made for it is the owner's, too.
    Owner,
    /// Everybody, as far as the directories above let them.
    Everybody,
}

/// A socket that listens; nobody answers yet.
#[derive(Debug)]
pub struct BoundSocket {
    /// Keep it for as long as the socket is to be there. As the first field it is dropped before the listener, so that
    /// no file is left to connect to without a Main.
    pub held: Held,
    /// The listener, which does not block.
    pub listener: UnixListener,
}

/// The socket's file and lock. Dropping it removes the file, then the lock.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    lock_path: PathBuf,
    /// The lock. Without it two starting Mains could both take over a stale socket.
    _lock: File,
}

impl BoundSocket {
    /// Binds a socket. Takes over that of a Main that ended without removing it.
    ///
    /// # Errors
    ///
    /// [`SocketError::InUse`] if another Main has the lock or answers there, [`SocketError::NotASocket`],
    /// [`SocketError::Path`], or [`SocketError::Io`] with the system's refusal.
    pub fn bind(path: &Path, opens: Opens) -> Result<Self, SocketError> {
        let address = SocketAddrUnix::new(path).map_err(|_| SocketError::Path(path.to_owned()))?;
        if path.as_os_str().is_empty() {
            return Err(SocketError::Path(path.to_owned()));
        }
        create_parent(path, opens)?;
        let (lock_path, lock) = lock(path)?;
        remove_stale(path, &address)?;

        let failed = |errno: Errno| failed("listen on", path)(errno.into());
        let socket = new_socket().map_err(failed)?;
        let owner = Mode::RUSR | Mode::WUSR;
        let mode = match opens {
            Opens::Owner => owner,
            Opens::Everybody => owner | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH,
        };
        // On Linux the file takes the socket's mode, so that others can never open it. Elsewhere this may fail, and
        // the mode is set below.
        let _elsewhere = rustix::fs::fchmod(&socket, owner);
        bind(&socket, &address).map_err(failed)?;
        let held = Held { path: path.to_owned(), lock_path, _lock: lock };
        rustix::fs::chmod(path, mode).map_err(failed)?;
        listen(&socket, BACKLOG).map_err(failed)?;
        Ok(Self { listener: socket.into(), held })
    }
}

/// Makes room for the last words on a connection whose other end does not read. The other end finds them when it reads
/// again, even after this end is closed. Leaves a buffer of 512 KiB or more as it is, and sets a smaller one to 512
/// KiB, or to what the system allows (`net.core.wmem_max`).
pub fn make_room(socket: impl AsFd) {
    if socket_send_buffer_size(&socket).is_ok_and(|bytes| bytes < LAST_BUFFER) {
        // If this fails, the last words may not fit.
        let _without = set_socket_send_buffer_size(&socket, LAST_BUFFER);
    }
}

/// Writes what the system takes of these bytes now, and returns how many it took: 0 if writing fails. A Unix socket of
/// Linux calls itself writable only once three quarters of its buffer are free, and takes bytes long before.
#[must_use]
pub fn write_now(socket: impl AsFd, bytes: &[u8]) -> usize {
    #[cfg(target_os = "linux")]
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    #[cfg(not(target_os = "linux"))]
    let flags = SendFlags::DONTWAIT;
    send(socket, bytes, flags).unwrap_or_default()
}

/// Whether neither the socket nor its lock is there, as after a Main that has ended by itself.
#[must_use]
pub fn is_released(path: &Path) -> bool {
    [path, &lock_of(path)].into_iter().all(|path| fs::metadata(path).is_err())
}

impl Drop for Held {
    fn drop(&mut self) {
        for path in [&self.path, &self.lock_path] {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!("cannot remove `{}`: {error}", path.display());
            }
        }
    }
}

fn create_parent(path: &Path, opens: Opens) -> Result<(), SocketError> {
    let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    DirBuilder::new()
        .recursive(true)
        .mode(if opens == Opens::Owner { 0o700 } else { 0o755 })
        .create(parent)
        .map_err(failed("create the directory", parent))
}

/// Locks this socket, unless its holder is alive: a lock ends with its process.
fn lock(path: &Path) -> Result<(PathBuf, File), SocketError> {
    let lock_path = lock_of(path);
    let failed = || failed("lock", &lock_path);
    loop {
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(failed())?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SocketError::InUse(path.to_owned())),
            Err(TryLockError::Error(error)) => return Err(failed()(error)),
        }
        // The holder may have removed the file in between, which leaves a lock on nothing.
        let locked = file.metadata().map_err(failed())?;
        if fs::metadata(&lock_path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (locked.dev(), locked.ino()))
        {
            return Ok((lock_path, file));
        }
    }
}

fn lock_of(path: &Path) -> PathBuf {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    lock.into()
}

/// Removes a socket without a listener. Fails if somebody listens, or if the file is not a socket.
fn remove_stale(path: &Path, address: &SocketAddrUnix) -> Result<(), SocketError> {
    let failed = |doing| failed(doing, path);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at")(error)),
        Ok(metadata) if !metadata.file_type().is_socket() => {
            return Err(SocketError::NotASocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match new_socket().and_then(|socket| connect(&socket, address)) {
        Err(Errno::CONNREFUSED) => {
            tracing::info!("taking over `{}`, left behind by a Main that has ended", path.display());
            fs::remove_file(path).map_err(failed("remove"))
        }
        // `EAGAIN` means a full backlog: somebody listens.
        Ok(()) | Err(Errno::AGAIN) => Err(SocketError::InUse(path.to_owned())),
        Err(errno) => Err(failed("connect to")(errno.into())),
    }
}

fn new_socket() -> rustix::io::Result<std::os::fd::OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> SocketError {
    let path = path.to_owned();
    move |source| SocketError::Io { doing, path, source }
}

#[cfg(test)]
mod tests {
    use std::{
        io::Read,
        os::unix::{fs::PermissionsExt, net::UnixStream},
    };

    use super::*;

    fn bind(path: &Path) -> Result<BoundSocket, SocketError> {
        BoundSocket::bind(path, Opens::Owner)
    }

    fn place() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/weir/weir.sock");
        (dir, path)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn only_its_owner_can_open_the_socket_and_its_new_directory() {
        let (_dir, path) = place();
        let _socket = bind(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn everybody_can_open_a_socket_for_everybody() {
        let (_dir, path) = place();
        let _socket = BoundSocket::bind(&path, Opens::Everybody).unwrap();
        assert_eq!(mode(&path), 0o666);
        assert_eq!(mode(path.parent().unwrap()), 0o755);
    }

    #[test]
    fn a_socket_that_somebody_answers_is_refused() {
        let (_dir, path) = place();
        let _socket = bind(&path).unwrap();
        assert!(matches!(bind(&path), Err(SocketError::InUse(at)) if at == path));

        // From a program that does not use the lock.
        let other = path.with_file_name("other.sock");
        let _listener = UnixListener::bind(&other).unwrap();
        assert!(matches!(bind(&other), Err(SocketError::InUse(_))));
    }

    #[test]
    fn a_socket_that_nobody_answers_is_taken_over() {
        let (_dir, path) = place();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        drop(UnixListener::bind(&path).unwrap());
        let _socket = bind(&path).unwrap();
        UnixStream::connect(&path).unwrap();
    }

    #[test]
    fn a_file_that_is_no_socket_stays() {
        let (_dir, path) = place();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "precious").unwrap();
        assert!(matches!(bind(&path), Err(SocketError::NotASocket(_))));
        assert_eq!(fs::read(&path).unwrap(), b"precious");
    }

    #[test]
    fn nothing_is_left_behind() {
        let (_dir, path) = place();
        let bound = bind(&path).unwrap();
        assert!(!is_released(&path));
        drop(bound);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        assert!(is_released(&path));
    }

    #[test]
    fn a_path_that_is_too_long_is_refused() {
        let path = PathBuf::from(format!("/tmp/{}", "a".repeat(120)));
        assert!(matches!(bind(&path), Err(SocketError::Path(_))));
    }

    #[test]
    fn what_the_system_takes_is_written_at_once() {
        let (one, mut other) = UnixStream::pair().unwrap();
        while write_now(&one, &[1; 4096]) > 0 {}
        other.read_exact(&mut [0; 8192]).unwrap();
        assert_eq!(write_now(&one, b"last words"), 10);
        drop(other);
        assert_eq!(write_now(&one, b"nobody hears"), 0);
    }
}
