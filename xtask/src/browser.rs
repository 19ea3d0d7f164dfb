//! What a page sees of the gateway: the client's own tests, its types, and the example's app in Chromium.

use std::{
    net::TcpListener,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        mpsc::{Receiver, Sender, channel},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    demo::{
        self,
        app::{self, App, Ports, Request, Response},
        weir::{self, RunningWeir},
    },
    guests,
    run::{Process, output, root, run, target_dir},
    setup::{self, CHROMIUM, NODE},
};

pub(crate) const CLIENT: &str = "outside/gateway/client";

/// The compiler that reads the client's types. It comes from `npm`.
const TYPESCRIPT: &str = "typescript@5.9.3";

/// Time for a page to show something.
const WITHIN: Duration = Duration::from_secs(60);

/// A script beside the page that reports what the page shows, and fills in its form.
const OBSERVER: &str = include_str!("browser/observe.js");

/// Runs all, and returns what it skipped.
pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&CHROMIUM, &NODE])?;
    run(Command::new("node").args(["--test", "test/"]).current_dir(root()?.join(CLIENT)))?;
    let skipped = types()?;
    check_page()?;
    Ok(skipped)
}

fn types() -> Result<Vec<String>> {
    let directory = target_dir()?.join("typescript");
    let npm = ["install", "--no-save", "--no-audit", "--no-fund", "--silent", "--prefix"];
    if let Err(error) = output(Command::new("npm").args(npm).arg(&directory).arg(TYPESCRIPT)) {
        eprintln!("going on without the types: {error:#}");
        return Ok(vec![format!("the types: `npm` cannot get {TYPESCRIPT}")]);
    }
    let options =
        ["--strict", "--noEmit", "--target", "es2022", "--lib", "es2023,dom", "--module", "nodenext"];
    let mut tsc = Command::new(directory.join("node_modules/.bin/tsc"));
    run(tsc.args(options).arg("test/types.ts").current_dir(root()?.join(CLIENT)))?;
    Ok(Vec::new())
}

/// The app of `examples/app` in headless Chromium. A script beside it reports what the page shows.
fn check_page() -> Result<()> {
    guests::plugins()?;
    let weir = weir::build()?;
    demo::clear_storage()?;
    let (app, listener) = App::prepare(&weir, Ports::Free)?;
    let mut main = RunningWeir::start(&weir, app.config())?;
    let (shown, reports) = Shown::new();
    shown.serve(app.clone(), listener, own_page);
    let _browser = Browser::open(app.origin())?;

    shows_the_device(&main, &reports)?;
    // Main is killed, as by a fault: it closes no connection itself.
    drop(main);
    reports.wait("that the connection is gone", |page| is(page, "/state", "again in"))?;
    main = RunningWeir::start(&weir, app.config())?;
    goes_on(&main, &reports)?;
    another_origin_is_refused(&app, &main)?;
    main.shut_down()
}

fn shows_the_device(main: &RunningWeir, reports: &Reports) -> Result<()> {
    let memory = main.call("device.info@1", "memory", &json!({}))?;
    let total = memory.get("total_kib").and_then(Value::as_u64).context("no memory")?;
    let mib = (total + 512) / 1024;
    reports.wait("the memory", |page| {
        let digits: String =
            text(page, "/used").chars().filter(|letter| !matches!(letter, ',' | '.')).collect();
        is(page, "/state", "connected") && digits.ends_with(&format!(" of {mib} MiB used"))
    })?;
    set(main, "volume", &json!(11))?;
    reports.wait("the change", |page| is(page, "/settings/volume", "11"))?;
    // Then the page itself sets something with its form.
    reports.wait("its own change", |page| is(page, "/settings/from-the-page", "5"))?;
    let own = main.call("settings@1", "get", &json!({ "key": "from-the-page" }))?;
    ensure!(own.get("value") == Some(&json!(5)), "the page set {own}");
    Ok(())
}

fn goes_on(main: &RunningWeir, reports: &Reports) -> Result<()> {
    reports
        .wait("the gap", |page| is(page, "/state", "connected") && is(page, "/gap", "gone for a while"))?;
    set(main, "volume", &json!(12))?;
    reports.wait("a change after the break", |page| is(page, "/settings/volume", "12"))
}

/// A page of another address gets no ticket. With the ticket of the right page it does not get in, either.
fn another_origin_is_refused(app: &Arc<App>, main: &RunningWeir) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let origin = format!("http://{}", listener.local_addr()?);
    let refusal = app.ticket(&origin)?;
    ensure!(refusal.status == 403, "a ticket for another origin is answered with {refusal:?}");
    let (shown, reports) = Shown::new();
    shown.serve(app.clone(), listener, |app, request| match &*request.path {
        "/ticket" => app.ticket(app.origin()).unwrap_or_else(|error| Response::failed(&error)),
        _ => own_page(app, request),
    });
    let _browser = Browser::open(&origin)?;
    let mut attempts = 0;
    reports.wait("that it is refused", |page| {
        attempts += i32::from(is(page, "/state", "again in"));
        attempts == 3
    })?;
    let peers: Value = serde_json::from_str(&main.run(&["peers", "--json"])?)?;
    let mut peers = peers.pointer("/peers").and_then(Value::as_array).into_iter().flatten();
    let own =
        peers.find(|peer| peer.get("name") == Some(&json!("app:demo"))).context("no peer of the page")?;
    let sessions = own.get("sessions").and_then(Value::as_array).into_iter().flatten();
    // A ticket that could not be used leaves a session that has sent nothing.
    let open = sessions.filter(|session| session.get("sent") != Some(&json!(0))).count();
    ensure!(open == 1, "{open} pages have a connection, and not 1: {own}");
    Ok(())
}

fn set(main: &RunningWeir, key: &str, value: &Value) -> Result<()> {
    main.call("settings@1", "set", &json!({ "key": key, "value": value })).map(drop)
}

/// Answers as the app does, and adds the observer to the page.
fn own_page(app: &App, request: &Request) -> Response {
    let mut response = app.answer(request);
    if request.path == "/" {
        response.body.extend_from_slice(b"<script type=\"module\" src=\"observe.js\"></script>");
    }
    response
}

/// Whether the page shows something that contains the text.
fn is(page: &Value, place: &str, part: &str) -> bool {
    text(page, place).contains(part)
}

fn text<'p>(page: &'p Value, place: &str) -> &'p str {
    page.pointer(place).and_then(Value::as_str).unwrap_or_default()
}

/// Serves a page, and passes on what it reports.
struct Shown(Sender<Value>);

/// What a page reports, in order.
struct Reports(Receiver<Value>);

impl Shown {
    fn new() -> (Self, Reports) {
        let (sender, receiver) = channel();
        (Self(sender), Reports(receiver))
    }

    fn serve(self, app: Arc<App>, listener: TcpListener, answer: fn(&App, &Request) -> Response) {
        app::serve(listener, move |request| match &*request.path {
            "/observe.js" => Response::of("text/javascript", OBSERVER.as_bytes().to_vec()),
            "/report" => {
                let page = serde_json::from_slice(&request.body).unwrap_or_default();
                // Nobody reads the reports of a page that is done with.
                let _unread = self.0.send(page);
                Response::json(&Value::Null)
            }
            _ => answer(&app, request),
        });
    }
}

impl Reports {
    /// Waits until the page shows something.
    fn wait(&self, what: &str, mut is_shown: impl FnMut(&Value) -> bool) -> Result<()> {
        let (until, mut last) = (Instant::now() + WITHIN, Value::Null);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let page = self.0.recv_timeout(left);
            last = page.with_context(|| format!("the page does not show {what}, but {last}"))?;
            if is_shown(&last) {
                eprintln!("the page shows {what}: {last}");
                return Ok(());
            }
        }
    }
}

/// Chromium without a window, with a profile of its own.
#[derive(Debug)]
struct Browser {
    _process: Process,
    _profile: TempDir,
}

impl Browser {
    fn open(url: &str) -> Result<Self> {
        let profile = tempfile::tempdir().context("cannot make a directory")?;
        let process = Command::new("chromium")
            // Chromium has no sandbox as root. It sees no page but ours.
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"])
            .arg(user_data(profile.path()))
            .arg(url)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start `chromium`")?;
        Ok(Self { _process: Process(process), _profile: profile })
    }
}

fn user_data(profile: &Path) -> String {
    format!("--user-data-dir={}", profile.display())
}
