//! Measures on demand how much fuel this machine burns in a millisecond, and keeps the result.
//!
//! Knows nothing of extensions: it runs a loop of its own in an engine like theirs.

use std::{thread, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use tokio::sync::{OnceCell, oneshot};
use wasmtime::{Instance, Store, TypedFunc};

/// Returns the units of fuel that this machine burns in a millisecond of plain arithmetic, or none if that cannot be
/// measured. A build without the compiler takes the measuring code from the first artifact with such code that it
/// loads, and measures nothing before.
///
/// The first call takes some ten milliseconds. Its result is kept. After a failure, the next call measures again.
pub async fn fuel_per_ms() -> Option<u64> {
    static MEASURED: OnceCell<u64> = OnceCell::const_new();
    MEASURED.get_or_try_init(measure_apart).await.ok().copied()
}

/// Measures on a thread of its own. The caller need not be on a tokio runtime, and Main's blocking pool may be busy
/// with files that hang.
async fn measure_apart() -> Result<u64, NotMeasured> {
    let (sender, measured) = oneshot::channel();
    // Fails only if the caller is gone.
    let work = move || drop(sender.send(measure()));
    thread::Builder::new().name("weir-calibrate".to_owned()).spawn(work).map_err(|_| NotMeasured)?;
    measured.await.map_err(|_| NotMeasured)?
}

#[derive(Debug)]
struct NotMeasured;

/// Makes the measuring code with the compiler.
#[cfg(feature = "compiler")]
mod source {
    use wasmtime::{Engine, Module};

    use crate::engine::{AddressClass, engine};

    /// The assembled form of `spin.wat`, which stands beside it.
    pub(crate) const MODULE: &[u8] = include_bytes!("calibration/spin.wasm");

    pub(super) fn module() -> wasmtime::Result<(Engine, Module)> {
        let engine = engine(AddressClass::Large)?;
        let module = Module::from_binary(&engine, MODULE)?;
        Ok((engine, module))
    }
}

/// Takes the measuring code from an artifact.
#[cfg(not(feature = "compiler"))]
mod source {
    use std::sync::OnceLock;

    use wasmtime::{Engine, Module};

    use crate::engine::engine;
    use crate::program::Kernel;

    static KERNEL: OnceLock<Kernel> = OnceLock::new();

    /// Keeps the measuring code of an artifact, unless there is some already.
    pub(crate) fn keep(kernel: impl FnOnce() -> Option<Kernel>) {
        if KERNEL.get().is_none()
            && let Some(kernel) = kernel()
        {
            // Fails only if another load has set it in the meantime.
            let _kept = KERNEL.set(kernel);
        }
    }

    pub(super) fn module() -> wasmtime::Result<(Engine, Module)> {
        let Some(kernel) = KERNEL.get() else { wasmtime::bail!("no artifact was loaded") };
        let engine = engine(kernel.class)?;
        let module = kernel.load(&engine)?;
        Ok((engine, module))
    }
}

#[cfg(feature = "compiler")]
pub(super) use self::source::MODULE;
#[cfg(not(feature = "compiler"))]
pub(super) use self::source::keep;

/// The processor time that one measurement takes at least. The result is the median of all measurements.
const SPELL: Duration = Duration::from_millis(1);

/// The number of measurements.
const SPELLS: usize = 5;

/// How many rounds the loop makes between two looks at the clock. These rounds take some ten microseconds.
const ROUNDS: i64 = 10_000;

fn measure() -> Result<u64, NotMeasured> {
    Spin::new().and_then(|mut spin| spin.median()).map_err(|error| {
        tracing::debug!("cannot measure the time that fuel takes: {error:#}");
        NotMeasured
    })
}

/// A Store with the measuring code: a loop that runs for a given number of rounds.
struct Spin {
    store: Store<()>,
    spin: TypedFunc<i64, i64>,
}

impl Spin {
    fn new() -> wasmtime::Result<Self> {
        let (engine, module) = source::module()?;
        let mut store = Store::new(&engine, ());
        store.set_fuel(u64::MAX)?;
        let instance = Instance::new(&mut store, &module, &[])?;
        let spin = instance.get_typed_func(&mut store, "spin")?;
        Ok(Self { store, spin })
    }

    fn median(&mut self) -> wasmtime::Result<u64> {
        let mut rates = [0; SPELLS];
        for rate in &mut rates {
            *rate = self.fuel_per_ms()?;
        }
        rates.sort_unstable();
        let [_, _, median, _, _] = rates;
        Ok(median)
    }

    fn fuel_per_ms(&mut self) -> wasmtime::Result<u64> {
        let (before, start) = (self.store.get_fuel()?, processor_time()?);
        let elapsed = loop {
            self.spin.call(&mut self.store, ROUNDS)?;
            let elapsed = processor_time()?.saturating_sub(start);
            if elapsed >= SPELL {
                break elapsed;
            }
        };
        let burnt = u128::from(before.saturating_sub(self.store.get_fuel()?));
        Ok(u64::try_from(burnt * 1_000_000 / elapsed.as_nanos())?)
    }
}

/// Returns the processor time of this thread. Other work of a busy machine must not count, because the result is kept.
fn processor_time() -> wasmtime::Result<Duration> {
    Ok(Duration::try_from(clock_gettime(ClockId::ThreadCPUTime))?)
}

#[cfg(all(test, feature = "compiler"))]
mod tests {
    use super::*;

    #[test]
    fn the_module_is_what_its_text_says() {
        let assembled = wat::parse_str(include_str!("calibration/spin.wat")).unwrap();
        assert_eq!(assembled, MODULE, "assemble `spin.wat` anew");
    }

    #[tokio::test]
    async fn fuel_is_measured_once() {
        let first = fuel_per_ms().await.unwrap();
        assert!((1_000..1_000_000_000).contains(&first), "{first}");
        assert_eq!(fuel_per_ms().await, Some(first));
    }
}
