//! Files with secrets and certificates: read anew at each connection, so that they can be exchanged.

use std::{fs, io::Read, path::Path};

use anyhow::{Context, Result, ensure};

use crate::config::Config;

/// Most bytes of a file.
const FILE_MAX: u64 = 64 * 1024;

/// Reads every file that the configuration names, as `run` will.
///
/// # Errors
/// The first file that cannot be read, or that is empty or has several words in place of one secret.
pub fn check_files(config: &Config) -> Result<()> {
    let (main, nats) = (config.main.as_ref(), config.nats.as_ref());
    let words = [&main.token_file, &nats.password_file, &nats.token_file, &nats.nkey_file];
    for path in words.into_iter().flatten() {
        word(path)?;
    }
    let tls = &nats.tls;
    let described = config.import.contracts.values().map(|contract| &contract.description);
    let texts = [&nats.credentials_file, &tls.ca_file, &tls.certificate_file, &tls.key_file];
    for path in texts.into_iter().chain(described).flatten() {
        text(path)?;
    }
    Ok(())
}

/// The one word in a file, such as a token.
pub(crate) fn word(path: &Path) -> Result<String> {
    let text = text(path)?;
    let word = text.trim();
    ensure!(!word.is_empty(), "`{}` is empty", path.display());
    ensure!(!word.contains(char::is_whitespace), "`{}` has more than one word", path.display());
    Ok(word.to_owned())
}

/// The text of a file.
pub(crate) fn text(path: &Path) -> Result<String> {
    let read = || {
        let found = fs::metadata(path)?;
        // Reading something else, such as a pipe, may never end.
        ensure!(found.is_file(), "it is no file");
        ensure!(found.len() <= FILE_MAX, "it has over 64 KiB");
        let mut text = String::new();
        fs::File::open(path)?.take(FILE_MAX + 1).read_to_string(&mut text)?;
        Ok(text)
    };
    read().with_context(|| format!("cannot read `{}`", path.display()))
}
