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

use crate::{files, url::Origin};

/// Most bytes of a file of certificates.
const FILE_MAX: u64 = 1 << 20;

/// Most files of certificates for one registry.
const FILES_MAX: usize = 64;

/// Where docker and podman keep a directory for each registry.
const DIRECTORIES: [&str; 2] = ["/etc/containers/certs.d", "/etc/docker/certs.d"];

/// The certificates for one registry.
pub(crate) struct Trust {
    /// Of `--ca-file`: these alone are trusted for the registry.
    alone: Option<PathBuf>,
    /// Of the registry's directories: trusted as the system's are.
    beside: Vec<PathBuf>,
}

impl Trust {
    /// Finds the certificates for the registry with this host and optional port.
    pub(crate) fn find(authority: &str, ca_file: Option<PathBuf>) -> Result<Self> {
        Ok(Self { alone: ca_file, beside: files_for(authority)? })
    }

    /// Whether there are certificates for this registry alone. Then it has TLS, wherever it is.
    pub(crate) fn is_for_registry(&self) -> bool {
        self.alone.is_some() || !self.beside.is_empty()
    }

    /// What begins TLS on connections to the registry, and to the hosts that it names.
    pub(crate) fn tls(self, registry: Origin) -> Result<Tls> {
        let mut system = RootCertStore::empty();
        // Systems have a few certificates that do not conform any more: those are left out. Without any, each
        // connection with TLS fails and says so.
        system.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let of_registry = match &self.alone {
            Some(alone) => connector(RootCertStore::empty(), std::slice::from_ref(alone))?,
            None => connector(system.clone(), &self.beside)?,
        };
        Ok(Tls { registry, of_registry, system, named: self.alone })
    }
}

/// Begins TLS. The certificates in the directory of one host vouch for no other.
pub(crate) struct Tls {
    registry: Origin,
    of_registry: TlsConnector,
    system: RootCertStore,
    /// Of `--ca-file`. Who has its key could answer as the registry, and so get all that goes to hosts that it names.
    named: Option<PathBuf>,
}

impl Tls {
    /// What begins TLS with this host, whose name must be one of DNS or an address.
    pub(crate) fn connector(&self, origin: &Origin) -> Result<TlsConnector> {
        if *origin == self.registry {
            return Ok(self.of_registry.clone());
        }
        let mut files = files_for(&origin.authority())?;
        files.extend(self.named.clone());
        connector(self.system.clone(), &files)
    }
}

/// The files of certificates for this host and optional port.
fn files_for(authority: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let of_user = crate::credentials::config_home().map(|home| home.join("containers/certs.d"));
    for directory in of_user.into_iter().chain(DIRECTORIES.map(PathBuf::from)) {
        let directory = directory.join(authority);
        let found = certificates_in(&directory);
        files.extend(found.with_context(|| format!("cannot read `{}`", directory.display()))?);
    }
    ensure!(files.len() <= FILES_MAX, "`{authority}` has more than {FILES_MAX} files of certificates");
    Ok(files)
}

fn connector(mut roots: RootCertStore, files: &[PathBuf]) -> Result<TlsConnector> {
    for path in files {
        add(&mut roots, path)
            .with_context(|| format!("cannot take the certificates of `{}`", path.display()))?;
    }
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
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
