//! A hook that obeys commands, most of them bad behaviour.
//!
//! Copies in one directory can do different things: `02-sleeper.wasm` obeys `DO_02`, or `DO` if there is no
//! `DO_02`. Without either it succeeds.

#![expect(clippy::print_stdout, reason = "what a hook prints is in the report")]

use std::{
    env,
    fmt::Display,
    fs::{self, File},
    hint::black_box,
    io::{self, Read, Write},
    net::TcpStream,
    path::Path,
    process::ExitCode,
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use test_guests::words::{text, word};
use wasip2::filesystem::{
    preopens,
    types::{NewTimestamp, PathFlags},
};
use weir_sdk::hook;

fn main() -> ExitCode {
    match task().and_then(|task| obey(&task)) {
        Ok(said) => {
            print!("{said}");
            ExitCode::SUCCESS
        }
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}

fn task() -> Result<String, String> {
    let name = env::args().next().ok_or("it has no name")?;
    let name = Path::new(&name).file_stem().ok_or("its name is no file's")?.to_string_lossy();
    let place = name.split('-').next().unwrap_or_default();
    Ok(env::var(format!("DO_{place}")).or_else(|_| env::var("DO")).unwrap_or_else(|_| "ok".to_owned()))
}

fn obey(task: &str) -> Result<String, String> {
    let (task, rest) = word(task);
    match task {
        "ok" => Ok(String::new()),
        "fail" => Err("it fails, as told".to_owned()),
        // Without an end of line, the text is still in a buffer at the exit.
        "exit" => {
            print!("exits with {rest}");
            hook::exit(code(rest)?)
        }
        "std-exit" => {
            print!("exits with {rest}");
            std::process::exit(code(rest)?.into())
        }
        "trap" => trap(),
        "loop" => spin(),
        "stack" => Ok(deep(u64::MAX).to_string()),
        "allocate" => allocate(),
        "flood" => flood(io::stdout()),
        "flood-stderr" => flood(io::stderr()),
        "sleep" => sleep(rest),
        "args" => Ok(lines(env::args())),
        "env" => Ok(variables()),
        "cat" => io::copy(&mut io::stdin(), &mut io::stdout()).map(|_| String::new()).map_err(text),
        "read-stdin-forever" => read_stdin_forever(),
        "count" => Ok(count()),
        "random" => Ok(wasip2::random::random::get_random_u64().to_string()),
        "open" => fs::read(rest).map(|bytes| bytes.len().to_string()).map_err(failed(rest)),
        "write" => {
            let (path, content) = word(rest);
            fs::write(path, content).map(|()| String::new()).map_err(failed(path))
        }
        "await" => wait_for(rest),
        "touch" => touch(rest),
        "list" => list(rest),
        "paths" => Ok(test_guests::paths::outcomes(Path::new(rest))),
        "descriptors" => Err(descriptors(rest)),
        "connect" => TcpStream::connect(rest).map(|_| "connected".to_owned()).map_err(failed(rest)),
        _ => Err(format!("there is no task `{task}`")),
    }
}

fn code(text: &str) -> Result<u8, String> {
    text.parse().map_err(|_| format!("`{text}` is not an exit code"))
}

fn trap() -> ! {
    #[cfg(target_family = "wasm")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_family = "wasm"))]
    std::process::abort();
}

fn spin() -> ! {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

fn deep(depth: u64) -> u64 {
    match black_box(depth) {
        0 => 0,
        depth => black_box(deep(depth - 1)).wrapping_add(depth),
    }
}

fn allocate() -> ! {
    let mut all = Vec::new();
    loop {
        all.push(black_box(vec![1_u8; 64 << 10]));
    }
}

/// Goes on even if writing fails.
fn flood(mut to: impl Write) -> ! {
    loop {
        let _ignored = to.write_all(&[b'x'; 4096]);
    }
}

fn sleep(seconds: &str) -> Result<String, String> {
    let seconds: f64 = seconds.parse().map_err(text)?;
    #[expect(clippy::disallowed_methods, reason = "sleeping is what it is told")]
    std::thread::sleep(Duration::try_from_secs_f64(seconds).map_err(text)?);
    Ok(String::new())
}

/// Goes on even after the end.
fn read_stdin_forever() -> ! {
    let mut buffer = [0; 4096];
    loop {
        let _ignored = black_box(io::stdin().read(&mut buffer));
    }
}

fn variables() -> String {
    let mut variables: Vec<String> = env::vars().map(|(name, value)| format!("{name}={value}")).collect();
    variables.sort_unstable();
    lines(variables)
}

/// 1, if nothing is left of an earlier run.
fn count() -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    (RUNS.fetch_add(1, Ordering::Relaxed) + 1).to_string()
}

/// Waits until there is a file of this name; meanwhile there is one with `.waits` after it.
fn wait_for(path: &str) -> Result<String, String> {
    let waits = format!("{path}.waits");
    fs::write(&waits, "").map_err(failed(&waits))?;
    while !Path::new(path).exists() {
        sleep("0.001")?;
    }
    Ok(String::new())
}

/// Sets the times of a file in the first granted directory.
fn touch(name: &str) -> Result<String, String> {
    let granted = preopens::get_directories();
    let (dir, _) = granted.first().ok_or("it is granted no directory")?;
    let touched = dir.set_times_at(PathFlags::SYMLINK_FOLLOW, name, NewTimestamp::Now, NewTimestamp::Now);
    touched.map(|()| String::new()).map_err(failed(name))
}

fn list(path: &str) -> Result<String, String> {
    let mut names: Vec<String> = fs::read_dir(path)
        .map_err(failed(path))?
        .map(|entry| match entry {
            Ok(entry) => entry.file_name().to_string_lossy().into_owned(),
            Err(error) => format!("error: {error}"),
        })
        .collect();
    names.sort_unstable();
    Ok(lines(names))
}

/// Opens the file until that is refused. Returns how often it succeeded, and the error.
fn descriptors(path: &str) -> String {
    let mut open = Vec::new();
    loop {
        match File::open(path) {
            Ok(file) => open.push(file),
            Err(error) => return format!("{} times, then {error}", open.len()),
        }
    }
}

fn lines(lines: impl IntoIterator<Item = String>) -> String {
    lines.into_iter().map(|line| line + "\n").collect()
}

fn failed<E: Display>(what: &str) -> impl FnOnce(E) -> String + '_ {
    move |error| format!("`{what}`: {error}")
}
