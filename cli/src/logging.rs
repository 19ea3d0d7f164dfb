//! Lines on stderr: what Main and its extensions have to say while they run.

use std::{
    fmt::{self, Write as _},
    io::{self, IsTerminal},
};

use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    EnvFilter,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

use crate::args::LogFormat;

/// Sets up the process's log. `RUST_LOG` chooses what is in it; `info` and above, if not set.
pub(crate) fn init(format: LogFormat) -> anyhow::Result<()> {
    let filter = EnvFilter::builder().with_default_directive(Level::INFO.into()).from_env()?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        // It would panic where stderr has no reader any more, and take Main down with it.
        .log_internal_errors(false);
    match format {
        LogFormat::Json => log.json().flatten_event(true).init(),
        LogFormat::Human => {
            let ansi =
                io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty());
            log.with_ansi(ansi).event_format(Human).init();
        }
    }
    Ok(())
}

/// `TIME LEVEL [extension] message key=value`: what comes of an extension starts with its id, and
/// what does not has none.
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
        if let Some(extension) = parts.extension {
            write!(line, "[{extension}] ")?;
        }
        writeln!(line, "{}{}", parts.message, parts.fields)
    }
}

#[derive(Default)]
struct Parts {
    extension: Option<String>,
    message: String,
    fields: String,
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "extension" => self.extension = Some(value.to_owned()),
            _ => self.record_debug(field, &value),
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = crate::output::printable(&format!("{value:?}")),
            "extension" => self.extension = Some(format!("{value:?}")),
            // Where in the extension a line was written matters to its author: `weir logs --json`.
            "source" => {}
            name => {
                let _infallible = write!(self.fields, " {name}={value:?}");
            }
        }
    }
}
