//! Main with the configuration of its file.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use weir_control::ControlSocket;
use weir_host::{CallOptions, ExtensionConfig, Main, blocking::wait, control::ExtensionState};
use weir_peer_socket::PeerSocket;

use crate::Answering;

const PATIENCE: Duration = Duration::from_secs(60);

/// Starts Main with the extensions of the file. With `count`, this many of the last one take its place, each
/// with its own contract.
pub(crate) fn start(file: &Path, count: Option<u32>) -> Result<Answering> {
    let mut config = weir_host::load(file)?;
    if let Some(count) = count {
        let one = config.extensions.pop().context("no extension is configured")?;
        for number in 0..count {
            config.extensions.push(numbered(&one, number)?);
        }
    }
    let socket = ControlSocket::bind(&config.main.control_socket)?;
    let peers = config.main.peer_socket.as_deref().map(PeerSocket::bind).transpose()?;
    let mut builder = Main::builder(config).attach(|attached| socket.serve(attached));
    if let Some(peers) = peers {
        builder = builder.attach(|attached| peers.serve(attached));
    }
    let main = wait(builder.start())?;
    for extension in main.control().extensions() {
        let state = extension.state;
        ensure!(state == ExtensionState::Ready, "`{}` is {state:?}: {:?}", extension.id, extension.reason);
    }
    give_back_freed();
    Ok(Box::new(move |contract, operation, argument| {
        let options = CallOptions::default().timeout(PATIENCE);
        let answer = wait(main.client().call_with(contract, operation, argument.to_owned(), options))?;
        Ok(String::from_utf8(answer.into())?)
    }))
}

/// Returns freed memory to the system: a start takes a few times the memory of what it loads, and glibc keeps
/// that.
fn give_back_freed() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    #[expect(unsafe_code, reason = "the only way to ask for it")]
    // SAFETY: it takes no pointer, and any thread may call it at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

fn numbered(one: &ExtensionConfig, number: u32) -> Result<ExtensionConfig> {
    let mut extension = one.clone();
    extension.id = format!("{}-{number}", one.id).parse()?;
    let contract = format!("{}.n{number}@1", one.id);
    extension.fulfills = vec![contract.parse()?];
    extension.config.insert("contract".to_owned(), contract);
    Ok(extension)
}
