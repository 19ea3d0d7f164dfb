//! Docker's helpers for credentials: programs `docker-credential-NAME`, which keep them in the keyring of a desktop.

use std::{process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
    time::timeout,
};
use weir_names::harmless;

use crate::credentials::Credentials;

/// Time for the helper, which may ask its user.
const WITHIN: Duration = Duration::from_secs(60);

/// Most bytes of its answer.
const ANSWER_MAX: u64 = 64 << 10;

/// The user in an answer that has a token in place of a password.
const TOKEN: &str = "<token>";

/// How a helper says that it has nothing for this registry.
const NOTHING: &str = "credentials not found";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Found {
    username: String,
    secret: String,
}

/// Asks a helper for the credentials of a registry.
pub(crate) async fn get(name: &str, registry: &str) -> Result<Option<Credentials>> {
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    ensure!(is_name && !name.is_empty(), "`{name}` is no name of a helper");
    let program = format!("docker-credential-{name}");
    let asked = timeout(WITHIN, ask(&program, registry)).await;
    asked.with_context(|| format!("`{program}` did not end within {}", humantime::format_duration(WITHIN)))?
}

async fn ask(program: &str, registry: &str) -> Result<Option<Credentials>> {
    let mut command = Command::new(program);
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child =
        command.spawn().with_context(|| format!("cannot run `{program}`, which has the credentials"))?;
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    if let Some(mut stdin) = stdin {
        // A helper that ends without reading has answered.
        let _ended = stdin.write_all(registry.as_bytes()).await;
    }
    let mut answer = Vec::new();
    let stdout = stdout.context("the helper has no stdout")?;
    stdout.take(ANSWER_MAX + 1).read_to_end(&mut answer).await?;
    ensure!(
        u64::try_from(answer.len()).is_ok_and(|size| size <= ANSWER_MAX),
        "`{program}` answered with more than {ANSWER_MAX} bytes"
    );
    if !child.wait().await?.success() {
        let said = String::from_utf8_lossy(&answer);
        if said.trim().starts_with(NOTHING) {
            return Ok(None);
        }
        bail!("`{program}` failed: {}", harmless(said.trim(), 300));
    }
    // The error of the JSON could have a secret in it.
    let Ok(Found { username, secret }) = serde_json::from_slice(&answer) else {
        bail!("`{program}` did not answer as a helper does")
    };
    Ok(Some(if username == TOKEN {
        Credentials::Identity(secret)
    } else {
        Credentials::Password { user: username, password: secret }
    }))
}
