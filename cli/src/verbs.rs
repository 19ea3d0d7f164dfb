//! The verbs of `weir`, each listed once. A verb is one file here: its arguments, its run, its table.
//!
//! Verbs for a running Main use only its control socket. Others, such as `run`, `check`, `hooks`, `inspect`, `compile`
//! and `limits --file`, use the library itself.

#[cfg(feature = "compiler")]
mod author;
mod call;
mod check;
#[cfg(feature = "tools")]
mod check_contract;
#[cfg(feature = "compiler")]
mod compile;
mod completions;
#[cfg(feature = "tools")]
mod describe;
#[cfg(feature = "tools")]
mod generate;
mod history;
mod hooks;
#[cfg(feature = "tools")]
mod inspect;
mod limits;
mod lock;
mod logs;
mod metrics;
mod orders;
#[cfg(feature = "otlp")]
mod otlp;
#[cfg(feature = "compiler")]
mod package;
#[cfg(feature = "packages")]
mod packages;
mod peers;
mod plan;
mod ps;
mod publish;
mod queues;
mod reload;
mod run;
mod schema;
mod shutdown;
#[cfg(feature = "compiler")]
mod sign;
mod status;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "tools")]
mod symbolise;
mod tail;
#[cfg(feature = "tools")]
mod top;
mod topics;
mod trace;
mod versions;

use crate::client::block_on;

/// Makes the verbs from the list below, which has for each its help, its arguments, and the function that runs it.
macro_rules! verbs {
    ($(
        $(#[doc = $about:tt])+
        $(#[cfg($cfg:meta)])?
        $(#[command($($command:tt)*)])?
        $verb:ident($($args:ident)::+) = $run:expr,
    )+) => {
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum Verb {$(
            $(#[doc = $about])+
            $(#[cfg($cfg)])?
            $(#[command($($command)*)])?
            $verb($($args)::+),
        )+}

        impl Verb {
            pub(crate) fn run(self) -> anyhow::Result<()> {
                match self {$(
                    $(#[cfg($cfg)])?
                    Self::$verb(args) => $run(args),
                )+}
            }
        }
    };
}

verbs! {
    /// Make the project of an extension, a hook, an app or a sidecar
    #[cfg(feature = "compiler")]
    New(author::new::Args) = author::new::run,
    /// Build a project, and describe its contracts in its component
    #[cfg(feature = "compiler")]
    Build(author::build::Args) = awaited(author::build::run),
    /// Build and run a project again after each change
    #[cfg(feature = "compiler")]
    Dev(author::dev::Args) = awaited(author::dev::run),
    /// Test a project in a Main of its own
    #[cfg(feature = "compiler")]
    Test(author::test::Args) = awaited(author::test::run),
    /// Run Main with the extensions of a configuration, until it is stopped
    Run(run::Args) = run::run,
    /// Check a configuration and the components that it names, without running them
    Check(check::Args) = check::run,
    /// Write the lock of a configuration: the only components that `weir run --locked` runs
    Lock(lock::Args) = lock::run,
    /// Print a JSON Schema of the configuration, with which editors complete and check it
    Schema(schema::Args) = schema::run,
    /// List the extensions: state, processor time, memory, waiting messages; and the peers
    Ps(ps::Args) = awaited(ps::run),
    /// Show live what extensions and peers use, on the whole terminal; stop, restart or reload one
    #[cfg(feature = "tools")]
    Top(top::Args) = top::run,
    /// Show the details of one extension and its last failures
    Status(status::Args) = awaited(status::run),
    /// Show the latest events of an extension and their causes
    History(history::Args) = awaited(history::run),
    /// Show the versions of an extension: which one serves, and what became of the others
    Versions(versions::Args) = awaited(versions::run),
    /// Show the limits of extensions: value, usage, and where each is set
    Limits(limits::Args) = awaited(limits::run),
    /// Show the log lines of extensions
    Logs(logs::Args) = awaited(logs::run),
    /// Show the operations, topics and queues of contracts: of a component, or of what runs
    #[cfg(feature = "tools")]
    Describe(describe::Args) = awaited(describe::run),
    /// Write a typed client of contracts: Rust, TypeScript or Python
    #[cfg(feature = "tools")]
    Generate(generate::Args) = awaited(generate::run),
    /// Say whether the next version of a contract breaks its callers
    #[cfg(feature = "tools")]
    CheckContract(check_contract::Args) = check_contract::run,
    /// Call an operation of a contract and print the answer
    Call(call::Args) = awaited(call::run),
    /// Publish an event
    Publish(publish::Args) = awaited(publish::run),
    /// Show events as they are published
    Tail(tail::Args) = awaited(tail::run),
    /// Show topics and their subscribers: rates, lags, losses
    Topics(topics::Args) = awaited(topics::run),
    /// Show shared queues: waiting jobs, rates, losses; show, put and requeue jobs
    Queues(queues::Args) = awaited(queues::run),
    /// Show the metrics of Main, or serve them for Prometheus
    Metrics(metrics::Args) = awaited(metrics::run),
    /// Show where the time of a request went, from extension to extension
    Trace(trace::Args) = awaited(trace::run),
    /// Export the spans of Main to a collector of OpenTelemetry, until a signal
    #[cfg(feature = "otlp")]
    Otlp(otlp::Args) = awaited(otlp::run),
    /// Show programs outside Main and their sessions; end a session, make a token
    Peers(peers::Args) = peers::run,
    /// List, read and change key-value stores; export, import and compact them
    #[cfg(feature = "store")]
    Store(store::Args) = awaited(store::run),
    /// Run directories of hooks: commands that run one after another, each to its end
    #[command(subcommand)]
    Hooks(hooks::Command) = hooks::run,
    /// Start extensions, each after its dependencies, and wait until they are ready
    #[command(after_help = "\
Starts several extensions one after another; if one does not start, the others still do.

Examples:
  weir start uploader
  weir start --all")]
    Start(orders::Args) = awaited(|args| orders::run(args, "start")),
    /// Stop extensions and wait until they have ended
    #[command(after_help = "\
Extensions that require a stopped one go on, and get `no-provider` until it runs again. Stops several
extensions one after another; with --all, the last of the configuration first.

Examples:
  weir stop uploader
  weir stop uploader telemetry")]
    Stop(orders::Args) = awaited(|args| orders::run(args, "stop")),
    /// Stop and start extensions, forget their failures, and wait until they are ready
    #[command(after_help = "\
Reads the components again, forgets earlier failures and lifts a quarantine. Restarts several extensions
one after another; if one does not start, the others still do.

Examples:
  weir restart uploader
  weir restart --all")]
    Restart(orders::Args) = awaited(|args| orders::run(args, "restart")),
    /// Replace extensions while Main runs: one, or all that have changed in the configuration
    Reload(reload::Args) = awaited(reload::run),
    /// Take the version of an extension on probation for proven
    Accept(versions::AcceptArgs) = awaited(versions::accept),
    /// Refuse the version of an extension that serves, and go back to a proven one
    Rollback(versions::RollBackArgs) = awaited(versions::roll_back),
    /// Show what a reload would do: the keys, limits, grants and components that would change
    Plan(plan::Args) = awaited(plan::run),
    /// Stop all extensions and Main, and wait until they have ended
    Shutdown(shutdown::Args) = awaited(shutdown::run),
    /// Show the imports, exports and needs of a component, as TOML to paste; or the target of an artifact
    #[cfg(feature = "tools")]
    Inspect(inspect::Args) = inspect::run,
    /// Compile a component to a signed artifact, for devices that run only artifacts
    #[cfg(feature = "compiler")]
    Compile(compile::Args) = compile::run,
    /// Show the source lines of the functions in a trace
    #[cfg(feature = "tools")]
    #[command(visible_alias = "symbolize")]
    Symbolise(symbolise::Args) = symbolise::run,
    /// Make a signing key for `weir compile`, and print the public key that devices must trust
    #[cfg(feature = "compiler")]
    Keygen(compile::KeygenArgs) = compile::keygen,
    /// Make a package of a component: an OCI image layout, for registries and devices
    #[cfg(feature = "compiler")]
    Package(package::Args) = package::run,
    /// Sign a component or a package, so that devices take it
    #[cfg(feature = "compiler")]
    Sign(sign::Args) = sign::run,
    /// Verify the signature of a component or a package
    #[cfg(feature = "packages")]
    Verify(packages::verify::Args) = awaited(packages::verify::run),
    /// Add the component of a package to a configuration, as an extension
    #[cfg(feature = "packages")]
    Add(packages::add::Args) = awaited(packages::add::run),
    /// Remove an extension from a configuration, with its component
    #[cfg(feature = "packages")]
    Remove(packages::remove::Args) = awaited(packages::remove::run),
    /// Put newer versions of components into a configuration
    #[cfg(feature = "packages")]
    Upgrade(packages::upgrade::Args) = awaited(packages::upgrade::run),
    /// List extensions of a configuration whose source has a newer version
    #[cfg(feature = "packages")]
    Outdated(packages::outdated::Args) = awaited(packages::outdated::run),
    /// Print a script that completes `weir` in a shell
    Completions(completions::Args) = completions::run,
}

/// Makes a plain function of a verb that waits for Main or for other processes.
fn awaited<A, R: Future<Output = anyhow::Result<()>>>(
    run: impl FnOnce(A) -> R,
) -> impl FnOnce(A) -> anyhow::Result<()> {
    |args| block_on(run(args))
}
