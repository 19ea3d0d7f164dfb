//! From a component to its code: what the cache has, or else the compiler makes.

#[cfg(feature = "compiler")]
pub(super) use with::Compiler;
#[cfg(not(feature = "compiler"))]
pub(super) use without::Compiler;

#[cfg(feature = "compiler")]
mod with {
    use std::{iter, sync::Arc};

    use wasmtime::Engine;

    use crate::program::{
        LoadRequest,
        cache::{Cache, CacheError, EntryId},
        chain,
        code::Code,
        compilation::{Compilation, CompileTask},
        error::LoadFault,
        input::ComponentInput,
        load_permit::LoadPermit,
    };
    use weir_config::MainConfig;
    use weir_logs::{Level, Logs, Source};

    #[derive(Debug)]
    pub(in super::super) struct Compiler {
        compilation: Compilation,
        cache: Option<Cache>,
        logs: Arc<Logs>,
    }

    impl Compiler {
        /// None: only what was compiled elsewhere is to run.
        pub(in super::super) fn new(
            config: &MainConfig,
            compilation: Compilation,
            logs: Arc<Logs>,
        ) -> Option<Self> {
            let cache = config.cache_dir.clone().map(|dir| Cache::new(dir, config.cache_size));
            (compilation != Compilation::PrecompiledOnly).then_some(Self { compilation, cache, logs })
        }

        /// The code of a component. What goes wrong with the cache costs a warning.
        pub(in super::super) async fn code(
            &self,
            input: ComponentInput,
            wanted: LoadRequest<'_>,
            engine: &Engine,
            permit: LoadPermit,
        ) -> Result<Code, LoadFault> {
            let task = CompileTask::new(wanted.limits, None);
            let Some(cache) = self.cache.clone() else {
                return self.compilation.compile(input, task, permit.clone()).await;
            };
            let id = EntryId::new(input.hash, engine);
            let (getting, allowed) = (cache.clone(), wanted.limits.code_size);
            match permit.read(move || Ok(getting.get(id, allowed))).await? {
                Ok(Some(code)) => return Ok(code),
                Ok(None) => {}
                Err(error) => {
                    self.warn(wanted.name, "compiled afresh, since what is cached cannot be used", &error);
                }
            }
            let code = self.compilation.compile(input, task, permit.clone()).await?;
            let (code, kept) = permit
                .read(move || {
                    let kept = cache.put(id, &code);
                    Ok((code, kept))
                })
                .await?;
            if let Err(error) = kept {
                self.warn(wanted.name, "what was compiled is not kept for the next start", &error);
            }
            Ok(code)
        }

        fn warn(&self, name: &str, what: &str, error: &CacheError) {
            let text = format!("{what}: {}", chain(error));
            self.logs.write(&name.into(), Level::Warn, Source::Main, &text, iter::empty());
        }
    }
}

#[cfg(not(feature = "compiler"))]
mod without {
    use std::sync::Arc;

    use wasmtime::Engine;

    use crate::program::{
        LoadRequest, code::Code, compilation::Compilation, error::LoadFault, input::ComponentInput,
        load_permit::LoadPermit,
    };
    use weir_config::MainConfig;
    use weir_logs::Logs;

    /// There is none.
    #[derive(Debug)]
    pub(in super::super) enum Compiler {}

    impl Compiler {
        pub(in super::super) fn new(_: &MainConfig, _: Compilation, _: Arc<Logs>) -> Option<Self> {
            None
        }

        #[expect(clippy::unused_async, reason = "it stands for one that compiles")]
        pub(in super::super) async fn code(
            &self,
            _: ComponentInput,
            _: LoadRequest<'_>,
            _: &Engine,
            _: LoadPermit,
        ) -> Result<Code, LoadFault> {
            match *self {}
        }
    }
}
