//! Turns a file into a program that can be instantiated: the file is read, checked, compiled or verified, and linked.
//!
//! Extensions that run the same bytes share the compiled code. Each part treats the file as hostile: `input` opens and
//! hashes it, `child` and `helper` compile it outside Main, `cache` and `artifact` vouch for earlier code, and only
//! `code` hands code to wasmtime. `docs/internals/extensions.md` has the picture.

mod admission;
mod artifact;
mod brief;
#[cfg(feature = "compiler")]
mod cache;
#[cfg(feature = "compiler")]
mod child;
mod code;
mod compilation;
mod compiler;
mod error;
mod framing;
mod held;
#[cfg(feature = "compiler")]
mod helper;
mod input;
mod linked;
mod load_permit;
mod load_request;
mod open;
mod packed;
mod signature;
#[cfg(feature = "compiler")]
mod signed;
mod stamp;
#[cfg(feature = "compiler")]
mod symbols;
#[cfg(test)]
mod tests;

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use tokio::{sync::Semaphore, time::timeout};
use wasmtime::{Engine, Store, component::InstancePre};
#[cfg(feature = "http")]
use wasmtime_wasi_http::p2::bindings::Proxy;
use weir_config::{ArtifactHash, ComponentSource, ExtensionConfig, Limits, MainConfig};
use weir_logs::Logs;
use weir_openrpc::Descriptions;

#[cfg(not(feature = "compiler"))]
pub(super) use self::code::Kernel;
pub(super) use self::linked::Linked;
pub use self::{
    admission::{Admission, Rules, RulesError},
    artifact::ArtifactFacts,
    compilation::{Compilation, Compilations},
    error::{ComponentOrigin, LoadError, LoadFault},
    held::Loaded,
    load_request::LoadRequest,
    open::{OpenComponent, component_is_whole},
    signature::{Signature, SignatureError},
    stamp::FileStamp,
};
use self::{
    admission::{Candidate, Voucher},
    brief::Pooled,
    code::Code,
    compiler::Compiler,
    held::HeldPrograms,
    input::{ComponentInput, InputKind, InputLimits},
    linked::{Foreign, imports_http, imports_iec, linked},
    load_permit::{LoadPermit, LoadPermits},
};
#[cfg(feature = "compiler")]
pub use self::{
    artifact::signing::{NotAKey, SigningKey},
    child::confinement_warning,
    helper::compile_helper,
    signature::NotAVersion,
    signed::compile,
};
use super::{
    engine::{AddressClass, Runtime},
    exit::{NotInstantiated, said},
    exports::Exported,
    fit::{GuestKind, World, deaf, not_answered},
    instance_state::InstanceState,
    sandbox::Guest,
};

/// How long a killed process may take to end on a busy machine.
const GRACE: Duration = Duration::from_secs(2);

/// A compiled and linked component.
pub struct Program<G: 'static = InstanceState> {
    pub(super) linked: Linked<G>,
    /// The hash of the file.
    pub hash: ArtifactHash,
    /// Bytes of Main's memory that the code takes.
    footprint: u64,
    /// Bytes of its code in a cache. 0 for an artifact, which is not cached.
    cached: u64,
    /// The contracts that the component describes: those that it serves and those that it calls.
    pub descriptions: Arc<Descriptions>,
    /// The free places in the pools, if instances of the program come from pools.
    places: Option<Arc<Semaphore>>,
    /// Whether the component imports the interface that sends requests by HTTP.
    pub(super) sends_http: bool,
    /// Whether the component imports an interface of `weir:iec`. Else nothing can be sent to it.
    pub knows_weir: bool,
    /// What it exports, if the host calls its functions.
    pub(super) exported: Option<Exported>,
    foreign: Foreign,
}

impl<G: Guest> Program<G> {
    pub(super) async fn run(&self, store: &mut Store<G>) -> wasmtime::Result<Result<(), ()>> {
        let pre = match &self.linked {
            Linked::Program(pre) => pre,
            _ => wasmtime::bail!("it is no program that runs by itself"),
        };
        // Boxed, because the future would otherwise keep the space for instantiation while the guest runs.
        let command = Box::pin(pre.instantiate_async(&mut *store)).await.map_err(NotInstantiated::mark)?;
        command.wasi_cli_run().call_run(store).await
    }

    pub(super) fn engine(&self) -> &Engine {
        match &self.linked {
            Linked::Program(pre) => pre.engine(),
            Linked::Exports(pre) => pre.engine(),
            #[cfg(feature = "http")]
            Linked::HttpServer(pre) => pre.engine(),
        }
    }

    /// Makes instances whose functions are called.
    pub(super) fn exports(&self) -> wasmtime::Result<&InstancePre<G>> {
        match &self.linked {
            Linked::Exports(pre) => Ok(pre),
            _ => wasmtime::bail!("its functions are not called"),
        }
    }

    /// What speaks against the program as what is wanted.
    fn misfit(&self, wanted: LoadRequest<'_>) -> Option<LoadFault> {
        let import = self.foreign.names.iter().find(|name| !wanted.answers(name));
        let of_imports = import.map(|name| not_answered(name));
        let of_exports =
            || self.exported.as_ref().zip(wanted.exports).and_then(|(own, wanted)| own.misfit(wanted));
        let of_messages = || deaf(wanted.world(), wanted.has_messages, self.knows_weir);
        let reason = of_imports.or_else(of_exports).or_else(of_messages)?;
        Some(LoadFault::World { world: wanted.world().name(G::KIND), reason })
    }

    /// Makes an instance that serves HTTP.
    #[cfg(feature = "http")]
    pub(super) async fn server(&self, store: &mut Store<G>) -> wasmtime::Result<Proxy> {
        match &self.linked {
            Linked::HttpServer(pre) => {
                Box::pin(pre.instantiate_async(store)).await.map_err(NotInstantiated::mark)
            }
            _ => wasmtime::bail!("it is no server"),
        }
    }
}

impl<G> fmt::Debug for Program<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// The programs in use.
#[derive(Debug)]
pub struct Programs<G: 'static = InstanceState> {
    runtime: Runtime,
    sources: Arc<Sources>,
    /// These permits bound how many files are read at once, each on a thread of the blocking pool. They also bound how
    /// many are compiled at once, each in a process with its own memory limit or on a thread.
    permits: Arc<LoadPermits>,
    held: HeldPrograms<G>,
    /// The free places in pools. None if only memory bounds the number of instances.
    places: Option<Arc<Semaphore>>,
    /// The programs whose instances come and go.
    pooled: Option<Box<Pooled>>,
}

/// A component that was opened, and whether it may run.
type Opened = (ComponentInput, Result<Voucher, LoadFault>);

/// Where programs may come from.
#[derive(Debug)]
pub struct Sources {
    admission: Arc<Admission>,
    /// Compiles components. None if only artifacts run.
    compiler: Option<Compiler>,
    compilations: Arc<Compilations>,
}

impl Programs {
    /// Returns the compilations under way.
    pub fn compilations(&self) -> Arc<Compilations> {
        self.sources.compilations.clone()
    }

    /// Makes an empty set of programs, which loads at most `at_once` files at a time and compiles as many.
    pub fn new(runtime: Runtime, sources: Sources, at_once: u16) -> Self {
        let (sources, permits) = (Arc::new(sources), Arc::new(LoadPermits::new(at_once)));
        let lasting =
            Self { runtime, sources, permits, held: HeldPrograms::default(), places: None, pooled: None };
        let pooled = Some(Box::new(Pooled::new(&lasting)));
        Self { pooled, ..lasting }
    }
}

impl<G: Guest> Programs<G> {
    /// Makes another empty set of programs, with the same sources and permits, and with `at_once` instances from pools.
    pub fn in_pools<O: Guest>(&self, at_once: u32) -> Programs<O> {
        Programs {
            runtime: self.runtime.in_pools(at_once),
            sources: self.sources.clone(),
            permits: self.permits.clone(),
            held: HeldPrograms::default(),
            places: None,
            pooled: None,
        }
    }

    /// Loads a component, off the worker thread unless the request says that it may block. As long as its program is
    /// held, equal bytes are not compiled again for the same kind of engine. A file that shows no change is not read
    /// again.
    pub async fn load(&self, wanted: LoadRequest<'_>) -> Result<Loaded<G>, LoadError> {
        if let Some(loaded) = self.held.unchanged(wanted).filter(|loaded| self.admits(wanted, loaded)) {
            return Ok(loaded);
        }
        // Compiling takes time, in which the rules may have changed. The program is held, so only they are asked again.
        let (loaded, stamp) = loop {
            let (loaded, stamp) = self.load_by(wanted, self.sources.admission.rules()).await?;
            if self.admits(wanted, &loaded) {
                break (loaded, stamp);
            }
        };
        self.held.remember(wanted, stamp, &loaded);
        Ok(loaded)
    }

    /// Loads what these rules admit.
    async fn load_by(
        &self,
        wanted: LoadRequest<'_>,
        rules: Arc<Rules>,
    ) -> Result<(Loaded<G>, Option<FileStamp>), LoadError> {
        let opened = self.open(wanted, rules).await;
        let (input, admitted) = opened.map_err(|fault| fault.of(wanted.origin(), None))?;
        let (hash, stamp) = (input.hash, input.stamp);
        let found = |fault: LoadFault| fault.of(wanted.origin(), Some(hash));
        let voucher = admitted.map_err(found)?;
        let slot = self.held.slot(hash, wanted.engine(), wanted.world());
        let program = slot.get_or_try_init(|| self.prepare(input, wanted)).await.map_err(found)?.clone();
        if let Some(compiler) = &self.sources.compiler {
            compiler.compare_cache(|| self.held.cached());
        }
        code::check(program.footprint, wanted.limits.code_size).map_err(found)?;
        if let Some(misfit) = program.misfit(wanted) {
            return Err(found(misfit));
        }
        Ok((Loaded::new(program, wanted, voucher, slot), stamp))
    }

    /// Makes the next load read this file, even if it shows no change.
    pub fn read_again(&self, component: &ComponentSource) {
        if let Some(path) = component.path() {
            self.held.forget(path);
        }
        if let Some(pooled) = &self.pooled {
            pooled.read_again(component);
        }
    }

    /// Waits a moment for abandoned loads to end.
    pub async fn wait_for_loads(&self) {
        // A load that takes longer is on a file system that hangs, or is compiled within Main.
        let _too_long = timeout(GRACE, self.permits.all()).await;
    }

    /// Opens and hashes the component, under a permit to load, and finds out whether it may run.
    async fn open(&self, wanted: LoadRequest<'_>, rules: Arc<Rules>) -> Result<Opened, LoadFault> {
        let candidate = Candidate::from(wanted);
        let permit = LoadPermit::take(&self.permits, wanted).await?;
        let open = move || {
            let mut input = candidate.open()?;
            let admitted = candidate.admit(&mut input, &rules);
            Ok((input, admitted))
        };
        permit.read(open).await
    }

    /// Makes the program of a component: takes or compiles its code, and links it.
    async fn prepare(
        &self,
        input: ComponentInput,
        wanted: LoadRequest<'_>,
    ) -> Result<Arc<Program<G>>, LoadFault> {
        let permit = LoadPermit::take(&self.permits, wanted).await?;
        let (hash, is_artifact) = (input.hash, input.kind == InputKind::Artifact);
        let (runtime, kind) = (self.runtime.clone(), wanted.engine());
        let engines = permit
            .blocking(move || runtime.engines(kind).map_err(|error| LoadFault::Engine(said(&error))))
            .await?;
        let Some(engine) = engines.first().cloned() else {
            return Err(LoadFault::Engine("there is none".to_owned()));
        };
        let (code_size, class, places) = (wanted.limits.code_size, self.runtime.class(), self.places.clone());
        // Boxed, because the caller's future would otherwise keep the space of a compilation.
        let (code, permit) =
            Box::pin(self.sources.code(input, wanted, G::KIND, &engine, class, permit)).await?;
        let (world, answered) = (wanted.world(), wanted.answered());
        let load = move || {
            let (footprint, cached) = (code.footprint(), if is_artifact { 0 } else { code.size() });
            let (component, linked, foreign) =
                linked::<G>(&code, &engines, class, code_size, world, Some(&answered))?;
            #[cfg(not(feature = "compiler"))]
            crate::calibration::keep(|| code.kernel());
            let descriptions = Descriptions::new(code.contracts()).into();
            let (sends_http, knows_weir) = (imports_http(&component), imports_iec(&component));
            let exported = (world == World::Exports).then(|| Exported::of(&component));
            let of_types = exported.as_ref().map_or(0, |exported| exported.bytes) + foreign.bytes;
            let footprint = footprint.saturating_add(of_types as u64);
            let program = Program {
                linked,
                hash,
                footprint,
                cached,
                descriptions,
                places,
                sends_http,
                knows_weir,
                exported,
                foreign,
            };
            Ok(Arc::new(program))
        };
        permit.blocking(load).await
    }
}

impl Sources {
    /// Makes the sources of a Main with this configuration.
    pub fn new(
        config: &MainConfig,
        admission: Arc<Admission>,
        compilation: Compilation,
        logs: Arc<Logs>,
    ) -> Self {
        let compilations = Arc::<Compilations>::default();
        let compiler = Compiler::new(config, compilation, logs, compilations.clone());
        Self { admission, compiler, compilations }
    }

    /// Returns the compiled code of a component or artifact, and the permit to load it.
    async fn code(
        &self,
        mut input: ComponentInput,
        wanted: LoadRequest<'_>,
        kind: GuestKind,
        engine: &Engine,
        class: AddressClass,
        permit: LoadPermit,
    ) -> Result<(Code, LoadPermit), LoadFault> {
        match (input.kind, &self.compiler) {
            (InputKind::Artifact, _) => {
                let rules = self.admission.rules();
                let code = permit.read(move || artifact::verify(&mut input, rules.trusted_keys())).await?;
                Ok((code, permit))
            }
            (InputKind::Component, Some(compiler)) => {
                compiler.code(input, wanted, kind, engine, class, permit).await
            }
            (InputKind::Component, None) => Err(LoadFault::NotCompiled),
        }
    }
}

/// Loads an extension's file as a Main with this configuration would, to see whether it could run. None of it is run.
/// The compiled code is cached for the next start, if [`cache_is_ours`].
///
/// # Errors
///
/// Fails with the error of the extension's start.
pub fn check(
    main: &MainConfig,
    extension: &ExtensionConfig,
    compilation: &Compilation,
) -> Result<(), LoadError> {
    let failed = |fault: LoadFault| fault.of(LoadRequest::from(extension).origin(), None);
    let (class, _) = AddressClass::of(main.address_space);
    let runtime = Runtime::new(class).map_err(|error| failed(LoadFault::Engine(said(&error))))?;
    let mut config = main.clone();
    if cache_is_ours(main) != Some(true) {
        config.cache_size = Some(0);
    }
    let admission = Admission::new(main, None).map_err(|error| failed(LoadFault::Rules(Box::new(error))))?;
    let sources = Sources::new(&config, admission.into(), compilation.clone(), Arc::default());
    let programs = Programs::new(runtime, sources, 1);
    let mut extension = extension.clone();
    extension.plugin_dir = config.plugin_dir;
    apart(programs.load(LoadRequest::from(&extension)))
        .map_err(|error| failed(LoadFault::Compiler(error.to_string())))?
        .map(drop)
}

/// Whether the cache's directory belongs to this user, and nobody else can write to it. Returns none if no cache is
/// configured, if the directory is not there, or if this build cannot compile.
#[must_use]
pub fn cache_is_ours(main: &MainConfig) -> Option<bool> {
    compiler::cache_is_ours(main.cache()?)
}

/// [The usual directory](MainConfig::default_cache_dir) of a cache, made if need be. Returns none if it cannot be made,
/// belongs to somebody else too, or this build cannot compile.
#[must_use]
pub fn default_cache() -> Option<PathBuf> {
    compiler::default_cache()
}

/// Runs a future on a thread and runtime of its own, because the caller may be on another runtime, or on none.
fn apart<T: Send>(work: impl Future<Output = T> + Send) -> std::io::Result<T> {
    let run =
        || tokio::runtime::Builder::new_current_thread().enable_all().build().map(|it| it.block_on(work));
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("weir-load".to_owned()).spawn_scoped(scope, run)?;
        thread.join().unwrap_or_else(|_| Err(std::io::Error::other("its thread panicked")))
    })
}

/// Returns what an artifact says of itself, or none if the file is a component.
///
/// # Errors
///
/// Fails if the file is neither, is too large or damaged, is an artifact of another format, or cannot be read.
pub fn artifact_facts(path: &Path) -> Result<Option<ArtifactFacts>, LoadError> {
    let look = || {
        let Limits { file_size, code_size, .. } = Limits::max();
        let mut input = ComponentInput::in_file(path, None, InputLimits { file_size, code_size })?;
        (input.kind == InputKind::Artifact).then(|| artifact::described(&mut input)).transpose()
    };
    look().map_err(|fault| fault.of(path.into(), None))
}

/// Reads a component, and returns its bytes and their SHA-256, for inspection. Fails for an artifact.
pub(super) fn read(path: &Path) -> Result<(Vec<u8>, ArtifactHash), LoadError> {
    let look = || {
        let limits = InputLimits { file_size: Limits::max().file_size, code_size: 0 };
        let mut input = ComponentInput::in_file(path, None, limits)?;
        if input.kind == InputKind::Artifact {
            return Err(LoadFault::NotWasm);
        }
        Ok((input.read()?, input.hash))
    };
    look().map_err(|fault| fault.of(path.into(), None))
}
