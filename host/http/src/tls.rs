//! TLS to servers: which certificates are trusted.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, pem::PemObject},
    },
};

use crate::error::HttpError;

/// Connects with TLS, once anything does.
#[derive(Default)]
pub(crate) struct Tls {
    /// Of the operator's file. `None`: those of the system.
    roots: Option<Arc<RootCertStore>>,
    connector: OnceLock<TlsConnector>,
}

impl Tls {
    /// Trusts the certificates in this file alone.
    pub(crate) fn of_file(path: &Path) -> Result<Self, NotTrusted> {
        let failed = |why: String| NotTrusted { path: path.to_owned(), why };
        let found: Vec<_> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|error| failed(error.to_string()))?;
        let mut roots = RootCertStore::empty();
        for certificate in found {
            roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(failed("it has no certificate".to_owned()));
        }
        Ok(Self { roots: Some(Arc::new(roots)), connector: OnceLock::new() })
    }

    /// Reads the system's certificates at the first call, which blocks the sender's thread for milliseconds.
    pub(crate) fn connector(&self) -> Result<TlsConnector, HttpError> {
        if let Some(connector) = self.connector.get() {
            return Ok(connector.clone());
        }
        let roots = match &self.roots {
            Some(roots) => roots.clone(),
            None => system_roots()?,
        };
        // By name: a program with several providers has no default.
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| HttpError::Configuration(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(self.connector.get_or_init(|| TlsConnector::from(Arc::new(config))).clone())
    }
}

fn system_roots() -> Result<Arc<RootCertStore>, HttpError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Systems have a few that no longer conform.
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let why = found.errors.first().map_or_else(|| "there are none".to_owned(), ToString::to_string);
        let message =
            format!("the system's certificates cannot be read, and `http.ca-file` is not set: {why}");
        return Err(HttpError::Configuration(message));
    }
    Ok(Arc::new(roots))
}

/// The operator's certificates cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the certificates of `http.ca-file`, `{}`, cannot be used: {why}", path.display())]
pub(crate) struct NotTrusted {
    path: PathBuf,
    why: String,
}
