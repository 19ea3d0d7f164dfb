//! The log on stderr: lines of Main and its extensions.

mod stderr;

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    ffi::OsString,
    fmt,
    io::{self, IsTerminal, Write},
    panic, str,
    sync::OnceLock,
    thread,
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

use weir_host::names::log_filter;

use self::stderr::Lines;
use crate::output::{counted, printable, printable_json, wants_color};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Human,
    /// One JSON object a line
    Json,
}

/// The log of `weir run` and `weir hooks run`. Other commands write to stderr directly.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Sets up the log, and writes panics to it. Without a filter, `RUST_LOG` sets it, or
/// else it is `info`.
pub(crate) fn init(format: LogFormat, filter: Option<&str>) -> anyhow::Result<()> {
    let of_environment = || std::env::var_os("RUST_LOG").filter(|text| !text.is_empty());
    let filter = filter.map(OsString::from).or_else(of_environment).unwrap_or_else(|| "info".into());
    let filter: Targets = filter
        .to_str()
        .and_then(log_filter)
        .context("it has levels and targets alone")
        .and_then(|text| Ok(text.parse()?))
        .context("cannot read `RUST_LOG`: write it as in `info,weir::extension=debug`")?;
    let lines = LINES.get_or_init(Lines::default);
    lines
        .write_to_stderr(move |lost| lost_line(format, lost))
        .context("cannot start the thread of the log")?;
    panic::set_hook(Box::new(|panic| lines.push(panicked(panic).as_bytes())));
    let log = tracing_subscriber::fmt::layer()
        .with_writer(move || LogWriter { lines, format })
        // The subscriber would write to stderr itself, and panic if stderr is closed.
        .log_internal_errors(false);
    let log: Box<dyn Layer<Registry> + Send + Sync> = match format {
        LogFormat::Json => log.json().flatten_event(true).boxed(),
        LogFormat::Human => {
            let ansi = io::stderr().is_terminal() && wants_color();
            log.with_ansi(ansi).event_format(Human).boxed()
        }
    };
    tracing_subscriber::registry().with(log).with(filter).init();
    Ok(())
}

/// Shows a text below the log, on a terminal. An empty text removes it.
pub(crate) fn show_below(text: String) {
    if let Some(lines) = LINES.get() {
        lines.show_below(text);
    }
}

/// Shows below the log what work is done, until it is done or panics, and then writes the log to its end.
pub(crate) fn during<T>(what: String, work: impl FnOnce() -> T) -> T {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            show_below(String::new());
            flush();
        }
    }
    show_below(what);
    let _done = Done;
    work()
}

/// Appends whole lines to the log. Returns false if this process has no log.
pub(crate) fn append(text: &str) -> bool {
    let Some(lines) = LINES.get() else { return false };
    // Waits for room first: the text says why the process ends, and must not be lost.
    lines.flush();
    lines.push(text.as_bytes());
    true
}

/// Waits briefly until the log is written.
pub(crate) fn flush() {
    if let Some(lines) = LINES.get() {
        lines.flush();
    }
}

struct LogWriter {
    lines: &'static Lines,
    format: LogFormat,
}

impl Write for LogWriter {
    /// Gets one whole line per call.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match (self.format, str::from_utf8(line)) {
            (LogFormat::Json, Ok(json)) => self.lines.push(printable_json(json).as_bytes()),
            _ => self.lines.push(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn lost_line(format: LogFormat, lost: u64) -> String {
    let message = format!("{} lost: stderr was not read fast enough", counted(lost, "line"));
    let mut time = String::new();
    let _infallible = SystemTime.format_time(&mut Writer::new(&mut time));
    match format {
        LogFormat::Json => {
            let line = serde_json::json!({ "timestamp": time, "level": "WARN", "message": message, "target": "weir" });
            format!("{line}\n")
        }
        LogFormat::Human => format!("{time}  WARN {message}\n"),
    }
}

/// Makes a text like that of Rust's own panic hook, which would itself wait for the reader of stderr.
fn panicked(panic: &panic::PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let trace = Backtrace::capture();
    let trace = match trace.status() {
        BacktraceStatus::Captured => format!("{trace}\n"),
        _ => String::new(),
    };
    format!("thread '{}' {panic}\n{trace}", thread.name().unwrap_or("unnamed"))
}

/// Writes `TIME LEVEL [extension] message key=value`. Only lines of an extension have its id in brackets.
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
            "message" => self.message = printable(&format!("{value:?}")),
            "extension" => self.extension = Some(printable(&format!("{value:?}"))),
            // Only the extension's author needs to know the source, such as stdout: `weir logs --json` has it.
            "source" => {}
            name => {
                self.fields.push_str(&printable(&format!(" {name}={value:?}")));
            }
        }
    }
}
