//! Operations that a session calls again and again, looked up once.

use std::sync::Arc;

use weir_host::{Error, client::ClientOperation, peers::Session};

/// The most operations that are kept. Beyond that, the one that was used longest ago is forgotten.
const KEPT: usize = 16;

/// Operations that a session calls, the one used last first.
#[derive(Debug, Default)]
pub struct Operations(Vec<Known>);

#[derive(Debug)]
struct Known {
    contract: Box<str>,
    operation: Box<str>,
    provider: Option<Box<str>>,
    target: Arc<ClientOperation>,
}

impl Operations {
    /// The operation, looked up again only if it was not among the last ones.
    ///
    /// # Errors
    ///
    /// The errors of [`Client::operation_of`](weir_host::Client::operation_of).
    pub fn find(
        &mut self,
        session: &Session,
        contract: &str,
        operation: &str,
        provider: Option<&str>,
    ) -> Result<Arc<ClientOperation>, Error> {
        let is = |known: &Known| {
            &*known.contract == contract
                && &*known.operation == operation
                && known.provider.as_deref() == provider
        };
        if let Some(at) = self.0.iter().position(is) {
            let known = self.0.remove(at);
            let target = known.target.clone();
            self.0.insert(0, known);
            return Ok(target);
        }
        let target = Arc::new(session.client().operation_of(provider, contract, operation)?);
        let (contract, operation, provider) = (contract.into(), operation.into(), provider.map(Into::into));
        self.0.truncate(KEPT - 1);
        self.0.insert(0, Known { contract, operation, provider, target: target.clone() });
        Ok(target)
    }
}
