//! Secrets that an extension reads through `wasi:config/store`: they stand in files of their own.

use std::{
    collections::BTreeMap,
    env, fmt, io,
    path::{Path, PathBuf},
};

use super::{
    ExtensionConfig,
    loader::{ReadError, read_text},
};

/// Largest secret, in bytes.
const SECRET_SIZE_MAX: u64 = 64 * 1024;

/// The variable with the directory of a service's credentials. systemd sets it.
const CREDENTIALS: &str = "CREDENTIALS_DIRECTORY";

/// Where a secret of an extension stands. Its value is read when an instance starts and at a reload, and is never
/// shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecretSource {
    /// A file of at most 64 KiB of UTF-8. A line end at its end is no part of the value.
    File(PathBuf),
    /// A credential of the service, as systemd's `LoadCredential=` passes it. It is read like a file.
    Credential(CredentialName),
}

/// The name of a credential: a file name of 1 to 255 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialName(String);

/// The text is not the name of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a credential's name has 1 to 255 visible ASCII characters without `/` and `:`, and is not `.` or `..`"
)]
pub struct CredentialNameError;

/// Why a secret could not be read. The message shows no part of the secret.
#[derive(Debug, thiserror::Error)]
#[error("cannot read `config.{key}` from {from}")]
pub struct SecretError {
    key: String,
    #[source]
    cause: ReadError,
    from: SecretSource,
}

impl SecretSource {
    /// The file to read.
    ///
    /// # Errors
    ///
    /// Fails for a credential if the process has none.
    pub fn path(&self) -> io::Result<PathBuf> {
        match self {
            Self::File(path) => Ok(path.clone()),
            Self::Credential(CredentialName(name)) => match env::var_os(CREDENTIALS) {
                Some(dir) => Ok(Path::new(&dir).join(name)),
                None => {
                    let why =
                        format!("`{CREDENTIALS}` is not set: the service needs `LoadCredential={name}`");
                    Err(io::Error::new(io::ErrorKind::NotFound, why))
                }
            },
        }
    }

    fn read(&self) -> Result<String, ReadError> {
        let mut text = read_text(&self.path()?, SECRET_SIZE_MAX)?;
        // Editors and `echo` end a file with a line end.
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        Ok(text)
    }
}

/// Writes the source as the operator's file has it.
impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{{ from-file = \"{}\" }}", path.display()),
            Self::Credential(name) => write!(f, "{{ from-credential = \"{name}\" }}"),
        }
    }
}

impl ExtensionConfig {
    /// All values that it reads through `wasi:config/store`. Reads the files of its secrets, which may block.
    ///
    /// # Errors
    ///
    /// The first secret that cannot be read: its file or credential is missing or unreadable, no regular file, over 64
    /// KiB, or not UTF-8.
    pub fn read_values(&self) -> Result<BTreeMap<String, String>, SecretError> {
        let mut values = self.config.clone();
        for (key, source) in &self.secrets {
            let value = source.read().map_err(|cause| {
                let (key, from) = (key.clone(), source.clone());
                SecretError { key, cause, from }
            })?;
            values.insert(key.clone(), value);
        }
        Ok(values)
    }
}

impl std::str::FromStr for CredentialName {
    type Err = CredentialNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_name = (1..=255).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':')
            && !matches!(text, "." | "..");
        is_name.then(|| Self(text.to_owned())).ok_or(CredentialNameError)
    }
}

impl fmt::Display for CredentialName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(source: SecretSource) -> Result<String, String> {
        let mut extension = ExtensionConfig::new("a".parse().unwrap(), "a.wasm");
        extension.config.insert("color".to_owned(), "red".to_owned());
        extension.secrets.insert("token".to_owned(), source);
        let said = |error: SecretError| format!("{error}: {}", error.cause);
        let mut values = extension.read_values().map_err(said)?;
        assert_eq!(values.remove("color").unwrap(), "red");
        Ok(values.remove("token").unwrap())
    }

    #[test]
    fn a_file_is_read_without_its_last_line_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        for (content, value) in [
            ("s3cret\n", "s3cret"),
            ("s3cret\r\n", "s3cret"),
            ("s3cret\n\n", "s3cret\n"),
            (" a\r", " a\r"),
            ("", ""),
        ] {
            fs::write(&path, content).unwrap();
            assert_eq!(read(SecretSource::File(path.clone())).unwrap(), value);
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_a_word_of_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let fault = |path: &Path| {
            let error = read(SecretSource::File(path.to_owned())).unwrap_err();
            error.replace(&dir.path().display().to_string(), "DIR")
        };
        let missing = fault(&path);
        fs::write(&path, b"s3cret\xff").unwrap();
        let not_utf8 = fault(&path);
        fs::write(&path, "s3cret".repeat(20_000)).unwrap();
        let faults = [missing, not_utf8, fault(&path), fault(dir.path())].join("\n");
        insta::assert_snapshot!(faults, @r#"
        cannot read `config.token` from { from-file = "DIR/token" }: No such file or directory (os error 2)
        cannot read `config.token` from { from-file = "DIR/token" }: it is not UTF-8
        cannot read `config.token` from { from-file = "DIR/token" }: it is larger than 64 KiB
        cannot read `config.token` from { from-file = "DIR" }: it is not a regular file
        "#);
    }

    #[test]
    fn a_credential_needs_the_service_to_have_it() {
        // The tests run without systemd.
        let error = read(SecretSource::Credential("token".parse().unwrap())).unwrap_err();
        assert!(error.ends_with("the service needs `LoadCredential=token`"), "{error}");
    }

    #[test]
    fn a_credential_is_a_file_of_its_directory() {
        for good in ["token", "a.b-c_d", "..."] {
            assert_eq!(good.parse::<CredentialName>().unwrap().to_string(), good);
        }
        for bad in ["", ".", "..", "a/b", "/etc/shadow", "a:b", "a b", "ä", &"a".repeat(256)] {
            assert!(bad.parse::<CredentialName>().is_err(), "{bad}");
        }
    }
}
