//! Which certificates of registries are trusted: the system's and those that docker and podman keep for a registry.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result, ensure};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::ring,
        pki_types::{CertificateDer, pem::PemObject},
    },
};

use crate::files;

/// Most bytes of a file of certificates.
const FILE_MAX: u64 = 1 << 20;

/// Most files of certificates for one registry.
const FILES_MAX: usize = 64;

/// Where docker and podman keep a directory for each registry.
const DIRECTORIES: [&str; 2] = ["/etc/containers/certs.d", "/etc/docker/certs.d"];

/// The certificates for one registry.
pub(crate) struct Trust {
    /// Of `--ca-file`: these alone are trusted.
    alone: Option<PathBuf>,
    /// Of the registry's directories: trusted as the system's are.
    beside: Vec<PathBuf>,
}

impl Trust {
    /// Finds the certificates for the registry with this host and optional port.
    pub(crate) fn find(authority: &str, ca_file: Option<PathBuf>) -> Result<Self> {
        let mut beside = Vec::new();
        let of_user = crate::credentials::config_home().map(|home| home.join("containers/certs.d"));
        for directory in of_user.into_iter().chain(DIRECTORIES.map(PathBuf::from)) {
            let directory = directory.join(authority);
            let found = certificates_in(&directory);
            beside.extend(found.with_context(|| format!("cannot read `{}`", directory.display()))?);
        }
        ensure!(beside.len() <= FILES_MAX, "`{authority}` has more than {FILES_MAX} files of certificates");
        Ok(Self { alone: ca_file, beside })
    }

    /// Whether there are certificates for this registry alone. Then it has TLS, wherever it is.
    pub(crate) fn is_for_registry(&self) -> bool {
        self.alone.is_some() || !self.beside.is_empty()
    }

    /// What begins TLS on connections.
    pub(crate) fn connector(&self) -> Result<TlsConnector> {
        let mut roots = RootCertStore::empty();
        for path in self.alone.as_ref().map_or(&self.beside[..], std::slice::from_ref) {
            add(&mut roots, path)
                .with_context(|| format!("cannot take the certificates of `{}`", path.display()))?;
        }
        if self.alone.is_none() {
            // Systems have a few certificates that do not conform any more: those are left out. Without any, each
            // connection with TLS fails and says so.
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsConnector::from(Arc::new(config)))
    }
}

fn certificates_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        found.push(entry?.path());
    }
    found.retain(|path| path.extension().is_some_and(|end| end == "crt"));
    Ok(found)
}

fn add(roots: &mut RootCertStore, path: &Path) -> Result<()> {
    let text = files::read(path, FILE_MAX)?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text).collect::<Result<_, _>>()?;
    ensure!(!found.is_empty(), "it has no certificate");
    for certificate in found {
        roots.add(certificate)?;
    }
    Ok(())
}
