//! The puppet's commands.

use std::{fmt::Debug, hint::black_box, io::Write, net::TcpStream};

use test_guests::{
    PATIENT,
    words::{number, text, word},
};
use weir_sdk::raw::{
    channel, config, events, lifecycle, log, peers,
    queues::{self, Taking},
    requests,
};

use crate::{ASKER, HEARD, SENDER, files};

/// Runs a command line. Its last word takes the rest of the line.
pub(crate) fn run(line: &str) -> Result<String, String> {
    let (command, rest) = word(line);
    match command {
        "echo" => Ok(rest.to_owned()),
        "all" => rest.split("; ").map(run).collect::<Result<Vec<_>, _>>().map(|texts| texts.join("\n")),
        "heard" => Ok(HEARD.with_borrow_mut(|heard| std::mem::take(heard).join("\n"))),

        "call" => call(rest),
        "send" => send(rest),
        "hoard" => hoard(rest),
        "serve" => shown(channel::serve(rest, &["run".to_owned()])),
        "respond" => shown(channel::respond(number(rest)?, Ok(b""))),
        "large" => Ok("x".repeat(usize::try_from(number(rest)?).unwrap_or_default())),
        "subscribe" => shown(events::subscribe(rest)),
        "unsubscribe" => shown(events::unsubscribe(u32::try_from(number(rest)?).unwrap_or(u32::MAX))),
        "publish" => {
            let (topic, payload) = word(rest);
            shown(events::publish(topic, payload.as_bytes(), PATIENT))
        }
        "publish-to" => {
            let (extension, rest) = word(rest);
            let (topic, payload) = word(rest);
            shown(events::publish_to(extension, topic, payload.as_bytes(), PATIENT))
        }
        "put" => {
            let (queue, payload) = word(rest);
            let queue = queues::open(queue).map_err(text)?;
            shown(queues::put(queue, payload.as_bytes(), PATIENT))
        }
        "take" => take(rest),
        "done" => shown(queues::done(number(rest)?)),
        "done-all" => {
            let jobs = rest.split_whitespace().map(number).collect::<Result<Vec<_>, _>>()?;
            shown(queues::done_all(&jobs))
        }
        "give-back" => shown(queues::give_back(number(rest)?)),
        "asker" => Ok(peers::name_of(ASKER.get()).unwrap_or_default()),
        "sender" => Ok(peers::name_of(SENDER.get()).unwrap_or_default()),
        "config" => Ok(config::get(rest).ok().flatten().unwrap_or_else(|| "none".to_owned())),
        "name-of" => Ok(format!("{:?}", peers::name_of(u32::try_from(number(rest)?).unwrap_or(u32::MAX)))),
        "own-name" => Ok(peers::own_name()),
        "ready" => done(lifecycle::ready),
        "interrupted" => done(|| lifecycle::interrupted(rest)),
        "error" => Err(rest.to_owned()),

        "log" => {
            let field = log::Field { name: "na\nme".to_owned(), value: "va\x1b[2Jlue".to_owned() };
            done(|| log::write(log::Level::Warn, rest, &[field]))
        }
        "print" => {
            let written =
                std::io::stdout().write_all(rest.as_bytes()).and_then(|()| std::io::stdout().flush());
            said(written.map(|()| String::new()))
        }
        "eprint" => said(std::io::stderr().write_all(rest.as_bytes()).map(|()| String::new())),
        "connect" => said(TcpStream::connect(rest).map(|_| "connected".to_owned())),
        "env" => Ok(format!("{:?}", std::env::vars().collect::<Vec<_>>())),
        "args" => Ok(format!("{:?}", std::env::args().collect::<Vec<_>>())),

        "reserve" => {
            let bytes = usize::try_from(number(rest)?).unwrap_or(usize::MAX);
            Ok(Vec::<u8>::new().try_reserve_exact(bytes).map_or("refused", |()| "reserved").to_owned())
        }
        "spin" => spin(),
        "burn" => Ok(burn(number(rest)?).to_string()),
        "nest" => Ok(nest(number(rest)?).to_string()),
        "recurse" => Ok(recurse(rest, 0).to_string()),
        "trap" => trap(),
        "panic" => panic!("{rest}"),
        "exit" => std::process::exit(i32::try_from(number(rest)?).unwrap_or(1)),
        _ => files::run(command, rest).unwrap_or_else(|| Err(format!("unknown command `{command}`"))),
    }
}

/// `call CONTRACT OPERATION PAYLOAD`, waiting for the answer.
fn call(rest: &str) -> Result<String, String> {
    let (target, payload) = open(rest)?;
    let answer = requests::call(target, payload.as_bytes(), PATIENT);
    answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).map_err(text)
}

/// The same without waiting. The response is then in `HEARD`.
fn send(rest: &str) -> Result<String, String> {
    let (target, payload) = open(rest)?;
    shown(requests::send(target, payload.as_bytes(), PATIENT))
}

/// `hoard CONTRACT OPERATION`: sends until it is refused, lets all requests time out, cancels them, and sends
/// again. Returns the number of sent requests.
fn hoard(rest: &str) -> Result<String, String> {
    let (target, payload) = open(rest)?;
    let options = requests::Options { timeout_ms: Some(1), parent: None };
    let mut sent = 0;
    for _ in 0..3 {
        let round: Vec<u64> =
            std::iter::from_fn(|| requests::send(target, payload.as_bytes(), options).ok()).collect();
        sent += round.len();
        // A call that times out after they have.
        let later = requests::Options { timeout_ms: Some(50), parent: None };
        drop(requests::call(target, payload.as_bytes(), later));
        round.into_iter().for_each(requests::cancel);
    }
    Ok(sent.to_string())
}

fn open(rest: &str) -> Result<(u32, &str), String> {
    let (contract, rest) = word(rest);
    let (operation, payload) = word(rest);
    // `contract/provider` names the provider.
    let (contract, provider) = contract.split_once('/').map_or((contract, None), |(c, p)| (c, Some(p)));
    Ok((requests::open(contract, operation, provider).map_err(text)?, payload))
}

/// `take QUEUE one-by-one`, or `take QUEUE N` for this many. The jobs are then in `HEARD`.
fn take(rest: &str) -> Result<String, String> {
    let (queue, how) = word(rest);
    let how = match how {
        "one-by-one" => Taking::OneByOne,
        count => Taking::Next(u32::try_from(number(count)?).unwrap_or(u32::MAX)),
    };
    let queue = queues::open(queue).map_err(text)?;
    shown(queues::take(queue, how))
}

fn spin() -> ! {
    let mut count = 0_u64;
    loop {
        count = black_box(count.wrapping_add(1));
    }
}

fn burn(times: u64) -> u64 {
    (0..times).fold(0, |sum, number| black_box(sum ^ number))
}

#[inline(never)]
fn nest(depth: u64) -> u64 {
    if depth == 0 { 0 } else { black_box(nest(black_box(depth - 1))) + 1 }
}

#[inline(never)]
pub(crate) fn trap() -> ! {
    std::process::abort()
}

/// Calls the host at every depth: `call` with a target, else something cheaper. Its frames are only on the
/// machine's stack, because the stack in linear memory is smaller.
#[expect(unconditional_recursion, reason = "that is what is tried")]
fn recurse(target: &str, depth: u64) -> u64 {
    ask(target);
    recurse(target, depth + 1).rotate_left(3) ^ depth
}

#[inline(never)]
fn ask(target: &str) {
    if target.is_empty() {
        lifecycle::ready();
    } else {
        black_box(call(target).is_ok());
    }
}

fn shown<T: Debug, E: Debug>(result: Result<T, E>) -> Result<String, String> {
    result.map(text).map_err(text)
}

fn said(result: std::io::Result<String>) -> Result<String, String> {
    result.map_err(|error| format!("{:?}", error.kind()))
}

fn done(act: impl FnOnce()) -> Result<String, String> {
    act();
    Ok(String::new())
}
