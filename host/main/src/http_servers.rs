//! Requests by HTTP to extensions that serve them: for a program, such as the gateway, that listens for them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use weir_bus::{Bus, Error};
use weir_config::{HttpMethod, ServesHttp};
pub use weir_guest::{HttpBody, HttpBodyError};
use weir_guest::{HttpExchanges, http_operation};
use weir_logs::{Level, Logs, Source};
use weir_names::{ExtensionId, TraceContext};
use weir_supervisor::{Roster, Unit};

use crate::client::{CallOptions, Client};

/// The extensions that serve HTTP. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpServers {
    client: Client,
    roster: Arc<Roster>,
    exchanges: HttpExchanges,
    logs: Arc<Logs>,
}

/// An extension that serves the path of a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpServer {
    /// Its id.
    pub id: ExtensionId,
    /// What it serves, and for whom.
    pub serves: ServesHttp,
    contract: String,
    unit: Arc<Unit>,
}

impl HttpServer {
    /// Whether it takes requests of this method.
    #[must_use]
    pub fn takes(&self, method: &http::Method) -> bool {
        self.serves.methods.is_empty()
            || self.serves.methods.iter().any(|own| own.as_str() == method.as_str())
    }

    /// The methods that it takes, as in the header `allow`.
    #[must_use]
    pub fn allow(&self) -> String {
        self.serves.methods.iter().map(HttpMethod::as_str).collect::<Vec<_>>().join(", ")
    }
}

impl HttpServers {
    pub(crate) fn new(
        bus: &Arc<Bus>,
        roster: &Arc<Roster>,
        logs: &Arc<Logs>,
        exchanges: HttpExchanges,
    ) -> Self {
        let client = Client::of_main(bus.clone(), roster.clone());
        Self { client, roster: roster.clone(), exchanges, logs: logs.clone() }
    }

    /// Notes an answer to a client: counts its status, and writes the line, if there is one, to the log of the server, as
    /// from Main.
    pub fn answered(&self, server: &HttpServer, status: http::StatusCode, line: Option<&str>) {
        server.unit.count_http_answer(status.as_u16());
        if let Some(line) = line {
            self.logs.write(&server.id.shared(), Level::Info, Source::Main, line, std::iter::empty());
        }
    }

    /// The extension with the longest path that covers this one at the gateway, whether or not it runs.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<HttpServer> {
        let length = |unit: &Unit| {
            let config = &unit.version().config;
            let own = config.serves_http.as_ref().filter(|own| own.is_mounted() && own.path.covers(path));
            own.filter(|_| config.copy_of.is_none()).map(|own| own.path.as_str().len())
        };
        let longest = |unit: Arc<Unit>| Some((length(&unit)?, unit));
        let units = self.roster.listed().into_iter().filter_map(longest);
        let (_, unit) = units.max_by_key(|(length, _)| *length)?;
        Self::server(unit)
    }

    /// The server with this id, if this is still its own socket and its path contains this one.
    #[must_use]
    pub fn at_socket(&self, id: &ExtensionId, socket: &Path, path: &str) -> Option<HttpServer> {
        let server = Self::server(self.roster.find(id.as_str())?)?;
        let is_its = server.serves.socket.as_deref() == Some(socket) && server.serves.path.contains(path);
        is_its.then_some(server)
    }

    /// The sockets of servers that have their own.
    #[must_use]
    pub fn sockets(&self) -> BTreeMap<PathBuf, ExtensionId> {
        let listed = self.roster.listed();
        let configs = listed.iter().map(|unit| unit.version().config.clone());
        let own = configs.filter(|config| config.copy_of.is_none());
        own.filter_map(|config| Some((config.serves_http.as_ref()?.socket.clone()?, config.id.clone())))
            .collect()
    }

    fn server(unit: Arc<Unit>) -> Option<HttpServer> {
        let config = unit.version().config.clone();
        let contract = config.http_contract()?.to_string();
        Some(HttpServer { id: config.id.clone(), serves: config.serves_http.clone()?, contract, unit })
    }

    /// Passes a request to the server, and returns its answer: the head when it is there, and then the body as it comes.
    /// The deadline of the request bounds the wait for the head. To drop the future, or the body before its end, ends the
    /// work for the request.
    ///
    /// The request is passed as it is: its host, its headers and who sends it are for the caller to check.
    ///
    /// # Errors
    ///
    /// [`Error::Overloaded`] if too many requests wait; [`Error::Timeout`]; [`Error::Trapped`] if the handler failed;
    /// [`Error::Handler`] if it ended without an answer; [`Error::NoProvider`] and [`Error::PeerGone`] if the server does
    /// not run.
    pub async fn handle(
        &self,
        server: &HttpServer,
        request: http::Request<HttpBody>,
        is_tls: bool,
        trace: Option<TraceContext>,
    ) -> Result<http::Response<HttpBody>, Error> {
        let operation = http_operation(request.method());
        let ticket = self.exchanges.put(request, is_tls);
        let options = CallOptions { trace, ..CallOptions::default() };
        let outcome = self.client.call_with(&server.contract, operation, ticket.payload(), options).await;
        // An answer with a status of 500 or more is there, although it counts as an error.
        match (ticket.answer(), outcome) {
            (Some(answer), _) => Ok(answer),
            (None, Err(error)) => Err(error),
            (None, Ok(_)) => Err(Error::PeerGone),
        }
    }
}
