//! Credentials for registries, from the files in which docker and podman keep them.

use std::{
    collections::BTreeMap,
    env,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;

use crate::{files, helper, reference::Repository};

/// Most bytes of a file with credentials.
const FILE_MAX: u64 = 1 << 20;

/// Under which name docker keeps its own registry.
const DOCKER_HUB: (&str, &str) = ("docker.io", "index.docker.io");

/// What somebody proves to a registry who they are with.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Credentials {
    Password {
        user: String,
        password: String,
    },
    /// A token that the registry's token service exchanges for others.
    Identity(String),
}

/// Why a registry gets no credentials, as the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoCredentials {
    #[error("no file has any for it")]
    NotKept,
    /// Any user of this machine may listen at a port, and take them.
    #[error("without TLS they are sent only with `--plain-http`")]
    InClear,
}

/// A file with credentials, as far as it is read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct File {
    auths: BTreeMap<String, Entry>,
    cred_helpers: BTreeMap<String, String>,
    creds_store: Option<String>,
}

/// Credentials in a file, or a hint that a helper has them.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Entry {
    auth: String,
    username: String,
    password: String,
    identitytoken: String,
}

/// Finds the credentials for a repository: in `auth_file` alone if that is named, else in the first of the usual files
/// that has some.
pub(crate) async fn find(repository: &Repository, auth_file: Option<&Path>) -> Result<Option<Credentials>> {
    let paths = auth_file.map_or_else(usual_files, |path| vec![path.to_owned()]);
    for path in paths {
        let bytes = match files::read(&path, FILE_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound && auth_file.is_none() => continue,
            Err(error) => bail!("cannot read the credentials in `{}`: {error}", path.display()),
        };
        let found = of_file(&bytes, repository).await;
        if let Some(found) =
            found.with_context(|| format!("cannot take the credentials in `{}`", path.display()))?
        {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Where podman keeps credentials, and then where docker does.
fn usual_files() -> Vec<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let runtime = variable("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json"));
    let of_user = config_home().map(|dir| dir.join("containers/auth.json"));
    let docker = variable("DOCKER_CONFIG").or_else(|| Some(variable("HOME")?.join(".docker")));
    [runtime, of_user, docker.map(|dir| dir.join("config.json"))].into_iter().flatten().collect()
}

/// The directory with this user's configuration.
pub(crate) fn config_home() -> Option<PathBuf> {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("XDG_CONFIG_HOME").or_else(|| Some(variable("HOME")?.join(".config")))
}

async fn of_file(bytes: &[u8], repository: &Repository) -> Result<Option<Credentials>> {
    // The causes would have the place, and with it perhaps a secret.
    let Ok(file) = serde_json::from_slice::<File>(bytes) else {
        bail!("it is not JSON of the form that docker writes")
    };
    let names = names(repository);
    for name in &names {
        if let Some(helper) = value_of(&file.cred_helpers, name) {
            return helper::get(helper, name).await;
        }
    }
    let entry = names.iter().find_map(|name| value_of(&file.auths, name));
    // Docker leaves an empty entry for what its helper has.
    if let Some(found) = entry.map(Entry::credentials).transpose()?.flatten() {
        return Ok(Some(found));
    }
    let Some(helper) = file.creds_store else { return Ok(None) };
    // Docker's own registry is known to helpers by its whole address.
    let is_hub = repository.host == DOCKER_HUB.0;
    let name = if is_hub { "https://index.docker.io/v1/" } else { &repository.host };
    helper::get(&helper, name).await
}

/// Under which names a file may have a repository's credentials, the most exact first.
fn names(repository: &Repository) -> Vec<String> {
    let mut names = Vec::new();
    let mut name = repository.to_string();
    while let Some((shorter, _)) = name.rsplit_once('/').map(|(shorter, last)| (shorter.to_owned(), last)) {
        names.push(std::mem::replace(&mut name, shorter));
    }
    let (hub, known_as) = DOCKER_HUB;
    let is_hub = name == hub;
    names.push(name);
    names.extend(is_hub.then(|| known_as.to_owned()));
    names
}

/// The value for a name, whose key may be an address: docker once wrote `https://HOST/v1/`.
fn value_of<'a, T>(map: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let plain = |key: &'a str| {
        let key = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
        let key = key.trim_end_matches('/');
        key.strip_suffix("/v1").or_else(|| key.strip_suffix("/v2")).unwrap_or(key)
    };
    map.get(name).or_else(|| map.iter().find(|(key, _)| plain(key) == name).map(|(_, value)| value))
}

impl Entry {
    fn credentials(&self) -> Result<Option<Credentials>> {
        if !self.identitytoken.is_empty() {
            return Ok(Some(Credentials::Identity(self.identitytoken.clone())));
        }
        if self.auth.is_empty() {
            let (user, password) = (self.username.clone(), self.password.clone());
            return Ok((!user.is_empty()).then_some(Credentials::Password { user, password }));
        }
        let decoded = STANDARD.decode(&self.auth).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let both = decoded.as_deref().and_then(|text| text.split_once(':'));
        let (user, password) = both.context("an `auth` is not the Base64 of `USER:PASSWORD`")?;
        // Docker once padded with zeros.
        let password = password.trim_end_matches('\0').to_owned();
        ensure!(!user.is_empty(), "an `auth` has no user");
        Ok(Some(Credentials::Password { user: user.to_owned(), password }))
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Entry(…)")
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Password { .. } => "Password(…)",
            Self::Identity(_) => "Identity(…)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(json: &str, reference: &str) -> Result<Option<Credentials>> {
        let repository = reference.parse()?;
        tokio::runtime::Builder::new_current_thread().build()?.block_on(of_file(json.as_bytes(), &repository))
    }

    fn password(user: &str, password: &str) -> Option<Credentials> {
        Some(Credentials::Password { user: user.into(), password: password.into() })
    }

    #[test]
    fn the_entry_with_the_longest_name_counts() {
        let auth = |text: &str| STANDARD.encode(text);
        let json = format!(
            r#"{{ "auths": {{ "host.test": {{ "auth": "{}" }}, "host.test/a/b": {{ "auth": "{}" }},
                "https://old.test/v1/": {{ "username": "o", "password": "p" }},
                "https://index.docker.io/v1/": {{ "auth": "{}" }}, "empty.test": {{}} }}, "other": 1 }}"#,
            auth("host:x:y"),
            auth("ab:"),
            auth("hub:h\0\0"),
        );
        let of = |name| found(&json, name).unwrap();
        assert_eq!(of("host.test/a"), password("host", "x:y"));
        assert_eq!(of("host.test/a/b"), password("ab", ""));
        assert_eq!(of("host.test/a/b/c"), password("ab", ""));
        assert_eq!(of("host.test/a/bc"), password("host", "x:y"));
        assert_eq!(of("old.test/a"), password("o", "p"));
        assert_eq!(of("docker.io/a/b"), password("hub", "h"));
        assert_eq!(of("host.test:443/a"), None);
        assert_eq!(of("empty.test/a"), None);
        let token = r#"{ "auths": { "host.test": { "identitytoken": "t" } } }"#;
        assert_eq!(found(token, "host.test/a").unwrap(), Some(Credentials::Identity("t".into())));
    }

    #[test]
    fn a_faulty_file_is_refused_without_its_secrets() {
        for json in [
            r#"{ "auths": { "host.test": { "auth": "secret" } } }"#,
            r#"{ "auths": { "host.test": { "auth": "c2VjcmV0" } } }"#,
            r#"{ "auths": { "host.test": "secret" } }"#,
            r#"secret"#,
        ] {
            let error = format!("{:#}", found(json, "host.test/a").unwrap_err());
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(found(r#"{ "credHelpers": { "host.test": "../x" } }"#, "host.test/a").is_err());
        assert!(!format!("{:?}", password("a", "secret")).contains("secret"));
    }
}
