//! What a compiler that an attack has taken over could try.

use std::{
    fs::{self, File},
    io::{self, IoSliceMut, Read, Write},
    net::{TcpStream, UdpSocket},
    os::unix::{net::UnixStream, process::CommandExt},
    path::Path,
    process::Command,
    ptr, thread,
};

use nix::{
    mount::MsFlags,
    sched::CloneFlags,
    sys::{ptrace, uio},
};
use rustix::{
    fs::MemfdFlags,
    mm::{MapFlags, MprotectFlags, ProtFlags},
    process::{DumpableBehavior, Pid, PidfdFlags, Resource, Rlimit},
};

/// What an attempt is made on.
pub(crate) struct Surroundings<'a> {
    /// A directory of Main's, such as its cache, with the socket [`SOCKET`].
    pub(crate) dir: &'a Path,
    /// The address of a TCP socket that listens.
    pub(crate) tcp: &'a str,
    /// The process that has started this one.
    pub(crate) starter: Pid,
    /// A file that was open for reading and writing when this process was started.
    pub(crate) open: &'a File,
}

/// The name of the Unix socket that listens in the directory.
pub(crate) const SOCKET: &str = "socket";

/// What becomes of an attempt in a process that is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It fails: not permitted.
    Refused,
    /// It fails, as if the kernel had no such call.
    Absent,
    /// The process ends.
    Ends,
}

pub(crate) struct Attempt {
    pub(crate) name: &'static str,
    pub(crate) fate: Fate,
    /// Whether it succeeds in a process that is not confined, of any user and beside any policy of the machine.
    pub(crate) is_usual: bool,
    /// Whether it is refused without seccomp, too.
    pub(crate) is_refused_twice: bool,
    pub(crate) make: fn(&Surroundings) -> io::Result<()>,
}

const fn refused(name: &'static str, make: fn(&Surroundings) -> io::Result<()>) -> Attempt {
    Attempt { name, fate: Fate::Refused, is_usual: true, is_refused_twice: false, make }
}

const fn ends(name: &'static str, make: fn(&Surroundings) -> io::Result<()>) -> Attempt {
    Attempt { fate: Fate::Ends, is_refused_twice: true, ..refused(name, make) }
}

const fn absent(name: &'static str, make: fn(&Surroundings) -> io::Result<()>) -> Attempt {
    Attempt { fate: Fate::Absent, is_refused_twice: true, ..refused(name, make) }
}

impl Attempt {
    const fn unusual(self) -> Self {
        Self { is_usual: false, ..self }
    }

    const fn refused_twice(self) -> Self {
        Self { is_refused_twice: true, ..self }
    }
}

pub(crate) const ATTEMPTS: [Attempt; 29] = [
    refused("read a file", |_| fs::read("/etc/passwd").map(drop)).refused_twice(),
    refused("write the cache", |around| fs::write(around.dir.join("entry"), "")).refused_twice(),
    refused("list the cache", |around| fs::read_dir(around.dir).map(drop)).refused_twice(),
    refused("remove from the cache", |around| fs::remove_file(around.dir.join("unwanted"))).refused_twice(),
    refused("look at a file", |_| fs::metadata("/etc/passwd").map(drop)),
    refused("read an open file", |around| { around.open }.read(&mut [0]).map(drop)),
    refused("write an open file", |around| { around.open }.write(&[0]).map(drop)),
    refused("map an open file", |around| map(Some(around.open), ProtFlags::READ)),
    refused("make memory executable", |_| map(None, ProtFlags::READ | ProtFlags::EXEC)),
    refused("make its own memory executable", |_| protect(ProtFlags::READ | ProtFlags::EXEC)),
    refused("make a file in memory", |_| {
        rustix::fs::memfd_create("file", MemfdFlags::CLOEXEC).map(drop).map_err(Into::into)
    })
    .refused_twice(),
    refused("make a pipe", |_| io::pipe().map(drop)).refused_twice(),
    refused("be dumpable", |_| {
        rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).map_err(Into::into)
    }),
    refused("raise a limit", |_| {
        let limit = Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) };
        rustix::process::setrlimit(Resource::Core, limit).map_err(Into::into)
    })
    .unusual()
    .refused_twice(),
    refused("raise another process's limit", |around| {
        let same = Rlimit { current: None, maximum: None };
        rustix::process::prlimit(Some(around.starter), Resource::Core, same).map(drop).map_err(Into::into)
    })
    .unusual(),
    refused("signal a thread of another process", |around| signal_thread(around.starter)),
    refused("become root", |_| nix::unistd::setuid(0.into()).map_err(Into::into)).unusual(),
    refused("have a namespace", |_| nix::sched::unshare(CloneFlags::CLONE_NEWNS).map_err(Into::into))
        .unusual()
        .refused_twice(),
    refused("mount", |around| {
        let (of, none) = (Some("none"), None::<&str>);
        nix::mount::mount(of, around.dir, Some("tmpfs"), MsFlags::empty(), none).map_err(Into::into)
    })
    .unusual()
    .refused_twice(),
    refused("hold another process", |around| {
        rustix::process::pidfd_open(around.starter, PidfdFlags::empty()).map(drop).map_err(Into::into)
    })
    .refused_twice(),
    ends("connect by TCP", |around| TcpStream::connect(around.tcp).map(drop)),
    ends("connect to a Unix socket", |around| UnixStream::connect(around.dir.join(SOCKET)).map(drop)),
    ends("have a UDP socket", |_| UdpSocket::bind("127.0.0.1:0").map(drop)),
    absent("start a process", |_| Command::new("/bin/true").status().map(drop)),
    absent("start a thread", |_| thread::Builder::new().spawn(|| ()).map(drop)),
    // What is said without confinement, if an attempt succeeds.
    ends("become another program", |_| Err(Command::new("/bin/echo").args(["-n", ALLOWED]).exec())),
    Attempt {
        // Without seccomp it is refused only by the kernels whose Landlock knows of signals.
        is_refused_twice: false,
        ..ends("signal another process", |around| {
            rustix::process::test_kill_process(around.starter).map_err(Into::into)
        })
    },
    ends("trace another process", |around| ptrace::attach(nix_pid(around.starter)).map_err(Into::into))
        .unusual(),
    ends("read another process's memory", |around| {
        let from = uio::RemoteIoVec { base: ptr::from_ref(&ATTEMPTS).addr(), len: 1 };
        let mut byte = [0];
        let into = &mut [IoSliceMut::new(&mut byte)];
        uio::process_vm_readv(nix_pid(around.starter), into, &[from]).map(drop).map_err(Into::into)
    })
    .unusual(),
];

/// What a program says of an attempt that succeeded.
pub(crate) const ALLOWED: &str = "allowed";

fn nix_pid(pid: Pid) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(pid.as_raw_pid())
}

#[expect(unsafe_code, reason = "only a call of the C library can do this")]
fn signal_thread(of: Pid) -> io::Result<()> {
    let pid = of.as_raw_pid();
    // SAFETY: the call uses no memory, and signal 0 only asks whether a signal could be sent.
    match unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[expect(unsafe_code, reason = "the mapping is new, and nothing uses it")]
fn protect(protection: ProtFlags) -> io::Result<()> {
    let writable = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: as the kernel chooses the place, no other memory changes.
    let memory = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), 1, writable, MapFlags::PRIVATE) }?;
    let flags = MprotectFlags::from_bits_retain(protection.bits());
    // SAFETY: nothing else uses this memory.
    unsafe { rustix::mm::mprotect(memory, 1, flags) }.map_err(Into::into)
}

#[expect(unsafe_code, reason = "the mapping is new, and nothing uses it")]
fn map(file: Option<&File>, protection: ProtFlags) -> io::Result<()> {
    let mapped = match file {
        // SAFETY: as the kernel chooses the place, no other memory changes.
        Some(file) => unsafe { rustix::mm::mmap(ptr::null_mut(), 1, protection, MapFlags::PRIVATE, file, 0) },
        // SAFETY: as the kernel chooses the place, no other memory changes.
        None => unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), 1, protection, MapFlags::PRIVATE) },
    };
    mapped.map(drop).map_err(Into::into)
}
