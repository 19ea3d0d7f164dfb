//! Turns a component into its code: takes the code from the cache, or else compiles the component.

#[cfg(feature = "compiler")]
pub(super) use with::{Compiler, cache_is_ours, default_cache};
#[cfg(not(feature = "compiler"))]
pub(super) use without::{Compiler, cache_is_ours, default_cache};

#[cfg(feature = "compiler")]
mod with {
    use std::{
        iter,
        path::{Path, PathBuf},
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        time::Instant,
    };

    use wasmtime::Engine;

    use crate::engine::AddressClass;
    use crate::fit::GuestKind;
    use crate::program::{
        LoadRequest,
        cache::{self, Cache, CacheError, EntryId, Room},
        code::Code,
        compilation::{Compilation, Compilations, CompileTask},
        error::LoadFault,
        input::ComponentInput,
        load_permit::LoadPermit,
    };
    use weir_config::{MainConfig, bytes};
    use weir_logs::{Level, Logs, Source};
    use weir_names::chain;

    pub(in super::super) fn cache_is_ours(dir: &Path) -> Option<bool> {
        cache::is_ours(dir)
    }

    pub(in super::super) fn default_cache() -> Option<PathBuf> {
        let dir = MainConfig::default_cache_dir();
        cache::make(&dir).then_some(dir)
    }

    #[derive(Debug)]
    pub(in super::super) struct Compiler {
        compilation: Compilation,
        cache: Option<Cache>,
        logs: Arc<Logs>,
        under_way: Arc<Compilations>,
        /// Whether an entry was removed to make room for another.
        has_removed: AtomicBool,
        is_told: AtomicBool,
    }

    impl Compiler {
        /// Makes the compiler for this way of compiling, with the cache of `[main]`. Returns none if only artifacts
        /// run.
        pub(in super::super) fn new(
            config: &MainConfig,
            compilation: Compilation,
            logs: Arc<Logs>,
            under_way: Arc<Compilations>,
        ) -> Option<Self> {
            let cache = config.cache().map(|dir| Cache::new(dir.to_owned(), config.cache_size));
            (compilation != Compilation::PrecompiledOnly).then_some(Self {
                compilation,
                cache,
                logs,
                under_way,
                has_removed: AtomicBool::new(false),
                is_told: AtomicBool::new(false),
            })
        }

        /// Returns the code of a component, and the permit to load it. A cache that cannot be used only makes a
        /// warning, but a cache whose file system hangs fails the load.
        pub(in super::super) async fn code(
            &self,
            input: ComponentInput,
            wanted: LoadRequest<'_>,
            kind: GuestKind,
            engine: &Engine,
            class: AddressClass,
            permit: LoadPermit,
        ) -> Result<(Code, LoadPermit), LoadFault> {
            let Some(cache) = self.cache.clone() else {
                return self.compile(input, wanted, kind, class, permit.for_compiling().await?).await;
            };
            let id = EntryId::new(input.hash, engine);
            let (getting, allowed) = (cache.clone(), wanted.limits.code_size);
            let get = move || Ok(getting.get(id, allowed));
            if let Ok(Some(code)) = permit.read(get.clone()).await? {
                return Ok((code, permit));
            }
            let permit = permit.for_compiling().await?;
            // Another load may have compiled the component meanwhile.
            match permit.read(get).await? {
                Ok(Some(code)) => return Ok((code, permit)),
                Ok(None) => {}
                Err(error) => {
                    self.warn(wanted.name, "compiled again, because the cached code cannot be used", &error);
                }
            }
            let (code, permit) = self.compile(input, wanted, kind, class, permit).await?;
            let (code, kept) = permit
                .read(move || {
                    let kept = cache.put(id, &code);
                    Ok((code, kept))
                })
                .await?;
            match kept {
                Ok(Room::Made) => self.has_removed.store(true, Ordering::Relaxed),
                Ok(Room::Free) => {}
                Err(error) => {
                    self.warn(wanted.name, "the compiled code is not kept for the next start", &error);
                }
            }
            Ok((code, permit))
        }

        /// Warns once if the cache removes code of programs in use, because all of them together do not fit in.
        pub(in super::super) fn compare_cache(&self, in_use: impl FnOnce() -> u64) {
            let Some(cache) = &self.cache else { return };
            if !self.has_removed.load(Ordering::Relaxed) || self.is_told.load(Ordering::Relaxed) {
                return;
            }
            let in_use = in_use();
            if in_use > cache.size() {
                self.is_told.store(true, Ordering::Relaxed);
                tracing::warn!(
                    "the compiled code in use has {}, and `main.cache-size` is {}: the next start compiles some of it \
                     again, unless you raise that",
                    bytes(in_use),
                    bytes(cache.size())
                );
            }
        }

        async fn compile(
            &self,
            input: ComponentInput,
            wanted: LoadRequest<'_>,
            kind: GuestKind,
            class: AddressClass,
            permit: LoadPermit,
        ) -> Result<(Code, LoadPermit), LoadFault> {
            let (meanwhile, began) = (permit.meanwhile(), Instant::now());
            self.say(wanted.name, Level::Info, &format!("is being compiled: {}", bytes(input.bytes)));
            let under_way = self.under_way.begin(wanted.name, input.bytes);
            let code = self
                .compilation
                .compile(
                    input,
                    CompileTask::new(wanted.fit(kind), wanted.limits, wanted.traces, None, class),
                    permit,
                )
                .await?;
            drop(under_way);
            let took = began.elapsed().as_secs_f64();
            self.say(wanted.name, Level::Info, &format!("was compiled in {took:.1} s"));
            Ok((code, meanwhile.again().await?))
        }

        fn warn(&self, name: &str, what: &str, error: &CacheError) {
            self.say(name, Level::Warn, &format!("{what}: {}", chain(error)));
        }

        fn say(&self, name: &str, level: Level, text: &str) {
            self.logs.write(&name.into(), level, Source::Main, text, iter::empty());
        }
    }
}

#[cfg(not(feature = "compiler"))]
mod without {
    use std::{
        path::{Path, PathBuf},
        sync::Arc,
    };

    use wasmtime::Engine;

    use crate::engine::AddressClass;
    use crate::fit::GuestKind;
    use crate::program::{
        LoadRequest,
        code::Code,
        compilation::{Compilation, Compilations},
        error::LoadFault,
        input::ComponentInput,
        load_permit::LoadPermit,
    };
    use weir_config::MainConfig;
    use weir_logs::Logs;

    /// Returns none, because nothing is compiled here.
    pub(in super::super) fn cache_is_ours(_: &Path) -> Option<bool> {
        None
    }

    /// Returns none, as above.
    pub(in super::super) fn default_cache() -> Option<PathBuf> {
        None
    }

    /// The compiler of a build without one, which is never made.
    #[derive(Debug)]
    pub(in super::super) enum Compiler {}

    impl Compiler {
        pub(in super::super) fn new(
            _: &MainConfig,
            _: Compilation,
            _: Arc<Logs>,
            _: Arc<Compilations>,
        ) -> Option<Self> {
            None
        }

        #[expect(clippy::unused_async, reason = "a build with the compiler waits")]
        pub(in super::super) async fn code(
            &self,
            _: ComponentInput,
            _: LoadRequest<'_>,
            _: GuestKind,
            _: &Engine,
            _: AddressClass,
            _: LoadPermit,
        ) -> Result<(Code, LoadPermit), LoadFault> {
            match *self {}
        }

        pub(in super::super) fn compare_cache(&self, _: impl FnOnce() -> u64) {
            match *self {}
        }
    }
}
