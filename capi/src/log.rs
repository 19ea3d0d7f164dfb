//! Log lines of Main and of extensions.

use std::{
    ffi::{c_char, c_void},
    io::{self, Write},
    sync::Arc,
};

use tracing_subscriber::{filter::Targets, fmt::MakeWriter, layer::SubscriberExt, util::SubscriberInitExt};

use weir_host::names::log_filter;

use crate::{
    c::{Callback, ErrorOut, Text, run, text, weir_drop},
    error::weir_error,
};

/// How grave a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum weir_log_level {
    /// Something failed.
    Error = 1,
    /// Something may fail.
    Warn = 2,
    /// What happens.
    Info = 3,
    /// For the author of an extension.
    Debug = 4,
    /// For the author of Weir.
    Trace = 5,
}

/// Takes a log line without its end, which lives until the function returns. It runs on any thread, on several at once,
/// and on Main's: it must not wait, and must not throw. It must not call Weir.
pub type weir_on_log = Option<extern "C" fn(level: weir_log_level, line: *const c_char, data: *mut c_void)>;

type OnLog = extern "C" fn(weir_log_level, *const c_char, *mut c_void);

/// Gives log lines to `callback`, for all Mains of the process and until its end. `filter` says which: a level such as
/// `info`, or `warn,weir_supervisor=debug`; NULL means `info`. Text of extensions in a line is escaped. Once per process,
/// best before Main starts. Any thread.
///
/// Errors: `WEIR_ERROR_KIND_INVALID_ARGUMENT` if the filter is malformed, or log lines go elsewhere already.
#[unsafe(no_mangle)]
pub extern "C" fn weir_log_start(
    filter: Text,
    callback: weir_on_log,
    data: *mut c_void,
    drop: weir_drop,
    error: ErrorOut,
) -> bool {
    let callback = Callback::new(callback, data, drop);
    run(error, || {
        let filter = log_filter(filter.optional("filter")?.unwrap_or("info"))
            .ok_or_else(|| weir_error::argument("`filter` has levels and targets alone".to_owned()))?;
        let filter: Targets =
            filter.parse().map_err(|error| weir_error::argument(format!("`filter`: {error}")))?;
        let lines = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .without_time()
            .with_level(false)
            .with_writer(Lines(Arc::new(callback?)));
        tracing_subscriber::registry()
            .with(lines)
            .with(filter)
            .try_init()
            .map_err(|error| weir_error::argument(error.to_string()))?;
        Ok(true)
    })
}

#[derive(Debug)]
struct Lines(Arc<Callback<OnLog>>);

/// A log line that is being written. When it is dropped, C gets it.
#[derive(Debug)]
struct Line {
    callback: Arc<Callback<OnLog>>,
    level: weir_log_level,
    text: Vec<u8>,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line;

    fn make_writer(&'a self) -> Line {
        Line { callback: self.0.clone(), level: weir_log_level::Info, text: Vec::new() }
    }

    fn make_writer_for(&'a self, meta: &tracing::Metadata<'_>) -> Line {
        Line { callback: self.0.clone(), level: level(*meta.level()), text: Vec::new() }
    }
}

impl Write for Line {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        let line = String::from_utf8_lossy(&self.text);
        let (function, data) = self.callback.function();
        function(self.level, text(line.trim_end()).as_ptr(), data);
    }
}

fn level(level: tracing::Level) -> weir_log_level {
    match level {
        tracing::Level::ERROR => weir_log_level::Error,
        tracing::Level::WARN => weir_log_level::Warn,
        tracing::Level::INFO => weir_log_level::Info,
        tracing::Level::DEBUG => weir_log_level::Debug,
        tracing::Level::TRACE => weir_log_level::Trace,
    }
}
