//! Like `echo-raw`, but serves the contract that its `config` names, so that there can be many.

use std::process::ExitCode;

#[cfg(target_family = "wasm")]
fn main() -> ExitCode {
    match serve() {
        Some(()) => ExitCode::SUCCESS,
        None => ExitCode::FAILURE,
    }
}

#[cfg(target_family = "wasm")]
fn serve() -> Option<()> {
    use weir_sdk::raw::{
        channel::{self, Message},
        config,
    };

    let contract = config::get("contract").ok()??;
    channel::serve(&contract, &["echo".to_owned()]).ok()?;
    let mut next = channel::receive();
    while let Some(message) = next {
        next = match message {
            Message::Request(request) => {
                channel::respond_and_receive(request.id, Ok(&request.payload)).ok()?
            }
            _ => channel::receive(),
        };
    }
    Some(())
}

#[cfg(not(target_family = "wasm"))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
