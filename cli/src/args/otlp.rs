//! Arguments of `weir otlp`.

use std::time::Duration;

use clap::Args as ClapArgs;

use super::Target;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
docs/tracing.md says what a span has, and how a collector is set up. Main keeps its latest spans; this command
asks for new ones and sends them on as OTLP over HTTP, in protobuf. While the collector is away, Main's ring is
the buffer; spans that it drops meanwhile are counted on stderr. There is no TLS: run a collector on this machine.

Environment, where an option is not given: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT (used as it is),
OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_HEADERS, OTEL_EXPORTER_OTLP_HEADERS,
OTEL_EXPORTER_OTLP_TRACES_TIMEOUT and OTEL_EXPORTER_OTLP_TIMEOUT (milliseconds).

Examples:
  weir otlp
  weir otlp --endpoint http://127.0.0.1:4318 --interval 1s
  weir otlp --once --header authorization='Bearer TOKEN'")]
pub(crate) struct OtlpArgs {
    /// The collector, `http://127.0.0.1:4318` by default; spans go to /v1/traces below it
    #[arg(long, value_name = "URL")]
    pub(crate) endpoint: Option<String>,
    /// Time between two questions to Main
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = some_time)]
    pub(crate) interval: Duration,
    /// Add this header to each request; may be given several times
    #[arg(long = "header", value_name = "NAME=VALUE")]
    pub(crate) headers: Vec<String>,
    /// Time for one request to the collector, `10s` by default
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    pub(crate) timeout: Option<Duration>,
    /// `service.namespace` of all spans
    #[arg(long, value_name = "NAME", default_value = "weir")]
    pub(crate) service_namespace: String,
    /// Export what is there, and end
    #[arg(long, conflicts_with = "interval")]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}

/// Some time, and at most a day.
fn some_time(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() || time > Duration::from_secs(86_400) {
        return Err("it must be more than nothing, and at most a day".to_owned());
    }
    Ok(time)
}
