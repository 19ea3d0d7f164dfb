//! One cheap call, without end: `storm NAME`, until the fuel is used up.

use std::hint::black_box;

use test_guests::PATIENT;
use wasip2::{
    cli::{environment, stdout::get_stdout, terminal_stdout::get_terminal_stdout},
    clocks::{monotonic_clock, wall_clock},
    filesystem::preopens::get_directories,
    io::poll::poll,
    random::{
        insecure::get_insecure_random_bytes,
        insecure_seed::insecure_seed,
        random::{get_random_bytes, get_random_u64},
    },
    sockets::{
        instance_network::instance_network, ip_name_lookup::resolve_addresses, network::IpAddressFamily,
        tcp_create_socket::create_tcp_socket,
    },
};
use weir_sdk::raw::{channel, config, events, lifecycle, log, peers, queues, requests, types::HandlerError};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str) -> Outcome {
    (command == "storm").then(|| storm(rest))
}

fn storm(name: &str) -> Result<String, String> {
    match name {
        "nothing" => endless(|| 0),

        "receive" => endless(|| channel::receive_within(0)),
        "receive-batch" => endless(|| channel::receive_batch(1024, channel::BatchOrder::InOrder, Some(0))),
        "respond" => endless(|| channel::respond(u64::MAX, Ok(b""))),
        "respond-error" => {
            let error = HandlerError { code: String::new(), message: "x".repeat(1 << 20) };
            endless(|| channel::respond(u64::MAX, Err(&error)))
        }
        "serve" => {
            let names = vec![String::new(); 40_000];
            endless(|| channel::serve("hostile@1", &names))
        }
        "inbox-pollable" => endless(channel::subscribe_inbox),
        "open" => {
            for number in 0..1024 {
                requests::open("down@1", &format!("operation-{number}"), None)
                    .map_err(|e| format!("{e:?}"))?;
            }
            endless(|| requests::open("down@1", "operation-1023", None))
        }
        "open-unknown" => endless(|| requests::open("nobody@1", "x", None)),
        "cancel" => endless(|| requests::cancel(u64::MAX)),
        "call-itself" => {
            let target = requests::open("hostile@1", "run", None).map_err(|e| format!("{e:?}"))?;
            endless(|| requests::call(target, b"", PATIENT))
        }
        "send-itself" => {
            let target = requests::open("hostile@1", "run", None).map_err(|e| format!("{e:?}"))?;
            endless(|| requests::send(target, b"", PATIENT))
        }
        "subscribe" => endless(|| events::subscribe("own.>").and_then(events::unsubscribe)),
        "publish-itself" => {
            events::subscribe("own.topic").map_err(|e| format!("{e:?}"))?;
            endless(|| events::publish("own.topic", b"", PATIENT))
        }
        "publish-patterns" => {
            for number in 0..200 {
                events::subscribe(&format!("own.*.{number}")).map_err(|e| format!("{e:?}"))?;
            }
            endless(|| events::publish("own.x.300", b"", PATIENT))
        }
        "done-all" => {
            let jobs = [u64::MAX; 1024];
            endless(|| queues::done_all(&jobs))
        }
        "done-all-too-many" => {
            let jobs = vec![u64::MAX; 100_000];
            endless(|| queues::done_all(&jobs))
        }
        "ready" => endless(lifecycle::ready),
        "interrupted" => endless(|| {
            lifecycle::interrupted("again");
            lifecycle::ready();
        }),
        "fault" => {
            let reason = "x".repeat(100_000);
            endless(|| lifecycle::error(&reason))
        }
        "own-name" => endless(peers::own_name),
        "name-of" => endless(|| peers::name_of(0)),
        "config" => endless(config::get_all),

        "log" => endless(|| log::write(log::Level::Info, "again", &[])),
        "log-fields" => {
            let fields = vec![log::Field { name: String::new(), value: String::new() }; 20_000];
            endless(|| log::write(log::Level::Info, "again", &fields))
        }
        "log-controls" => {
            let controls = "\x07".repeat(100_000);
            endless(|| log::write(log::Level::Info, &controls, &[]))
        }
        "stdout" => endless(|| println!("again")),
        "check-write" => {
            let stdout = get_stdout();
            endless(|| stdout.check_write())
        }
        "write-nothing" => {
            let stdout = get_stdout();
            endless(|| stdout.write(b""))
        }
        "stdout-handles" => endless(get_stdout),
        "terminal" => endless(get_terminal_stdout),

        "clock" => endless(monotonic_clock::now),
        "wall-clock" => endless(wall_clock::now),
        "timers" => endless(|| monotonic_clock::subscribe_duration(0)),
        "ready-timer" => {
            let timer = monotonic_clock::subscribe_duration(0);
            endless(|| timer.ready())
        }
        "poll" => {
            let timers: Vec<_> = (0..256).map(|_| monotonic_clock::subscribe_duration(0)).collect();
            let all: Vec<_> = timers.iter().collect();
            endless(|| poll(&all))
        }
        "environment" => endless(environment::get_environment),
        "arguments" => endless(environment::get_arguments),
        "directories" => endless(get_directories),
        "random" => endless(|| get_random_bytes(4096)),
        "insecure-random" => endless(|| get_insecure_random_bytes(4096)),
        "random-numbers" => endless(get_random_u64),
        "insecure-seed" => endless(insecure_seed),
        "tcp" => endless(|| create_tcp_socket(IpAddressFamily::Ipv4)),
        "resolve" => {
            let network = instance_network();
            endless(|| resolve_addresses(&network, "localhost"))
        }
        _ => Err(format!("unknown storm `{name}`")),
    }
}

fn endless<T>(mut act: impl FnMut() -> T) -> ! {
    loop {
        black_box(act());
    }
}
