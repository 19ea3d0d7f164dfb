//! The app without a browser.

use std::{net::TcpStream, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use tungstenite::{Message, WebSocket, client::IntoClientRequest, http::HeaderValue};

use super::{App, PEER, RunningWeir, http};

const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn check(app: &App, main: &RunningWeir) -> Result<()> {
    let page = app.origin.trim_start_matches("http://").parse()?;
    for (path, part) in
        [("/", "app.js"), ("/app.js", "weir.js"), ("/weir.js", "class Weir"), ("/gateway", PEER)]
    {
        let body = http::get(page, path)?.body;
        ensure!(String::from_utf8_lossy(&body).contains(part), "`{path}` of the page has no `{part}`");
    }
    let ask = |origin: &str| http::post(page, "/ticket", &[&format!("origin: {origin}")], &Value::Null);
    ensure!(ask("http://127.0.0.1:1")?.status == 404, "another page got a ticket");
    ensure!(app.ticket("http://127.0.0.1:1")?.status == 403, "the gateway gave a ticket for another origin");
    let answer = ask(&app.origin)?.value()?;
    let ticket =
        answer.get("ticket").and_then(Value::as_str).with_context(|| format!("no ticket: {answer}"))?;

    let mut socket = Socket::open(app, ticket)?;
    ensure!(Socket::open(app, ticket).is_err(), "a ticket let two connections in");
    let memory = socket.call("device.info@1/memory", &Value::Null)?;
    let (total, same) = (memory.get("total_kib"), main.call("device.info@1", "memory", &json!({}))?);
    ensure!(total.is_some() && total == same.get("total_kib"), "memory: {memory} and not {same}");

    socket.call("events.subscribe", &json!({ "pattern": "settings.changed.>" }))?;
    main.call("settings@1", "set", &json!({ "key": "brightness", "value": 70 }))?;
    let change = socket.read()?;
    let payload = json!({ "key": "brightness", "value": 70, "previous": null });
    ensure!(change.pointer("/params/payload") == Some(&payload), "the app heard {change}, and not {payload}");
    println!("\nThe app asks over a WebSocket, and hears of a change:\n    → {memory}\n    → {change}");
    Ok(())
}

/// A WebSocket as a page has it.
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
