//! The cost of limits for a guest that computes. `docs/benchmarks.md` explains the figures.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, anyhow, ensure};
use tokio::runtime::Runtime;
use wasmtime::{
    Engine, Store,
    component::{Component, Linker, ResourceTable},
};
use wasmtime_wasi::{
    WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView,
    p2::{bindings::CommandPre, pipe::MemoryOutputPipe},
};
use weir_host::{config::Limits, hooks::HookCall};

use super::{Bench, Scenario, one_hook::OneHook, progress};
use crate::figure::{Figure, Unit, microseconds};

#[path = "../../../host/guest/src/engine/config.rs"]
mod weir;

const NAME: &str = "metering";

pub(super) const SCENARIO: Scenario =
    Scenario { name: NAME, about: "kernels that compute, with limits and without", run };

/// The target: a kernel with limits, over one without.
const LIMITED: f64 = 1.25;

const WITH_LIMITS: &str = "with limits";
const AS_A_PROCESS: &str = "as a process";

const PROGRAM: &str = "kernels";

/// The kernels, and their repetitions in a hundredth of a full round.
const KERNELS: [(&str, u32); 9] = [
    ("xorshift", 1_000_000),
    ("divide", 500_000),
    ("crc", 12),
    ("matrix", 8),
    ("sort", 1),
    ("copy", 500),
    ("fibonacci", 30),
    ("chase", 120_000),
    ("text", 20),
];

/// The same kernels in three ways.
#[derive(Debug)]
struct Ways {
    limited: OneHook,
    plain: Plain,
    native: PathBuf,
}

#[derive(Debug)]
struct Run {
    time: Duration,
    /// What the kernel printed, which is the same in all ways.
    sum: Vec<u8>,
}

fn run(bench: &Bench) -> Result<Vec<Figure>> {
    let scale = bench.scale;
    let (rounds, times) = (scale.pick(7, 3, 1), scale.pick(100, 30, 1));
    let ways = Ways {
        limited: OneHook::start(&bench.guests, PROGRAM)?,
        plain: Plain::start(&bench.guests.component(PROGRAM))?,
        native: bench.guests.native(PROGRAM),
    };
    ways.limited.settle(scale, call("xorshift", 1))?;
    let mut figures = Vec::new();
    for (step, (kernel, count)) in KERNELS.into_iter().enumerate() {
        progress(kernel, step, KERNELS.len());
        figures.extend(ways.measure(kernel, count * times, rounds).context(kernel)?);
    }
    let mean = [all(&figures, WITH_LIMITS).at_most(LIMITED), all(&figures, AS_A_PROCESS)];
    figures.extend(mean);
    Ok(figures)
}

/// The geometric mean of the ratios of all kernels.
fn all(figures: &[Figure], metric: &str) -> Figure {
    let of = figures.iter().filter(|figure| figure.metric == metric);
    let logarithms: Vec<f64> = of.filter_map(|figure| Some(figure.ratio?.ln())).collect();
    let count: f64 = logarithms.iter().map(|_| 1.0).sum();
    let mean = (logarithms.iter().sum::<f64>() / count).exp();
    Figure::new(NAME, "all", metric, Unit::Times, mean)
}

impl Ways {
    fn measure(&self, kernel: &str, count: u32, rounds: usize) -> Result<[Figure; 2]> {
        let (mut limited, mut plain, mut native) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let runs = [
                self.limited(kernel, count)?,
                self.plain.run(kernel, count)?,
                as_a_process(&self.native, kernel, count)?,
            ];
            let [first, second, third] = &runs;
            let same = !first.sum.is_empty() && first.sum == second.sum && first.sum == third.sum;
            ensure!(same, "not all came to the same: {runs:?}");
            let times = [&mut limited, &mut plain, &mut native].into_iter().zip(&runs);
            times.for_each(|(times, run)| times.push(microseconds(run.time) / 1000.0));
        }
        let figure = |metric, rounds: &[f64]| {
            let figure = Figure::of_rounds(NAME, kernel, metric, Unit::Milliseconds, rounds);
            figure.beside_rounds(rounds, &plain)
        };
        Ok([figure(WITH_LIMITS, &limited), figure(AS_A_PROCESS, &native)])
    }

    fn limited(&self, kernel: &str, count: u32) -> Result<Run> {
        let (_, run) = self.limited.run(call(kernel, count))?;
        Ok(Run { time: run.duration, sum: run.stdout.to_vec() })
    }
}

fn call(kernel: &str, count: u32) -> HookCall {
    HookCall::new().env("KERNEL", kernel).env("COUNT", count.to_string())
}

fn as_a_process(program: &Path, kernel: &str, count: u32) -> Result<Run> {
    let start = Instant::now();
    let mut command = Command::new(program);
    command.env_clear().env("KERNEL", kernel).env("COUNT", count.to_string()).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot run `{}`", program.display()))?;
    ensure!(output.status.success(), "`{}` ended with {output:?}", program.display());
    Ok(Run { time: start.elapsed(), sum: output.stdout })
}

/// Bytes that a kernel may print.
const OUTPUT: usize = 64 * 1024;

/// The program, compiled as Weir compiles it, but without fuel.
struct Plain {
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
    fn start(component: &Path) -> Result<Self> {
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

    /// Runs a kernel. The time is from before its instantiation to its end.
    fn run(&self, kernel: &str, count: u32) -> Result<Run> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_that_takes_twice_and_one_that_takes_half_make_no_difference() {
        let figure = |metric, value| Figure::new(NAME, "k", metric, Unit::Milliseconds, value).beside(1.0);
        let figures = [figure(WITH_LIMITS, 2.0), figure(AS_A_PROCESS, 9.0), figure(WITH_LIMITS, 0.5)];
        assert!((all(&figures, WITH_LIMITS).value - 1.0).abs() < 1e-9);
        assert!((all(&figures, AS_A_PROCESS).value - 9.0).abs() < 1e-9);
    }
}
