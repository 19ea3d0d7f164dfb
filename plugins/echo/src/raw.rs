//! `echo` on the raw channel: the least cost of a round trip.

use std::process::ExitCode;

use weir_contracts::echo;
use weir_sdk::raw::{
    channel::{self, Message},
    types::Error,
};

weir_sdk::manifest! { id: "echo-raw", fulfills: &[echo::CONTRACT] }

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve() -> Result<(), Error> {
    channel::serve(echo::CONTRACT.name(), &[echo::ECHO.name().to_owned()])?;
    let mut next = channel::receive();
    while let Some(message) = next {
        next = match message {
            Message::Request(request) => channel::respond_and_receive(request.id, Ok(&request.payload))?,
            _ => channel::receive(),
        };
    }
    Ok(())
}
