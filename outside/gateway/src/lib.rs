//! The gateway: apps call contracts and hear events by JSON-RPC, over WebSocket and HTTP; simple clients by plain streams.
//! Behind it stand the extensions that serve HTTP.
//!
//! `docs/apps.md` and `docs/http-servers.md` describe the protocols. Each WebSocket, stream, POST and ticket is a
//! [`Session`](weir_host::peers::Session), which has the grants and limits: the gateway knows nothing of the host's
//! inside. All of it runs on a thread of its own.
//!
//! ```no_run
//! # async fn embed() -> Result<(), Box<dyn std::error::Error>> {
//! use weir_gateway::{Gateway, GatewayConfig};
//! use weir_host::Main;
//!
//! let config = weir_host::loader().section::<GatewayConfig>().load("device.toml".as_ref())?;
//! let gateway = config.section::<GatewayConfig>().map(Gateway::bind).transpose()?.flatten();
//! let mut main = Main::builder(config);
//! if let Some(gateway) = gateway {
//!     main = main.attach(|attached| gateway.serve(attached));
//! }
//! let main = main.start().await?;
//! # Ok(())
//! # }
//! ```

mod config;
mod conversation;
mod http;
#[cfg(feature = "tls")]
mod http2;
mod hub;
mod methods;
mod outbox;
mod post;
mod rpc;
mod server;
#[cfg(feature = "servers")]
mod servers;
mod shared;
mod stream;
mod streams;
mod tickets;
mod tls;
mod websocket;

/// The name of the gateway among the parts of Main.
const PART: &str = "gateway";

pub use self::{
    config::{Alias, GatewayConfig, Listen, ListenError, Origin, OriginError, TlsConfig, WhenSlow},
    server::{Gateway, GatewayError},
};

#[doc(hidden)]
pub use self::rpc::fuzzing;
#[cfg(feature = "servers")]
#[doc(hidden)]
pub use self::servers::head_for_server;
