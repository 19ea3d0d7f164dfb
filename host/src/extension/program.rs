//! From a file to a program that can be instantiated: read, checked, compiled, its imports resolved.
//!
//! Programs are shared: extensions that run the same bytes share the compiled code.

use std::{
    collections::HashMap,
    fmt, fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::{Arc, Weak},
};

use rustix::{
    fs::{Mode, OFlags},
    io::Errno,
};
use sha2::{Digest, Sha256};
use tokio::sync::{Mutex, OnceCell, Semaphore};
use wasmtime::{Engine, component::Component};
use wasmtime_wasi::p2::bindings::CommandPre;

use super::{
    engine::{Runtime, Stack},
    state::State,
};
use crate::{config::Limits, logs::harmless};

/// Bytes that an extension's file may have: room for those that carry an interpreter along.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Why a file cannot be run as an extension.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A directory, symlink, FIFO or device.
    #[error("`{}` is not a regular file", .0.display())]
    NotAFile(PathBuf),
    /// Over the size that is read at all.
    #[error("`{}` has {bytes} bytes; at most {MAX_FILE} are accepted", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// Neither a component nor anything like one.
    #[error("`{}` is not a WebAssembly component", .0.display())]
    NotWasm(PathBuf),
    /// A core module.
    #[error(
        "`{}` is a core module, not a component; build it for `wasm32-wasip2`, or wrap it with \
         `wasm-tools component new`",
        .0.display()
    )]
    CoreModule(PathBuf),
    /// Artifacts that are compiled elsewhere are not accepted.
    #[error("`{}` must be compiled, and this build has no compiler", .0.display())]
    NoCompiler(PathBuf),
    /// This machine has no room for an engine with a stack of that size.
    #[error("no engine for `{}`: {message}", path.display())]
    Engine {
        /// The file.
        path: PathBuf,
        /// What is missing.
        message: String,
    },
    /// It does not compile.
    #[error("cannot compile `{}`: {message}", path.display())]
    Compile {
        /// The file.
        path: PathBuf,
        /// What the compiler says.
        message: String,
    },
    /// It imports what there is not, or does not export `wasi:cli/run`.
    #[error("`{}` does not fit the world `weir:iec/extension`: {message}", path.display())]
    World {
        /// The file.
        path: PathBuf,
        /// What does not fit.
        message: String,
    },
    /// The work on it was cut off, as Main ended or by a fault in it.
    #[error("loading `{}` was cut off", .0.display())]
    CutOff(PathBuf),
}

/// A compiled component whose imports are resolved.
pub(crate) struct Program {
    pub(super) pre: CommandPre<State>,
    /// SHA-256 of the component.
    pub(crate) hash: [u8; 32],
}

impl Program {
    /// The hash in hexadecimal.
    pub(crate) fn hash_text(&self) -> String {
        self.hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// SHA-256 of a component, and the stack that its engine has.
type Key = ([u8; 32], Stack);

/// Where the first who loads some bytes leaves the program for the others.
type Slot = OnceCell<Arc<Program>>;

/// A program, and what keeps it for others who load the same bytes.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) program: Arc<Program>,
    _for_others: Arc<Slot>,
}

/// The programs that are in use.
#[derive(Debug)]
pub(crate) struct Programs {
    runtime: Runtime,
    /// Files that are read and compiled at once: each is held in memory meanwhile, and takes a thread
    /// of the blocking pool.
    loading: Semaphore,
    /// By what was compiled, and for which stack.
    by_hash: Mutex<HashMap<Key, Weak<Slot>>>,
}

impl Programs {
    pub(crate) fn new(runtime: Runtime, at_once: usize) -> Self {
        Self { runtime, loading: Semaphore::new(at_once), by_hash: Mutex::default() }
    }

    /// Loads the file, off the worker thread. The same bytes are compiled once for each size of stack, as
    /// long as somebody holds what came of that.
    pub(crate) async fn load(&self, path: &Path, limits: &Limits) -> Result<Loaded, LoadError> {
        let _turn = self.loading.acquire().await.map_err(|_| LoadError::CutOff(path.to_owned()))?;
        let (owned, stack) = (path.to_owned(), Stack::of(limits));
        let (bytes, hash) = blocking(path, move || read(&owned)).await?;
        let slot = {
            let mut by_hash = self.by_hash.lock().await;
            by_hash.retain(|_, slot| slot.strong_count() > 0);
            match by_hash.get(&(hash, stack)).and_then(Weak::upgrade) {
                Some(slot) => slot,
                None => {
                    let slot = Arc::new(Slot::default());
                    by_hash.insert((hash, stack), Arc::downgrade(&slot));
                    slot
                }
            }
        };
        let program = slot
            .get_or_try_init(|| {
                let (owned, runtime) = (path.to_owned(), self.runtime.clone());
                blocking(path, move || prepare(&runtime, stack, &owned, &bytes, hash).map(Arc::new))
            })
            .await?
            .clone();
        Ok(Loaded { program, _for_others: slot })
    }
}

/// Loads and compiles a component and resolves its imports, to see whether it could be run; runs
/// nothing of it.
///
/// # Errors
///
/// As an extension of this file would fail to start.
pub fn check(path: &Path) -> Result<(), LoadError> {
    let runtime = Runtime::new()
        .map_err(|error| LoadError::World { path: path.to_owned(), message: format!("{error:#}") })?;
    let (bytes, hash) = read(path)?;
    prepare(&runtime, Stack::of(&Limits::default()), path, &bytes, hash).map(drop)
}

async fn blocking<T: Send + 'static>(
    path: &Path,
    work: impl FnOnce() -> Result<T, LoadError> + Send + 'static,
) -> Result<T, LoadError> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(LoadError::CutOff(path.to_owned())))
}

/// The file's bytes and their SHA-256. What is not a regular file, or too large, is not opened.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, [u8; 32]), LoadError> {
    let failed = |source| LoadError::Read { path: path.to_owned(), source };
    // What follows no symlink and waits for no writer cannot be led elsewhere, or hang.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, OFlags::RDONLY | flags, Mode::empty()) {
        Ok(file) => fs::File::from(file),
        Err(Errno::LOOP | Errno::NXIO) => return Err(LoadError::NotAFile(path.to_owned())),
        Err(error) => return Err(failed(error.into())),
    };
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(LoadError::NotAFile(path.to_owned()));
    }
    if metadata.len() > MAX_FILE {
        return Err(LoadError::TooLarge { path: path.to_owned(), bytes: metadata.len() });
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(LoadError::TooLarge { path: path.to_owned(), bytes: bytes.len() as u64 });
    }
    match bytes.get(..8) {
        Some(b"\0asm\x0d\0\x01\0") => {}
        Some(b"\0asm\x01\0\0\0") => return Err(LoadError::CoreModule(path.to_owned())),
        _ => return Err(LoadError::NotWasm(path.to_owned())),
    }
    let hash = Sha256::digest(&bytes).into();
    Ok((bytes, hash))
}

fn prepare(
    runtime: &Runtime,
    stack: Stack,
    path: &Path,
    bytes: &[u8],
    hash: [u8; 32],
) -> Result<Program, LoadError> {
    let linker = runtime
        .linker(stack)
        .map_err(|error| LoadError::Engine { path: path.to_owned(), message: said(&error) })?;
    let component = compile(linker.engine(), path, bytes)?;
    let pre = linker
        .instantiate_pre(&component)
        .and_then(CommandPre::new)
        .map_err(|error| LoadError::World { path: path.to_owned(), message: said(&error) })?;
    Ok(Program { pre, hash })
}

#[cfg(feature = "compiler")]
fn compile(engine: &Engine, path: &Path, bytes: &[u8]) -> Result<Component, LoadError> {
    Component::from_binary(engine, bytes)
        .map_err(|error| LoadError::Compile { path: path.to_owned(), message: said(&error) })
}

#[cfg(not(feature = "compiler"))]
fn compile(_engine: &Engine, path: &Path, _bytes: &[u8]) -> Result<Component, LoadError> {
    Err(LoadError::NoCompiler(path.to_owned()))
}

/// What wasmtime says, in one harmless line.
fn said(error: &wasmtime::Error) -> String {
    harmless(&format!("{error:#}"), 1024)
}
