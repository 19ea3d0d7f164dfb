//! The conformance guest in Rust: the reference for those in other languages. `tests/conformance/README.md` specifies it.

mod contract;
mod outcome;

use std::{
    cell::RefCell,
    collections::BTreeSet,
    env,
    fmt::Display,
    fs,
    pin::pin,
    process::ExitCode,
    sync::atomic::{AtomicU8, Ordering},
    time::Duration,
};

use futures_util::future::{Either, select};
use weir_sdk::{CallOptions, Context, Contract, Dir, Error, Event, Extension, Queue, Topic, log};

use crate::{
    contract::*,
    outcome::{outcome, text, words},
};

const OTHER: Contract = Contract::new("other@1");
const NOBODY: Contract = Contract::new("nobody@1");

weir_sdk::manifest! {
    id: "conformance",
    fulfills: &[CONFORMANCE],
    requires: &[TESTER],
    wants: &[OTHER, NOBODY],
    publishes: &["conformance.out.>"],
    subscribes: &["conformance.in.>", NUMBERS.pattern(), "conformance.more.>"],
    puts: &["conformance-out"],
    takes: &[JOBS.name(), "conformance-more"],
    dirs: &[Dir::read_write("/data")],
    env: &["CONFORMANCE"],
}

type Answer = Result<Vec<u8>, Error>;

fn main() -> ExitCode {
    Extension::new(MANIFEST, ())
        .on(ECHO, async |(), _, bytes| Ok(bytes))
        .on(LARGE, async |(), _, bytes| Ok(vec![b'x'; number(&text(bytes))?]))
        .on(ADD, add)
        .on(RELAY, relay)
        .on(FAIL, fail)
        .on(BREAK, async |(), _, _| fail_unexpectedly())
        .on(SPIN, async |(), _, _| spin())
        .on(RECURSE, async |(), _, bytes| recurse(number(&text(bytes))?))
        .on(CALL, async |(), ctx, bytes| outcome(call(ctx, &text(bytes)).await))
        .on(SEND, send)
        .on(CANCEL, cancel)
        .on(PUBLISH, publish)
        .on(PUBLISH_TO, publish_to)
        .on(SUBSCRIBE, async |(), ctx, bytes| outcome(ctx.subscribe(&text(bytes)).map(empty)))
        .on(UNSUBSCRIBE, async |(), ctx, bytes| outcome(ctx.unsubscribe(&text(bytes)).map(empty)))
        .on(PUT, put)
        .on(TAKE, take)
        .on(SLEEP, sleep)
        .on(CONTEXT, context)
        .on(INTERRUPT, interrupt)
        .on(LOG, write_log)
        .on(CONFIG, async |(), ctx, bytes| Ok(value(ctx.config(&text(bytes))?)))
        .on(ENV, async |(), _, bytes| Ok(value(env::var(text(bytes)).ok())))
        .on(READ, async |(), _, bytes| outcome(fs::read_to_string(text(bytes)).map_err(Error::from)))
        .on(WRITE, write)
        .on_event_bytes("conformance.in.>", hear)
        .on_any_event(hear)
        .on_event(NUMBERS, async |(), ctx, event| add(&(), ctx, event.payload).await.map(drop))
        .on_job(JOBS, work)
        .on_start(start)
        .on_stop(async |(), ctx: &Context| ctx.publish_bytes("conformance.out.stopped", b"bye").map(drop))
        .run()
}

async fn start((): &(), ctx: &Context) -> Result<(), Error> {
    if ctx.config("start")?.as_deref() == Some("fail") {
        return Err(Error::failed("asked to fail"));
    }
    log::info("conformance is ready", &[("language", &"Rust")]);
    Ok(())
}

async fn add((): &(), ctx: &Context, Numbers { left, right }: Numbers) -> Result<Sum, Error> {
    if left > 1_000_000 {
        return Err(Error::handler("overflow", "`left` is over 1,000,000"));
    }
    let sum = Sum { sum: left.saturating_add(right) };
    ctx.publish(SUMS, &sum)?;
    Ok(sum)
}

async fn relay((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [left, right] = words(&line)?;
    let numbers = Numbers { left: number(left)?, right: number(right)? };
    outcome(ctx.call(TESTER_ADD, &numbers).await.map(|Sum { sum }| sum))
}

async fn fail((): &(), _: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [code, message] = words(&line)?;
    Err(Error::handler(code, message))
}

#[inline(never)]
fn fail_unexpectedly() -> Answer {
    panic!("out of cheese");
}

fn spin() -> Answer {
    loop {
        std::hint::black_box(());
    }
}

static TABLE: [AtomicU8; 4096] = [const { AtomicU8::new(7) }; 4096];

fn recurse(levels: usize) -> Answer {
    down(levels);
    let is_as_it_was = TABLE.iter().all(|byte| byte.load(Ordering::Relaxed) == 7);
    Ok(if is_as_it_was { "ok" } else { "overwritten" }.into())
}

#[inline(never)]
fn down(levels: usize) -> usize {
    let frame = std::hint::black_box([levels; 64]);
    levels.checked_sub(1).map_or(0, |fewer| down(fewer).wrapping_add(frame.into_iter().sum()))
}

async fn call(ctx: &Context, line: &str) -> Result<String, Error> {
    let [contract, operation, provider, ms, payload] = words(line)?;
    let contract = Contract::new(constant(contract));
    let operation = contract.bytes(constant(operation));
    let mut options = CallOptions::new();
    if provider != "-" {
        options = options.provider(provider);
    }
    if ms != "0" {
        options = options.timeout(millis(ms)?);
    }
    Ok(text(ctx.call_with(operation, &payload.into(), options).await?))
}

async fn send((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    let own = ctx.clone();
    ctx.spawn(async move {
        let answer = outcome(call(&own, &text(bytes)).await).unwrap_or_default();
        if let Err(error) = own.publish_bytes("conformance.out.response", &answer) {
            log::error("the response is not told", &[("error", &error)]);
        }
    })
    .detach();
    outcome(Ok(""))
}

async fn cancel((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    match select(pin!(call(ctx, &line)), pin!(ctx.sleep(Duration::from_millis(50)))).await {
        Either::Left((answer, _)) => outcome(answer),
        Either::Right(_) => outcome(Ok("")),
    }
}

async fn publish((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [topic, payload] = words(&line)?;
    let receipt = ctx.publish_bytes(topic, payload.as_bytes());
    outcome(receipt.map(|r| format!("{} {} {}", r.delivered, r.shed, r.refused)))
}

async fn publish_to((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [extension, topic, payload] = words(&line)?;
    let receipt = ctx.publish_to(extension, Topic::bytes(constant(topic)), &payload.into());
    outcome(receipt.map(|r| format!("{} {} {}", r.delivered, r.shed, r.refused)))
}

async fn hear((): &(), ctx: &Context, event: Event<Vec<u8>>) -> Result<(), Error> {
    let Event { topic, sequence, lost, retained, payload } = event;
    let kind = if retained { "retained" } else { "new" };
    let sender = ctx.sender().unwrap_or_default();
    let line = format!("{topic} {sequence} {lost} {kind} {sender} {}", text(payload));
    ctx.publish_bytes("conformance.out.heard", line.as_bytes()).map(drop)
}

async fn put((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [queue, ms, payload] = words(&line)?;
    let context = if ms == "0" { ctx.clone() } else { ctx.within(millis(ms)?) };
    outcome(context.put(Queue::bytes(constant(queue)), &payload.into()).map(empty))
}

async fn take((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [queue, ms] = words(&line)?;
    let queue = Queue::bytes(constant(queue));
    outcome(async { finish(ctx.within(millis(ms)?).take(queue).await?) }.await)
}

fn finish(mut job: weir_sdk::Job<Vec<u8>>) -> Result<String, Error> {
    let payload = std::mem::take(&mut job.payload);
    job.done()?;
    Ok(text(payload))
}

async fn work((): &(), ctx: &Context, bytes: Vec<u8>) -> Result<(), Error> {
    match &*bytes {
        b"fail" => return Err(Error::failed("asked to fail")),
        b"die" => std::process::exit(1),
        b"ready" => ctx.ready(),
        _ => drop(ctx.publish_bytes("conformance.out.worked", &bytes)?),
    }
    Ok(())
}

async fn sleep((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    ctx.sleep(millis(&text(bytes.clone()))?).await;
    ctx.publish_bytes("conformance.out.slept", &bytes)?;
    Ok(Vec::new())
}

async fn context((): &(), ctx: &Context, _: Vec<u8>) -> Answer {
    let (sender, remaining) = (ctx.sender().unwrap_or_default(), ctx.remaining().unwrap_or_default());
    Ok(format!("{} {sender} {}", ctx.own_name(), remaining.as_millis()).into())
}

async fn interrupt((): &(), ctx: &Context, bytes: Vec<u8>) -> Answer {
    ctx.interrupted(&text(bytes));
    outcome(Ok(""))
}

async fn write_log((): &(), _: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [level, message] = words(&line)?;
    let log = match level {
        "trace" => log::trace,
        "debug" => log::debug,
        "info" => log::info,
        "warn" => log::warn,
        _ => log::error,
    };
    log(message, &[("from", &"conformance")]);
    outcome(Ok(""))
}

async fn write((): &(), _: &Context, bytes: Vec<u8>) -> Answer {
    let line = text(bytes);
    let [path, content] = words(&line)?;
    outcome(fs::write(path, content).map(empty).map_err(Error::from))
}

/// Names are constants as a rule, and are never freed. Each of these is kept once, however often it comes.
fn constant(name: &str) -> &'static str {
    thread_local! {
        static NAMES: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
    }
    NAMES.with_borrow_mut(|names| {
        if let Some(known) = names.get(name) {
            return *known;
        }
        let name: &'static str = name.to_owned().leak();
        names.insert(name);
        name
    })
}

fn value(value: Option<String>) -> Vec<u8> {
    value.map_or_else(|| "none".to_owned(), |value| format!("ok {value}")).into()
}

fn empty<T>(_: T) -> &'static str {
    ""
}

fn millis(word: &str) -> Result<Duration, Error> {
    number(word).map(Duration::from_millis)
}

fn number<T: std::str::FromStr<Err: Display>>(word: &str) -> Result<T, Error> {
    word.parse().map_err(Error::invalid_argument)
}
