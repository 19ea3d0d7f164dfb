//! Connections to an echo on this machine: from inside the sandbox, and from native tasks.

mod native;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use weir_host::{Config, ExtensionConfig, Main, MainConfig, client::Subscriber};

use self::native::{Native, Server};
use super::{Measured, Round};
use crate::{
    figure::Figure,
    scale::Scale,
    scenarios::{Bench, descriptors::allow_descriptors, embedder::Embedder, progress},
};

/// Descriptors for both ends of all connections, native and from extensions, and for the rest.
const DESCRIPTORS: u64 = 2 * 2 * 1000 + 1000;

/// The target for connections spread over many extensions, over the baseline.
const TARGET: f64 = 2.0;

#[derive(Clone, Copy, Debug)]
struct Spread {
    extensions: u32,
    connections: u32,
    /// Of each connection, in a round of a full run.
    exchanges: u32,
    target: Option<f64>,
}

/// One extension can have 250 at most: a connection takes four of the 1024 WASI resources of the class `max`.
const SPREADS: [Spread; 3] = [
    Spread { extensions: 1, connections: 250, exchanges: 800, target: None },
    Spread { extensions: 10, connections: 100, exchanges: 200, target: None },
    Spread { extensions: 100, connections: 10, exchanges: 200, target: Some(TARGET) },
];

impl Spread {
    fn at(self, scale: Scale) -> Self {
        match scale {
            Scale::Full => self,
            Scale::Quick => Self { exchanges: self.exchanges / 5, ..self },
            Scale::Smoke => Self { connections: 2, exchanges: 5, ..self },
        }
    }
}

pub(super) fn run(bench: &Bench) -> Result<Vec<Figure>> {
    allow_descriptors(DESCRIPTORS)?;
    let server = Server::start()?;
    let spreads = SPREADS.map(|spread| spread.at(bench.scale));
    let most = spreads.iter().map(|spread| spread.extensions * spread.connections).max();
    let mut native = Native::connect(server.address, most.unwrap_or_default())?;
    // Compiled for the first of them only.
    let cache = tempfile::tempdir().context("cannot make a directory")?;
    let mut figures = Vec::new();
    for Spread { extensions, connections, exchanges, target } in spreads {
        let all = extensions * connections;
        let case = format!("over TCP, {extensions} × {connections} connections");
        let mut measured = Measured::new(case, all * exchanges, target);
        let connected = (0..extensions)
            .map(|number| bench.guests.sockets(&format!("sockets-{number}"), server.address, connections));
        let mut weir = Weir::start(connected.collect::<Result<_>>()?, cache.path())?;
        let rounds = bench.scale.pick(5, 3, 1);
        for round in 0..rounds {
            progress(&measured.case, round, rounds);
            measured.native.push(Round::of(|| native.exchange(all, exchanges))?);
            measured.weir.push(Round::of(|| weir.exchange(exchanges))?);
        }
        figures.extend(measured.figures());
    }
    Ok(figures)
}

#[derive(Debug)]
struct Weir {
    extensions: u32,
    done: Subscriber,
    embedder: Embedder,
}

impl Weir {
    fn start(connected: Vec<ExtensionConfig>, cache: &Path) -> Result<Self> {
        let extensions = u32::try_from(connected.len())?;
        let mut main = MainConfig::default();
        main.cache_dir = Some(cache.to_owned());
        let embedder = Embedder::start(Main::builder(Config::new(main, connected)))?;
        Ok(Self { extensions, done: embedder.client().subscribe("done")?, embedder })
    }

    fn exchange(&mut self, exchanges: u32) -> Result<()> {
        let answers = (&mut self.done, self.extensions);
        for failure in self.embedder.publish_and_hear("go", exchanges.to_string(), answers)? {
            ensure!(failure == "null", "an extension said {failure:?}");
        }
        Ok(())
    }
}
