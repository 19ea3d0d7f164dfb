//! The asker: the process at the other end of a connection.

use std::{convert::Infallible, fmt, sync::Arc};

use axum::{extract::FromRequestParts, http::request::Parts};
use tokio::net::UnixStream;
use weir_host::Control;

use crate::routes::Served;

/// User and process, as the kernel knows them.
#[derive(Clone, Debug)]
pub(super) struct Asker(Arc<str>);

impl Asker {
    pub(super) fn of(stream: &UnixStream) -> Self {
        let credentials = stream.peer_cred().ok();
        let name = credentials.map(|of| match of.pid() {
            Some(pid) => format!("uid {}, pid {pid}", of.uid()),
            None => format!("uid {}", of.uid()),
        });
        Self(name.map_or_else(|| "an unknown process".into(), Into::into))
    }
}

impl fmt::Display for Asker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromRequestParts<Served> for Asker {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _served: &Served) -> Result<Self, Infallible> {
        Ok(parts.extensions.get().cloned().unwrap_or_else(|| Self("an unknown process".into())))
    }
}

/// [`Control`] in the asker's name.
pub(super) struct AskedControl(pub(super) Control);

impl FromRequestParts<Served> for AskedControl {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, served: &Served) -> Result<Self, Infallible> {
        let Asker(name) = Asker::from_request_parts(parts, served).await?;
        Ok(Self(served.control.by(name)))
    }
}
