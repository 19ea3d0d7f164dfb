//! `wasi:http`: the requests that a guest sends. Programs outside Weir send none to a guest this way.
//!
//! Without the cargo feature `http` nothing is offered, and the types here are empty.

#[cfg(feature = "http")]
mod body;
#[cfg(feature = "http")]
mod exchange;
#[cfg(feature = "http")]
mod offered;

use std::sync::{Arc, atomic::AtomicU64};

use weir_config::{HttpGrant, Limits, not_in_this_build};
use weir_metrics::Usage;
use weir_schedule::SharedShare;

use crate::{fit::is_of_wasi_0_3, imports::why_not_this_version, keyvalue};

#[cfg(feature = "http")]
pub use self::exchange::{HttpBody, HttpBodyError, HttpExchanges};
#[cfg(feature = "http")]
pub(crate) use self::{
    exchange::{AnswerSender, HttpExchange, begin},
    offered::{HttpAccess, add_to_linker},
};

/// Sends the requests of guests, if this build has the feature `http`. Clones share the sender.
#[derive(Clone, Debug, Default)]
pub struct Http {
    #[cfg(feature = "http")]
    sender: Option<weir_http::HttpSender>,
    /// The requests for extensions that serve HTTP.
    #[cfg(feature = "http")]
    pub exchanges: HttpExchanges,
}

#[cfg(feature = "http")]
impl From<weir_http::HttpSender> for Http {
    fn from(sender: weir_http::HttpSender) -> Self {
        Self { sender: Some(sender), exchanges: HttpExchanges::default() }
    }
}

/// Sends what the commands of one configuration send by HTTP, within their grants.
#[derive(Clone, Debug)]
pub struct HttpOutlet {
    http: Http,
    grants: Arc<[HttpGrant]>,
    /// Nanoseconds of the sender's work, charged to the share of the commands.
    worked: Arc<AtomicU64>,
}

impl HttpOutlet {
    /// Makes an outlet with these grants. The sender's work for it is charged to `share`.
    #[must_use]
    pub fn new(http: Http, grants: &[HttpGrant], share: &SharedShare) -> Self {
        Self { http, grants: grants.into(), worked: share.elsewhere() }
    }

    /// Returns the access for one command, whose refused requests are reported to `say`.
    pub(crate) fn access(
        &self,
        limits: &Limits,
        usage: &Arc<Usage>,
        say: impl Fn(&str) + Send + Sync + 'static,
    ) -> HttpAccess {
        self.http.access(&self.grants, limits, usage, self.worked.clone(), say)
    }
}

/// Whether an interface of `wasi:http` is offered by a build with the feature.
pub(crate) fn is_known(interface: &str) -> bool {
    matches!(interface, "wasi:http/types" | "wasi:http/outgoing-handler")
}

/// Returns why an import is not offered, as text to follow its name.
pub(crate) fn why_not_offered(import: &str) -> String {
    if let Some(why) = why_not_this_version(import) {
        return why;
    }
    let interface = import.split('@').next().unwrap_or_default();
    match interface {
        _ if is_of_wasi_0_3(import) => "which is of WASI 0.3".to_owned(),
        _ if cfg!(not(feature = "http")) && is_known(interface) => {
            format!("which {}", not_in_this_build("http"))
        }
        _ if cfg!(not(feature = "store")) && keyvalue::is_known(interface) => {
            format!("which {}", not_in_this_build("store"))
        }
        _ => "which Weir does not offer".to_owned(),
    }
}

/// Access to nothing, in a build without the feature.
#[cfg(not(feature = "http"))]
#[derive(Debug, Default)]
pub(crate) struct HttpAccess;

#[cfg(not(feature = "http"))]
pub(crate) use self::without::add_to_linker;

#[cfg(not(feature = "http"))]
mod without {
    use std::sync::{Arc, atomic::AtomicU64};

    use wasmtime::component::Linker;
    use weir_config::{HttpGrant, Limits};
    use weir_metrics::Usage;

    use super::{Http, HttpAccess};
    use crate::sandbox::Guest;

    impl Http {
        #[expect(clippy::unused_self, reason = "a build with the feature uses it")]
        pub(crate) fn access(
            &self,
            _grants: &[HttpGrant],
            _limits: &Limits,
            _usage: &Arc<Usage>,
            _worked: Arc<AtomicU64>,
            _say: impl Fn(&str) + Send + Sync + 'static,
        ) -> HttpAccess {
            HttpAccess
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "a build with the feature can fail")]
    pub(crate) fn add_to_linker<G: Guest>(_linker: &mut Linker<G>) -> wasmtime::Result<()> {
        Ok(())
    }
}
