//! Requests by HTTP to extensions that serve them: for a program, such as the gateway, that listens for them.

use std::sync::Arc;

use weir_bus::{Bus, Error};
use weir_config::{HttpMethod, ServesHttp};
pub use weir_guest::{HttpBody, HttpBodyError};
use weir_guest::{HttpExchanges, http_operation};
use weir_logs::{Level, Logs, Source};
use weir_names::{ExtensionId, TraceContext};
use weir_supervisor::Roster;

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

    /// Writes a line to the log of a server, as from Main.
    pub fn log(&self, server: &HttpServer, text: &str) {
        self.logs.write(&server.id.as_str().into(), Level::Info, Source::Main, text, std::iter::empty());
    }

    /// The extension with the longest path that covers this one, whether or not it runs.
    #[must_use]
    pub fn find(&self, path: &str) -> Option<HttpServer> {
        let listed = self.roster.listed();
        let configs = listed.iter().map(|unit| unit.version().config.clone());
        let covers = |config: &Arc<weir_config::ExtensionConfig>| {
            config.copy_of.is_none() && config.serves_http.as_ref().is_some_and(|it| it.path.covers(path))
        };
        let longest = |config: &Arc<weir_config::ExtensionConfig>| {
            config.serves_http.as_ref().map(|it| it.path.as_str().len())
        };
        let config = configs.filter(covers).max_by_key(longest)?;
        let contract = config.http_contract()?.to_string();
        Some(HttpServer { id: config.id.clone(), serves: config.serves_http.clone()?, contract })
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
