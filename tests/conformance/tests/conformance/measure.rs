//! What a language costs: figures of its component on this machine.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use weir_host::{Config, Error, Main, attached::Attached, limits::LimitValue};

use crate::{
    language::Language,
    stage::{GUEST, Gate, builder, config, guest},
};

/// Echoes of 1 KiB that are timed, after as many that are not.
const ECHOES: usize = 500;

/// What a component takes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Figures {
    /// Bytes of the component.
    pub(crate) file: u64,
    /// Bytes of its compiled code.
    pub(crate) code: u64,
    /// From Main's start to ready, without a cache.
    pub(crate) compile_seconds: f64,
    /// From the start of the extension to ready, with its code in the cache.
    pub(crate) start_ms: f64,
    /// Bytes of linear memory when ready.
    pub(crate) idle_memory: u64,
    /// From the start to ready.
    pub(crate) start_fuel: u64,
    /// For an echo of 1 KiB.
    pub(crate) echo_fuel: u64,
    /// What becomes of an exception or a panic that nothing catches.
    pub(crate) exception: String,
    /// For an echo, by a caller on Main's own thread: the median.
    pub(crate) echo_us: f64,
}

pub(crate) async fn measure(language: &Language) -> Figures {
    let (cache, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let alone = || {
        let mut config = config(language, data.path(), cache.path());
        config.extensions.retain(|extension| extension.id.as_str() == GUEST);
        config
    };
    let start = Instant::now();
    let main = started(alone()).await;
    let compile_seconds = start.elapsed().as_secs_f64();
    let cached = fs::read_dir(cache.path()).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    // Beside it there are a key and a lock.
    let code = cached.max().unwrap();
    let idle_memory = main.control().status(GUEST).unwrap().memory;
    main.shutdown().await.unwrap();

    let mut later = alone();
    guest(&mut later).autostart = false;
    let (times, echo_us) = tokio::sync::oneshot::channel();
    let work = move |attached| echoes(attached, times);
    let main = builder(later, &Gate::default()).attach(work).start().await.unwrap();
    let start = Instant::now();
    main.control().start(GUEST).await.unwrap();
    let start_ms = start.elapsed().as_secs_f64() * 1000.0;
    let echo_us = echo_us.await.unwrap();
    let (start_fuel, echo_fuel) = (used(&main, "fuel-to-start"), used(&main, "fuel-per-message"));
    let exception = match main.client().call("conformance@1", "break", "").await {
        Err(Error::Trapped) => "ends the instance".to_owned(),
        Err(Error::Handler(error)) => format!("is answered `{}`", error.code),
        other => panic!("{other:?}"),
    };
    Figures {
        file: fs::metadata(&language.component).unwrap().len(),
        code,
        compile_seconds,
        start_ms,
        idle_memory,
        start_fuel,
        echo_fuel,
        echo_us,
        exception,
    }
}

/// The most that the guest used of a limit.
fn used(main: &Main, key: &str) -> u64 {
    let report = main.control().limits_now(None, Some(GUEST));
    let limit = report.extensions.first().unwrap().limits.iter().find(|limit| limit.key == key).unwrap();
    match limit.peak {
        Some(LimitValue::Count(count)) => count,
        _ => panic!("{limit:?}"),
    }
}

async fn started(config: Config) -> Main {
    let main = builder(config, &Gate::default()).start().await.unwrap();
    main.client().call("conformance@1", "echo", "").await.unwrap();
    main
}

/// Calls on Main's own thread, one after the other, and says how long one takes.
async fn echoes(attached: Attached, times: tokio::sync::oneshot::Sender<f64>) {
    let payload = bytes::Bytes::from(vec![b'x'; 1024]);
    let echo = async || attached.client.call("conformance@1", "echo", payload.clone()).await;
    // Until it is started.
    while echo().await.is_err() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut taken = Vec::with_capacity(ECHOES);
    for round in 0..2 * ECHOES {
        let start = Instant::now();
        echo().await.unwrap();
        if round >= ECHOES {
            taken.push(start.elapsed());
        }
    }
    taken.sort();
    // The receiver waits.
    times.send(taken[ECHOES / 2].as_secs_f64() * 1e6).unwrap();
}
