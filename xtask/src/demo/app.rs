//! The demo's app: the page of `examples/app`, a server that gives it tickets, and Main's configuration for it.

mod check;
mod http;

use std::{
    fs,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    thread,
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

pub(crate) use self::http::{Request, Response};
use super::weir::RunningWeir;
use crate::run::{output, root, target_dir};

/// The peer that the page is.
const PEER: &str = "app:demo";

/// What `examples/app/weir.toml` shows, and the demo has of its own.
const SHOWN_GATEWAY: &str = "127.0.0.1:7410";
const SHOWN_PAGE: &str = "127.0.0.1:8080";
const SHOWN_HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Debug)]
pub(crate) struct App {
    /// Main's file.
    config: PathBuf,
    gateway: SocketAddr,
    /// Of the page.
    origin: String,
    /// New in each run. The page never gets it.
    token: String,
}

/// Which ports the gateway and the page's server get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// Those of the documentation, unless another program has them.
    Shown,
    /// Any.
    Free,
}

impl App {
    /// Starts the page's server, and writes a file for Main that lets the page in.
    pub(crate) fn start(weir: &Path, ports: Ports) -> Result<Arc<Self>> {
        let (app, page) = Self::prepare(weir, ports)?;
        let own = app.clone();
        serve(page, move |request| own.answer(request));
        Ok(app)
    }

    /// The same without an answer on the page's address.
    pub(crate) fn prepare(weir: &Path, ports: Ports) -> Result<(Arc<Self>, TcpListener)> {
        let page = listener(SHOWN_PAGE, ports)?;
        // Free again, for Main.
        let gateway = listener(SHOWN_GATEWAY, ports)?.local_addr()?;
        let origin = format!("http://{}", page.local_addr()?);
        let made = output(Command::new(weir).args(["peers", "token", PEER, "--json"]))?;
        let made: Value = serde_json::from_str(&made).context("`weir peers token` printed no JSON")?;
        let text = |member: &str| made.get(member)?.as_str().map(str::to_owned);
        let token = text("token").context("`weir peers token` gave no token")?;
        let hash = text("hash").context("`weir peers token` gave no hash")?;
        let config = write_config(&gateway.to_string(), &origin, &hash)?;
        Ok((Arc::new(Self { config, gateway, origin, token }), page))
    }

    pub(crate) fn config(&self) -> &Path {
        &self.config
    }

    /// The address of the page.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Uses the app without a browser: the page, a ticket, a call, and a change that another program makes.
    pub(crate) fn check(&self, main: &RunningWeir) -> Result<()> {
        check::check(self, main)
    }

    /// Answers as the page's server.
    pub(crate) fn answer(&self, request: &Request) -> Response {
        self.try_answer(request).unwrap_or_else(|error| Response::failed(&error))
    }

    fn try_answer(&self, request: &Request) -> Result<Response> {
        let file = |path: &str| fs::read(root()?.join(path)).with_context(|| format!("cannot read `{path}`"));
        Ok(match (&*request.method, &*request.path) {
            ("GET", "/") => Response::of("text/html; charset=utf-8", file("examples/app/index.html")?),
            ("GET", "/app.js") => Response::of("text/javascript", file("examples/app/app.js")?),
            ("GET", "/weir.js") => Response::of("text/javascript", file("outside/gateway/client/weir.js")?),
            ("GET", "/gateway") => {
                Response::json(&json!({ "url": format!("ws://{}", self.gateway), "peer": PEER }))
            }
            // Browsers say which page asks. No other page has any business here.
            ("POST", "/ticket") if request.origin.as_ref() == Some(&self.origin) => {
                self.ticket(&self.origin)?
            }
            _ => Response::not_found(),
        })
    }

    /// The gateway's answer to the wish for a ticket of this origin.
    pub(crate) fn ticket(&self, origin: &str) -> Result<Response> {
        let path = format!("/v1/peers/{PEER}/tickets");
        let header = format!("authorization: Bearer {}", self.token);
        http::post(self.gateway, &path, &[&header], &json!({ "origin": origin }))
    }
}

/// Answers requests on threads of their own, until the program ends.
pub(crate) fn serve(listener: TcpListener, answer: impl Fn(&Request) -> Response + Send + Sync + 'static) {
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            // A browser that has gone needs no answer.
            thread::spawn(move || http::respond(stream, &*answer).ok());
        }
    });
}

fn listener(shown: &str, ports: Ports) -> Result<TcpListener> {
    let free = || TcpListener::bind("127.0.0.1:0").context("there is no free port");
    match ports {
        Ports::Shown => TcpListener::bind(shown).or_else(|_| free()),
        Ports::Free => free(),
    }
}

/// Writes Main's file: that of `examples/device.toml`, and what lets the app in.
fn write_config(gateway: &str, origin: &str, hash: &str) -> Result<PathBuf> {
    let read =
        |path: &str| fs::read_to_string(root()?.join(path)).with_context(|| format!("cannot read `{path}`"));
    // The new file lies one folder deeper.
    let device = read("examples/device.toml")?.replace("\"../", "\"../../");
    let mut app = read("examples/app/weir.toml")?;
    let page = format!("http://{SHOWN_PAGE}");
    for (shown, own) in [(SHOWN_GATEWAY, gateway), (&page, origin), (SHOWN_HASH, hash)] {
        ensure!(app.contains(shown), "`examples/app/weir.toml` shows no `{shown}`");
        app = app.replace(shown, own);
    }
    let path = target_dir()?.join("demo/device.toml");
    fs::write(&path, format!("{device}\n{app}"))
        .with_context(|| format!("cannot write `{}`", path.display()))?;
    Ok(path)
}
