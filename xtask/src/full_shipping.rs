//! Packages as they reach a device: through Debian's registry, with TLS and passwords, beside the tools that others use.

mod page;

use std::{
    fs,
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result};
use serde_json::json;

use crate::{
    run::{Process, cargo, root, run, until},
    setup::{self, DOCKER_REGISTRY, SKOPEO},
    tools,
};

/// The certificates of `host/http/tests`. They are of `127.0.0.1`, too.
const CERTIFICATES: &str = "host/http/tests/data";

/// Users as the credentials of docker and podman have them, the Base64 of name and password: the author and a device.
const USERS: [&str; 2] = ["YXV0aG9yOm9mLWF1dGhvcg==", "ZGV2aWNlOm9mLWRldmljZQ=="];

/// The same users for the registry, as `htpasswd -B` has them.
const HASHES: &str = "\
author:$2b$04$e9TSeO/m2lv3yoo201lE0OG1jq03eSuGear5cYZQIrnWDQH8FOaJO
device:$2b$04$Lxr22Wit91MSyqbhkT3RyuYPs/cq.ZK9siZwGxfsXz71SzGDQzOE6
";

pub(crate) fn check() -> Result<Vec<String>> {
    setup::require(&[&DOCKER_REGISTRY, &SKOPEO])?;
    let oras = tools::oras()?;
    let registry = Registry::start()?;
    let mut tests = cargo(["test", "--workspace", "--test", "registry", "--", "--ignored", "--nocapture"])?;
    tests.env("WEIR_REGISTRY", &registry.authority).env("WEIR_REGISTRY_CA", &registry.ca);
    run(tests.env("WEIR_REGISTRY_USER", "author:of-author").env("WEIR_ORAS", &oras))?;
    page::follow(&registry, &oras)
}

/// Debian's registry, on a free port of loopback.
struct Registry {
    /// Its host and port.
    authority: String,
    /// What its certificate is signed with.
    ca: PathBuf,
    _process: Process,
    _directory: tempfile::TempDir,
}

impl Registry {
    fn start() -> Result<Self> {
        let directory = tempfile::tempdir().context("cannot make a directory")?;
        let (path, certificates) = (directory.path(), root()?.join(CERTIFICATES));
        let (users, config) = (path.join("users"), path.join("config.yml"));
        fs::write(&users, HASHES)?;
        // The listener ends here, so the registry can have its port.
        let authority = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let (shown, of) = (path.display(), certificates.display());
        let text = format!(
            "version: 0.1\n\
             log: {{ level: warn }}\n\
             storage: {{ filesystem: {{ rootdirectory: {shown}/blobs }} }}\n\
             auth: {{ htpasswd: {{ realm: weir, path: {users:?} }} }}\n\
             http: {{ addr: '{authority}', secret: weir, tls: {{ certificate: {of}/valid.pem, key: {of}/valid.key }} }}\n"
        );
        fs::write(&config, text)?;
        let mut registry = Command::new("docker-registry");
        registry
            .arg("serve")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(path.join("log"))?);
        let process = Process(registry.spawn().context("cannot start the registry")?);
        let connect = || Ok(TcpStream::connect(&authority).ok());
        until(Duration::from_secs(10), Duration::from_millis(50), connect)?.with_context(|| {
            format!(
                "the registry does not listen: {}",
                fs::read_to_string(path.join("log")).unwrap_or_default()
            )
        })?;
        let ca = certificates.join("ca.pem");
        Ok(Self { authority, ca, _process: process, _directory: directory })
    }

    /// The file with the credentials of one of the [`USERS`].
    fn log_in(&self, user: usize) -> Result<String> {
        let auth = USERS.get(user).context("there is no such user")?;
        Ok(json!({ "auths": { &self.authority: { "auth": auth } } }).to_string())
    }
}
