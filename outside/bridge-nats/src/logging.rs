//! The log on stderr, in the form in which `weir run` logs.

use std::{
    fmt,
    io::{self, IsTerminal},
    panic,
};

use anyhow::Context;
use clap::ValueEnum;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    util::SubscriberInitExt,
};
use weir_names::{harmless, log_filter};

/// The form of log lines.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    Human,
    /// One object in JSON a line.
    Json,
}

/// The filter without `RUST_LOG`. The bridge itself logs what the client of NATS would.
const FILTER: &str = "info,async_nats=off";

/// Most bytes of a message, and of each field after it.
const LINE_MAX: usize = 8 * 1024;

/// Sets up the log, and has panics logged. `RUST_LOG` sets the filter; without it that is [`FILTER`].
pub(crate) fn init(format: LogFormat) -> anyhow::Result<()> {
    let filter = std::env::var_os("RUST_LOG").filter(|text| !text.is_empty());
    let filter: Targets = filter
        .as_deref()
        .map_or(Some(FILTER.to_owned()), |text| text.to_str().and_then(log_filter))
        .context("it has levels and targets alone")
        .and_then(|text| Ok(text.parse()?))
        .context("cannot read `RUST_LOG`: write it as in `info,weir_nats=debug`")?;
    let log = tracing_subscriber::fmt::layer()
        .with_writer(io::stderr)
        // The subscriber would write to stderr itself, and panic if stderr is closed.
        .log_internal_errors(false);
    let log: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Json => log.json().flatten_event(true).boxed(),
        LogFormat::Human => {
            let ansi =
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
            log.with_ansi(ansi).event_format(Human).boxed()
        }
    };
    tracing_subscriber::registry().with(log).with(filter).init();
    // The client of NATS panics at some headers. That costs the connection, and one line.
    panic::set_hook(Box::new(|panic| tracing::error!("a task of the bridge panicked: {panic}")));
    Ok(())
}

/// Writes `TIME LEVEL message key=value`.
struct Human;

impl<S, N> FormatEvent<S, N> for Human
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut line: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut parts = Parts::default();
        event.record(&mut parts);
        SystemTime.format_time(&mut line)?;
        let level = event.metadata().level();
        let (color, plain) = match *level {
            Level::ERROR => ("\x1b[31m", "\x1b[0m"),
            Level::WARN => ("\x1b[33m", "\x1b[0m"),
            _ => ("", ""),
        };
        if line.has_ansi_escapes() {
            write!(line, " {color}{level:>5}{plain} ")?;
        } else {
            write!(line, " {level:>5} ")?;
        }
        writeln!(line, "{}{}", parts.message, parts.fields)
    }
}

#[derive(Default)]
struct Parts {
    message: String,
    fields: String,
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = harmless(format_args!("{value:?}"), LINE_MAX),
            name => self.fields.push_str(&harmless(format_args!(" {name}={value:?}"), LINE_MAX)),
        }
    }
}
