//! The benchmarks: builds them with their extensions and hooks, and starts them.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use clap::Args;

use crate::{
    demo::weir,
    dist::{TARGETS, Target},
    full_http, guests, pgo,
    run::{cargo, root, run, target_dir},
    tools,
};

/// The scenario that needs a NATS server.
const FLEET: &str = "fleet";

/// The scenario that needs `wasmtime`.
const HTTP_SERVER: &str = "http-server";

/// What to measure, and where the figures go.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Measure for regressions, not for the record.
    #[arg(long)]
    quick: bool,
    /// Run only this scenario. Can be given more than once.
    #[arg(long, value_name = "SCENARIO")]
    only: Vec<String>,
    /// Write the figures to this file, one JSON object a line.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Put the figures into the record of `docs/benchmarks.md`, too, and make the page from it.
    #[arg(long)]
    docs: bool,
    /// Have extensions and hooks interpreted by Pulley, as on 32-bit processors.
    #[arg(long)]
    pulley: bool,
    /// Measure Main's memory on another machine, emulated: the scenario `footprint`.
    #[arg(long, value_name = "TRIPLE", value_parser = TARGETS.map(|target| target.triple))]
    #[arg(conflicts_with_all = ["pulley", "only"])]
    target: Option<String>,
    /// Measure nothing: show how the figures of two files differ, the worst first.
    #[arg(long, num_args = 2, value_names = ["FILE", "FILE"], conflicts_with_all = ["quick", "only", "json", "docs", "pulley", "target"])]
    compare: Vec<PathBuf>,
    /// Measure nothing: make the tables of `docs/benchmarks.md` from its record.
    #[arg(long, conflicts_with_all = ["quick", "only", "json", "docs", "pulley", "target", "compare"])]
    page: bool,
}

const PAGE: &str = "docs/benchmarks.md";

pub(crate) fn bench(arguments: &Arguments) -> Result<()> {
    if !arguments.compare.is_empty() {
        let program = Profile::Shipped.programs()?.join("weir-bench");
        return run(Command::new(program).arg("--compare").args(&arguments.compare));
    }
    if arguments.page {
        let program = Profile::OfTests.programs()?.join("weir-bench");
        return run(Command::new(program).arg("--page").arg(root()?.join(PAGE)));
    }
    let target = arguments.target.as_deref().map(Target::named).transpose()?;
    if arguments.docs && !arguments.pulley && target.is_none() && pgo::IS_HERE {
        // The page shows what is shipped, so it must be compiled with a profile.
        pgo::made()?;
    }
    let profile = if arguments.pulley { Profile::Interpreting } else { Profile::Shipped };
    let mut measure = program(profile, target)?;
    if target.is_some() {
        measure.args(["--only", "footprint"]);
    } else {
        let is_wanted =
            |name: &str| arguments.only.is_empty() || arguments.only.iter().any(|only| only == name);
        if is_wanted(FLEET) {
            profile.add_fleet(&mut measure)?;
        }
        if is_wanted(HTTP_SERVER) {
            add_wasmtime(&mut measure);
        }
    }
    measure.args(["--scale", if arguments.quick { "quick" } else { "full" }]);
    for scenario in &arguments.only {
        measure.args(["--only", scenario]);
    }
    if let Some(file) = &arguments.json {
        measure.arg("--json").arg(file);
    }
    if arguments.docs {
        measure.arg("--docs").arg(root()?.join(PAGE));
    }
    run(&mut measure)
}

/// Runs every scenario to see that it works and yields figures. Times are not judged.
pub(crate) fn check() -> Result<()> {
    let json = tempfile::tempdir()?;
    let mut measure = program(Profile::OfTests, None)?;
    Profile::OfTests.add_fleet(&mut measure)?;
    add_wasmtime(&mut measure);
    run(measure.args(["--scale", "smoke", "--json"]).arg(json.path().join("figures.json")))
}

/// Runs every scenario with programs that write what they did to files of this name: all but the fleet, whose programs
/// do not end by themselves.
pub(crate) fn train(files: &Path) -> Result<()> {
    let mut measure = program(Profile::Counting, None)?;
    run(measure.args(["--scale", "quick"]).env("LLVM_PROFILE_FILE", files))
}

/// How the programs are built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Profile {
    /// As they are shipped, which takes long.
    Shipped,
    /// As they are shipped, but they count what they do.
    Counting,
    /// Optimised, with extensions and hooks interpreted. No profile is used: features differ, so it would match by
    /// chance.
    Interpreting,
    /// As the tests have them.
    OfTests,
}

impl Profile {
    /// Builds the program that measures, and returns its directory.
    fn programs(self) -> Result<PathBuf> {
        let (mut build, dir) = self.build()?;
        run(build.args(["--bin", "weir-bench"]))?;
        Ok(dir)
    }

    /// A build by Cargo to which the caller adds the names of programs, and the directory where they will be.
    fn build(self) -> Result<(Command, PathBuf)> {
        match self {
            Self::Shipped => pgo::build(),
            Self::Counting => pgo::build_counting(),
            Self::Interpreting => {
                let (mut build, dir) = pgo::build_plainly()?;
                build.args(["--features", "pulley"]);
                Ok((build, dir))
            }
            Self::OfTests => Ok((cargo(weir::AS_TESTED)?, target_dir()?.join("debug"))),
        }
    }

    /// Builds Main without the compiler, for a target or for this machine, and returns the program's path.
    fn device(self, target: Option<&Target>) -> Result<PathBuf> {
        // It is built alone, because other packages would turn the feature `compiler` on.
        let mut build = cargo(["build", "--package", "weir-device"])?;
        let dir = match (self, target) {
            (Self::OfTests, _) => target_dir()?.join("debug"),
            (_, Some(target)) => {
                target.prepare()?;
                target.choose(&mut build);
                let directory = Target::directory()?;
                build.args(["--profile", "device"]).env("CARGO_TARGET_DIR", &directory);
                directory.join(target.triple).join("device")
            }
            (_, None) => {
                build.args(["--profile", "device"]);
                if self == Self::Interpreting {
                    build.args(["--features", "pulley"]);
                }
                target_dir()?.join("device")
            }
        };
        run(&mut build)?;
        Ok(dir.join("weir-device"))
    }

    /// Builds the programs of the scenario `fleet`, and passes their paths on. Does nothing without a NATS server.
    fn add_fleet(self, measure: &mut Command) -> Result<()> {
        let server = match tools::nats_server() {
            Ok(server) => server,
            Err(error) => {
                eprintln!("going on without the scenario `{FLEET}`: {error:#}");
                return Ok(());
            }
        };
        let (mut build, dir) = self.build()?;
        build.args(["--bin", "weir"]);
        let of_bridge = if self == Self::OfTests {
            build.args(["--bin", "weir-nats", "--bin", "weir-bench-fleet"]);
            dir.clone()
        } else {
            let packages = ["--package", "weir-nats", "--package", "weir-bench-fleet"];
            run(cargo(["build", "--release"])?.args(packages))?;
            target_dir()?.join("release")
        };
        run(&mut build)?;
        measure.arg("--fleet").arg(of_bridge.join("weir-bench-fleet"));
        measure.arg(dir.join("weir")).arg(of_bridge.join("weir-nats")).arg(server);
        Ok(())
    }
}

/// Passes the path of `wasmtime` on, which PyPI has. Does nothing without that.
fn add_wasmtime(measure: &mut Command) {
    match full_http::wasmtime() {
        Ok(wasmtime) => drop(measure.arg("--wasmtime").arg(wasmtime)),
        Err(error) => eprintln!("going on without the scenario `{HTTP_SERVER}`: {error:#}"),
    }
}

/// Builds all that is measured. Returns the command that measures it.
fn program(profile: Profile, device: Option<&Target>) -> Result<Command> {
    let dir = profile.programs()?;
    let mut program = Command::new(dir.join("weir-bench"));
    guests::add_target()?;
    let build_programs = |for_weir: &[&str]| {
        let packages = ["--package", "bench-guests", "--package", "kernels", "--package", "example-hooks"];
        run(cargo(["build", "--bins", "--profile", "guest"])?.args(packages).args(for_weir))
    };
    let plugins = guests::PLUGINS.iter().flat_map(|(package, _)| ["--package", package]);
    build_programs(&["--target", guests::TARGET].into_iter().chain(plugins).collect::<Vec<_>>())?;
    // Native processes of the same source, to compare hooks with.
    build_programs(&[])?;
    let target = target_dir()?;
    program.arg("--guests").arg(target.join(guests::TARGET).join("guest"));
    program.arg("--native").arg(target.join("guest"));
    program.arg("--device").arg(profile.device(device)?);
    if let Some(device) = device {
        let emulator = device.emulator.context("its programs run here: measure without `--target`")?;
        program.args(["--target", device.triple, "--emulator", emulator]);
    }
    // With these variables set, every error would take a backtrace. A developer's shell may set them; a device does
    // not.
    program.env_remove("RUST_BACKTRACE").env_remove("RUST_LIB_BACKTRACE");
    Ok(program)
}
