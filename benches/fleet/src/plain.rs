//! The baseline: a request and its reply by async-nats alone.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use async_nats::{Client, ConnectOptions};
use bytes::Bytes;
use futures_util::StreamExt;

pub(crate) const SUBJECT: &str = "plain.echo";

pub(crate) async fn connect(server: SocketAddr) -> Result<Client> {
    let options = ConnectOptions::new().retry_on_initial_connect();
    options.connect(format!("nats://{server}")).await.context("cannot connect to the server")
}

/// Answers until the process is killed.
pub(crate) async fn echo(server: SocketAddr) -> Result<()> {
    let client = connect(server).await?;
    let mut requests = client.queue_subscribe(SUBJECT, "echo".to_owned()).await?;
    while let Some(request) = requests.next().await {
        if let Some(reply) = request.reply {
            client.publish(reply, request.payload).await?;
        }
    }
    Ok(())
}

pub(crate) async fn request(client: &Client, payload: Bytes) -> Result<Bytes> {
    Ok(client.request(SUBJECT, payload).await?.payload)
}
