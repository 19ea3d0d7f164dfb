//! Arguments of `weir metrics`.

use std::net::SocketAddr;

use clap::Args as ClapArgs;

use super::Target;

#[derive(Debug, ClapArgs)]
#[command(after_help = "\
docs/metrics.md describes every metric, and how Prometheus finds them. With --listen, Main is asked at each
scrape alone, and a Main that is not there is answered with 503. A scraper may reach no more than the metrics.

Examples:
  weir metrics
  weir metrics --listen 127.0.0.1:9464
  weir metrics | grep ^weir_request_duration_seconds_count")]
pub(crate) struct MetricsArgs {
    /// Serve the metrics at http://ADDRESS/metrics until a signal, for Prometheus
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,
    /// Let --listen name an address that other machines reach. There is no TLS and no password
    #[arg(long, requires = "listen")]
    pub(crate) allow_remote: bool,
    /// Show topics, too: there may be thousands
    #[arg(long)]
    pub(crate) topics: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}
