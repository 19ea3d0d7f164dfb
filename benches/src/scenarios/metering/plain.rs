//! The same component without limits: the cost of the engine alone.

use std::{fs, path::Path, time::Instant};

use anyhow::{Context, Result, anyhow};
use tokio::runtime::Runtime;
use wasmtime::{
    Engine, Store,
    component::{Component, Linker, ResourceTable},
};
use wasmtime_wasi::{
    WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
    p2::{bindings::CommandPre, pipe::MemoryOutputPipe},
};
use weir_host::config::Limits;

use super::Run;

#[path = "../../../../host/guest/src/engine/config.rs"]
mod weir;

/// Bytes that a kernel may print.
const OUTPUT: usize = 64 * 1024;

/// The program, compiled as Weir compiles it, but without fuel.
pub(super) struct Plain {
    engine: Engine,
    program: CommandPre<Wasi>,
    runtime: Runtime,
}

/// The state that WASI needs.
struct Wasi {
    ctx: WasiCtx,
    table: ResourceTable,
}

impl WasiView for Wasi {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.ctx, table: &mut self.table }
    }
}

impl std::fmt::Debug for Plain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Plain").finish_non_exhaustive()
    }
}

impl Plain {
    pub(super) fn start(component: &Path) -> Result<Self> {
        let limits = Limits::default();
        let mut config =
            weir::config(usize::try_from(limits.stack)?, usize::try_from(limits.fixed().host_stack)?);
        config.consume_fuel(false);
        let engine = Engine::new(&config)?;
        let bytes = fs::read(component).with_context(|| format!("cannot read `{}`", component.display()))?;
        let mut linker = Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        let program = CommandPre::new(linker.instantiate_pre(&Component::new(&engine, bytes)?)?)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { engine, program, runtime })
    }

    /// From before its instantiation to its end.
    pub(super) fn run(&self, kernel: &str, count: u32) -> Result<Run> {
        let start = Instant::now();
        let stdout = MemoryOutputPipe::new(OUTPUT);
        let mut ctx = WasiCtxBuilder::new();
        ctx.env("KERNEL", kernel).env("COUNT", count.to_string()).stdout(stdout.clone());
        let mut store = Store::new(&self.engine, Wasi { ctx: ctx.build(), table: ResourceTable::new() });
        self.runtime.block_on(async {
            let command = self.program.instantiate_async(&mut store).await?;
            let ended = command.wasi_cli_run().call_run(&mut store).await?;
            ended.map_err(|()| anyhow!("the kernel did not end well"))
        })?;
        drop(store);
        Ok(Run { time: start.elapsed(), sum: stdout.contents().to_vec() })
    }
}
