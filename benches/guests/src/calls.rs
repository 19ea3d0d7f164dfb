//! Kinds that call each other: one calls as often as it is told to, the other answers.

use weir_sdk::raw::{
    channel::{self, Message},
    requests,
};

use crate::channels::{PATIENT, configured, number, text};

pub(crate) fn run(kind: &str) -> Option<Result<(), String>> {
    Some(match kind {
        "caller" => caller(),
        "answerer" => answerer(),
        _ => return None,
    })
}

/// Makes the number of calls that a request names, one after the other with the named size. Answers when all
/// answers are there.
fn caller() -> Result<(), String> {
    channel::serve(&configured("serves")?, &["go".to_owned()]).map_err(text)?;
    let target = requests::open(&configured("calls")?, "echo", None).map_err(text)?;
    while let Some(message) = channel::receive() {
        let Message::Request(request) = message else { continue };
        let [calls, size] = [number(&request.payload, 0)?, number(&request.payload, 1)?];
        let mut payload = vec![0x5a; size];
        for call in 0..calls {
            for (place, byte) in payload.iter_mut().zip(call.to_le_bytes()) {
                *place = byte;
            }
            let answer = requests::call(target, &payload, PATIENT).map_err(text)?;
            if answer.len() != size || !answer.iter().take(4).eq(payload.iter().take(4)) {
                return Err(format!("call {call} was answered otherwise"));
            }
        }
        channel::respond(request.id, Ok(b"")).map_err(text)?;
    }
    Ok(())
}

fn answerer() -> Result<(), String> {
    channel::serve(&configured("serves")?, &["echo".to_owned()]).map_err(text)?;
    let mut next = channel::receive();
    while let Some(message) = next {
        next = match message {
            Message::Request(request) => {
                channel::respond_and_receive(request.id, Ok(&request.payload)).map_err(text)?
            }
            _ => channel::receive(),
        };
    }
    Ok(())
}
