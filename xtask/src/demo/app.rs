//! The demo's app: the page of `examples/app`, a server that gives it tickets, and Main's configuration for it.

mod http;

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket, client::IntoClientRequest, http::HeaderValue};

pub(crate) use self::http::{Request, Response};
use super::weir::{self, RunningWeir};
use crate::{
    files,
    run::{root, target_dir},
};

/// The name under which the page is a peer of Main.
const PEER: &str = "app:demo";

/// Time for the gateway to accept a connection, and for each message from it.
const PATIENCE: Duration = Duration::from_secs(10);

/// What `examples/app/weir.toml` shows. The demo puts its own addresses and hash in their place.
const SHOWN_GATEWAY: &str = "127.0.0.1:7410";
const SHOWN_PAGE: &str = "127.0.0.1:8080";
const SHOWN_HASH: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

#[derive(Debug)]
pub(crate) struct App {
    /// Main's configuration file.
    config: PathBuf,
    gateway: SocketAddr,
    /// The origin of the page.
    origin: String,
    /// The peer's token, new in each run. The page never gets it.
    token: String,
}

/// Which ports the gateway and the page's server get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ports {
    /// The ports of the documentation, unless another program has them.
    Shown,
    /// Any free ports.
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

    /// Writes the file for Main as [`App::start`] does. The caller is to answer at the page's address.
    pub(crate) fn prepare(weir: &Path, ports: Ports) -> Result<(Arc<Self>, TcpListener)> {
        let page = listener(SHOWN_PAGE, ports)?;
        // The listener ends here, so Main can have its port.
        let gateway = listener(SHOWN_GATEWAY, ports)?.local_addr()?;
        let origin = format!("http://{}", page.local_addr()?);
        let (token, hash) = weir::token(weir, PEER)?;
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
        let page = self.origin.trim_start_matches("http://").parse()?;
        for (path, part) in
            [("/", "app.js"), ("/app.js", "weir.js"), ("/weir.js", "class Weir"), ("/gateway", PEER)]
        {
            let body = http::get(page, path)?.body;
            ensure!(String::from_utf8_lossy(&body).contains(part), "`{path}` of the page has no `{part}`");
        }
        let ask = |origin: &str| http::post(page, "/ticket", &[&format!("origin: {origin}")], &Value::Null);
        ensure!(ask("http://127.0.0.1:1")?.status == 404, "another page got a ticket");
        ensure!(
            self.ticket("http://127.0.0.1:1")?.status == 403,
            "the gateway gave a ticket for another origin"
        );
        let answer = ask(&self.origin)?.value()?;
        let ticket =
            answer.get("ticket").and_then(Value::as_str).with_context(|| format!("no ticket: {answer}"))?;

        let mut socket = Socket::open(self, ticket)?;
        ensure!(Socket::open(self, ticket).is_err(), "a ticket let two connections in");
        let memory = socket.call("device.info@1/memory", &Value::Null)?;
        let (total, same) = (memory.get("total_kib"), main.call("device.info@1", "memory", &json!({}))?);
        ensure!(total.is_some() && total == same.get("total_kib"), "memory: {memory} and not {same}");

        socket.call("events.subscribe", &json!({ "pattern": "settings.changed.>" }))?;
        main.call("settings@1", "set", &json!({ "key": "brightness", "value": 70 }))?;
        let change = socket.read()?;
        let payload = json!({ "key": "brightness", "value": 70, "previous": null });
        ensure!(
            change.pointer("/params/payload") == Some(&payload),
            "the app heard {change}, and not {payload}"
        );
        println!("\nThe app asks over a WebSocket, and hears of a change:\n    → {memory}\n    → {change}");
        Ok(())
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

    /// The gateway's answer to a request for a ticket of this origin.
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
    // The new file lies one folder deeper, so its relative paths go up once more.
    let device = files::read("examples/device.toml")?.replace("\"../", "\"../../");
    let mut app = files::read("examples/app/weir.toml")?;
    let page = format!("http://{SHOWN_PAGE}");
    for (shown, own) in [(SHOWN_GATEWAY, gateway), (&page, origin), (SHOWN_HASH, hash)] {
        ensure!(app.contains(shown), "`examples/app/weir.toml` shows no `{shown}`");
        app = app.replace(shown, own);
    }
    let path = target_dir()?.join("demo/device.toml");
    files::write(&path, format!("{device}\n{app}"))?;
    Ok(path)
}

/// A WebSocket to the gateway, opened as a page opens it.
struct Socket(WebSocket<TcpStream>);

impl Socket {
    fn open(app: &App, ticket: &str) -> Result<Self> {
        let url = format!("ws://{}/v1/peers/{PEER}/rpc?ticket={ticket}", app.gateway);
        let mut request = url.into_client_request()?;
        request.headers_mut().insert("origin", HeaderValue::from_str(&app.origin)?);
        let stream = TcpStream::connect_timeout(&app.gateway, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (socket, _) = tungstenite::client(request, stream).context("the gateway lets the page not in")?;
        Ok(Self(socket))
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value> {
        let mut request = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
        if let (Some(request), false) = (request.as_object_mut(), params.is_null()) {
            request.insert("params".to_owned(), params.clone());
        }
        self.0.send(Message::text(request.to_string()))?;
        let answer = self.read()?;
        answer.get("result").cloned().with_context(|| format!("`{method}` was answered with {answer}"))
    }

    fn read(&mut self) -> Result<Value> {
        match self.0.read().context("the gateway sends nothing")? {
            Message::Text(text) => Ok(serde_json::from_str(&text)?),
            other => bail!("the gateway sends {other:?}"),
        }
    }
}
