//! Metrics as their users have them: a real Prometheus scrapes the demo's Main by `weir metrics`, answers what is asked
//! in `docs/metrics.md`, and raises a packaged alert.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::{
    demo::{
        self,
        weir::{self, RunningWeir},
    },
    files, guests,
    run::{Process, output, root, run, target_dir, until},
    setup::{self, PROMETHEUS},
};

const RULES: &str = "packaging/prometheus/weir.rules.yml";

const DASHBOARD: &str = "packaging/grafana/weir.json";

/// Time for a query to have the wanted answer. Prometheus scrapes each second here.
const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// An extension that may not serve what it wants to, so that it fails at each start.
const FAILS: &str = "\n[[extension]]\nid = \"fails\"\npath = \"storage.wasm\"\nrestart = { backoff = \"10ms\", max-backoff = \"10ms\", failures = 2 }\n";

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&PROMETHEUS])?;
    guests::plugins()?;
    let weir = weir::build()?;
    demo::clear_storage()?;
    let rules = root()?.join(RULES);
    run(Command::new("promtool").args(["check", "rules"]).arg(&rules))?;

    let directory = tempfile::tempdir().context("cannot make a directory")?;
    let config = target_dir()?.join("prometheus/weir.toml");
    files::make_directory(config.parent().context("no directory")?)?;
    let device = files::read("examples/device.toml")?;
    // The new file lies one folder deeper, so its relative paths go up once more.
    files::write(&config, device.replace("\"../", "\"../../") + FAILS)?;
    let mut main = RunningWeir::start(&weir, &config)?;
    lint(&main.run(&["metrics", "--topics"])?)?;

    let bridge = Bridge::start(&weir, &main)?;
    let prometheus = Prometheus::start(directory.path(), &rules, &bridge.address)?;
    prometheus.until("up{job=\"weir\"}", "=> 1 @")?;
    // A rate needs two scrapes that differ.
    for calls in [10, 20] {
        for number in 0..10 {
            main.call("settings@1", "set", &json!({ "key": "volume", "value": number }))?;
        }
        let count = "weir_request_duration_seconds_count{contract=\"settings@1\",operation=\"set\"}";
        prometheus.until(count, &format!("=> {calls} @"))?;
    }
    let p99 = "histogram_quantile(0.99, sum by (contract, operation, le) (rate(weir_request_duration_seconds_bucket[1m]))) < 10";
    prometheus.until(p99, "{contract=\"settings@1\", operation=\"set\"} =>")?;
    prometheus.until("topk(3, rate(weir_extension_cpu_seconds_total[1m])) > 0", "extension=\"settings\"")?;
    for query in of_dashboard()? {
        prometheus.understands(&query)?;
    }
    let quarantined = "ALERTS{alertname=\"WeirExtensionQuarantined\",alertstate=\"firing\"}";
    prometheus.until(quarantined, "extension=\"fails\"")?;

    main.shut_down()?;
    prometheus.until("up{job=\"weir\"}", "=> 0 @")?;
    main = RunningWeir::start(&weir, &config)?;
    prometheus.until("up{job=\"weir\"}", "=> 1 @")?;
    main.shut_down()?;
    Ok(Vec::new())
}

/// The queries of the dashboard for Grafana, as Grafana sends them.
fn of_dashboard() -> Result<Vec<String>> {
    let dashboard: Value =
        serde_json::from_str(&files::read(DASHBOARD)?).context("the dashboard is no JSON")?;
    let list = |of: &Value, name| of.get(name).and_then(Value::as_array).cloned().unwrap_or_default();
    let targets = list(&dashboard, "panels").into_iter().flat_map(|panel| list(&panel, "targets"));
    let queries: Vec<_> = targets.map(|target| target.get("expr").cloned()).collect();
    ensure!(!queries.is_empty(), "the dashboard has no queries");
    let queries = queries.iter().map(|query| {
        query.as_ref().and_then(Value::as_str).context("a target of the dashboard has no query")
    });
    queries.map(|query| Ok(query?.replace("$__rate_interval", "1m"))).collect()
}

/// Has Prometheus's own tool read the text. Fails if the tool cannot.
fn lint(text: &str) -> Result<()> {
    let mut promtool = Command::new("promtool");
    promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = promtool.spawn().context("cannot run `promtool`")?;
    child.stdin.take().context("no stdin")?.write_all(text.as_bytes())?;
    let output = child.wait_with_output()?;
    // The code 3 finds fault with the style of some names, but `promtool` has read all.
    ensure!(matches!(output.status.code(), Some(0 | 3)), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

/// A `weir metrics --listen`.
struct Bridge {
    address: String,
    _process: Process,
}

impl Bridge {
    fn start(weir: &Path, main: &RunningWeir) -> Result<Self> {
        let mut command = Command::new(weir);
        command.args(["metrics", "--listen", "127.0.0.1:0"]).env("WEIR_SOCKET", main.socket());
        let mut process = Process(command.stdout(Stdio::piped()).spawn().context("cannot start the bridge")?);
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().context("no stdout")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("http://").and_then(|rest| rest.strip_suffix("/metrics"));
        let address = address.with_context(|| format!("the bridge printed `{line}`"))?.to_owned();
        Ok(Self { address, _process: process })
    }
}

struct Prometheus {
    url: String,
    log: PathBuf,
    _process: Process,
}

impl Prometheus {
    fn start(directory: &Path, rules: &Path, target: &str) -> Result<Self> {
        let (config, log) = (directory.join("prometheus.yml"), directory.join("log"));
        let text = format!(
            "global: {{ scrape_interval: 1s, evaluation_interval: 1s }}\nscrape_configs:\n  - job_name: weir\n    \
             static_configs: [{{ targets: [{target:?}] }}]\nrule_files: [{rules:?}]\n"
        );
        files::write(&config, text)?;
        // The listener ends here, so Prometheus can have its port.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let mut command = Command::new("prometheus");
        command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", directory.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?);
        let process = Process(command.spawn().context("cannot start Prometheus")?);
        Ok(Self { url: format!("http://{address}"), log, _process: process })
    }

    /// Fails if Prometheus does not understand the query. The query may find nothing.
    fn understands(&self, query: &str) -> Result<()> {
        let answer = output(Command::new("promtool").args(["query", "instant", &self.url, query]))?;
        println!("{query}\n    {} series", answer.lines().count());
        Ok(())
    }

    /// Waits until the answer to this query has the text.
    fn until(&self, query: &str, wanted: &str) -> Result<()> {
        let mut last = None;
        let line = until(SEEN_WITHIN, Duration::from_millis(500), || {
            // `promtool` fails until Prometheus answers.
            let answer = output(Command::new("promtool").args(["query", "instant", &self.url, query]));
            let text = last.insert(answer).as_deref().unwrap_or_default();
            Ok(text.lines().find(|line| line.contains(wanted)).map(str::to_owned))
        })?;
        let line = line.with_context(|| {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            format!("`{query}` is to answer `{wanted}`, and answers {last:?}; Prometheus says:\n{log}")
        })?;
        println!("{query}\n    {line}");
        Ok(())
    }
}
