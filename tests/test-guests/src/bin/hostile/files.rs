//! Files, by calls that `std` does not make. A path is `N:PATH`, below the Nth granted directory.

use test_guests::words::{count, number, text, word};
use wasip2::{
    cli::environment::{get_arguments, get_environment},
    filesystem::{
        preopens::get_directories,
        types::{Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags},
    },
    io::streams::StreamError,
};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str) -> Outcome {
    Some(match command {
        "surroundings" => Ok(surroundings()),
        "file" => file(rest),
        "long-paths" => count(rest).map(long_paths),
        "ask-again" => ask_again(rest),
        "large-write" => large_write(rest),
        "permit" => permit(rest),
        "stream-error" => stream_error(rest),
        _ => return None,
    })
}

/// Everything that it finds by itself.
fn surroundings() -> String {
    let directories: Vec<String> = get_directories().into_iter().map(|(_, name)| name).collect();
    format!("{:?} {:?} {directories:?}", get_arguments(), get_environment())
}

/// `file OPERATION PATH [PATH]`: the result, or the name of the error.
fn file(rest: &str) -> Result<String, String> {
    let granted: Vec<Descriptor> = get_directories().into_iter().map(|(descriptor, _)| descriptor).collect();
    let (operation, rest) = word(rest);
    let (first, second) = word(rest);
    let (dir, path) = place(&granted, first)?;
    let done = match operation {
        "read" => return read(dir, path),
        "create" => dir.open_at(FOLLOW, path, OpenFlags::CREATE, DescriptorFlags::WRITE).map(drop),
        "truncate" => dir.open_at(FOLLOW, path, OpenFlags::TRUNCATE, DescriptorFlags::WRITE).map(drop),
        "overwrite" => dir
            .open_at(FOLLOW, path, OpenFlags::empty(), DescriptorFlags::WRITE)
            .and_then(|file| file.write(b"overwritten", 0))
            .map(drop),
        "make-dir-in" => dir
            .open_at(FOLLOW, path, OpenFlags::DIRECTORY, DescriptorFlags::MUTATE_DIRECTORY)
            .and_then(|dir| dir.create_directory_at("new")),
        "set-size" => open(dir, path).and_then(|file| file.set_size(0)),
        "write-read-only" => open(dir, path).and_then(|file| file.write(b"overwritten", 0)).map(drop),
        "append-read-only" => open(dir, path).and_then(|file| file.append_via_stream()).map(drop),
        "set-times" => open(dir, path).and_then(|file| file.set_times(NewTimestamp::Now, NewTimestamp::Now)),
        "set-times-at" => dir.set_times_at(FOLLOW, path, NewTimestamp::Now, NewTimestamp::Now),
        "make-dir" => dir.create_directory_at(path),
        "remove-dir" => dir.remove_directory_at(path),
        "unlink" => dir.unlink_file_at(path),
        "list" => dir
            .open_at(FOLLOW, path, OpenFlags::DIRECTORY, DescriptorFlags::READ)
            .and_then(|dir| dir.read_directory())
            .map(drop),
        // The link may lead anywhere.
        "symlink" => dir.symlink_at(second, path),
        "rename" | "link" => {
            let (other, new) = place(&granted, second)?;
            if operation == "link" {
                dir.link_at(PathFlags::empty(), path, other, new)
            } else {
                dir.rename_at(path, other, new)
            }
        }
        _ => return Err(format!("unknown operation `{operation}`")),
    };
    done.map(|()| "done".to_owned()).map_err(name)
}

/// What comes of paths of so many bytes in the first directory.
fn long_paths(bytes: usize) -> String {
    let Some((dir, _)) = get_directories().into_iter().next() else { return "no directory".to_owned() };
    let long = "x".repeat(bytes);
    let found = [
        dir.open_at(FOLLOW, &long, OpenFlags::empty(), DescriptorFlags::READ).map(drop),
        dir.stat_at(FOLLOW, &long).map(drop),
        dir.metadata_hash_at(FOLLOW, &long).map(drop),
        dir.readlink_at(&long).map(drop),
        dir.set_times_at(FOLLOW, &long, NewTimestamp::Now, NewTimestamp::Now),
        dir.create_directory_at(&long),
        dir.remove_directory_at(&long),
        dir.unlink_file_at(&long),
        dir.symlink_at(&long, "link"),
        dir.symlink_at("target", &long),
        dir.rename_at(&long, &dir, "new"),
        dir.rename_at("old", &dir, &long),
        dir.link_at(PathFlags::empty(), &long, &dir, "new"),
        dir.link_at(PathFlags::empty(), "old", &dir, &long),
    ];
    found.map(|found| found.err().map_or("done".to_owned(), name)).join(" ")
}

/// `ask-again TIMES BYTES`: asks for a path of so many bytes in the first directory. What came of it last.
fn ask_again(rest: &str) -> Result<String, String> {
    let (times, bytes) = word(rest);
    let (dir, _) = get_directories().into_iter().next().ok_or("no directory")?;
    let (times, long) = (number(times)?, "x".repeat(count(bytes)?));
    let mut last = None;
    for _ in 0..times {
        last = dir.stat_at(FOLLOW, &long).err();
    }
    Ok(last.map_or_else(|| "done".to_owned(), name))
}

/// `large-write PATH BYTES`: how many are written, or the name of the error.
fn large_write(rest: &str) -> Result<String, String> {
    let (file, bytes) = written(rest)?;
    file.write(&vec![b'x'; count(bytes)?], 0).map(|written| written.to_string()).map_err(name)
}

/// `permit PATH`: how many bytes a stream of a file takes, and that it takes them.
fn permit(rest: &str) -> Result<String, String> {
    let stream = written(rest)?.0.write_via_stream(0).map_err(name)?;
    let permit = stream.check_write().map_err(text)?;
    stream.write(&vec![b'x'; usize::try_from(permit).unwrap_or_default()]).map_err(text)?;
    stream.blocking_flush().map_err(text)?;
    Ok(permit.to_string())
}

/// `stream-error PATH`: writes until there is no room. Returns what the error says of itself.
fn stream_error(rest: &str) -> Result<String, String> {
    let stream = written(rest)?.0.write_via_stream(0).map_err(name)?;
    loop {
        match stream.blocking_write_and_flush(&[b'x'; 4096]) {
            Ok(()) => {}
            Err(StreamError::LastOperationFailed(error)) => return Ok(error.to_debug_string()),
            Err(StreamError::Closed) => return Err("closed".to_owned()),
        }
    }
}

fn written(rest: &str) -> Result<(Descriptor, &str), String> {
    let granted: Vec<Descriptor> = get_directories().into_iter().map(|(descriptor, _)| descriptor).collect();
    let (first, rest) = word(rest);
    let (dir, path) = place(&granted, first)?;
    let file = dir.open_at(FOLLOW, path, OpenFlags::CREATE, DescriptorFlags::WRITE).map_err(name)?;
    Ok((file, rest))
}

const FOLLOW: PathFlags = PathFlags::SYMLINK_FOLLOW;

fn read(dir: &Descriptor, path: &str) -> Result<String, String> {
    let (bytes, _) = open(dir, path).and_then(|file| file.read(4096, 0)).map_err(name)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn open(dir: &Descriptor, path: &str) -> Result<Descriptor, ErrorCode> {
    dir.open_at(FOLLOW, path, OpenFlags::empty(), DescriptorFlags::READ)
}

fn place<'a>(granted: &'a [Descriptor], text: &'a str) -> Result<(&'a Descriptor, &'a str), String> {
    let (dir, path) = text.split_once(':').ok_or_else(|| format!("`{text}` names no directory"))?;
    let index = usize::try_from(number(dir)?).unwrap_or(usize::MAX);
    Ok((granted.get(index).ok_or_else(|| format!("{} directories were granted", granted.len()))?, path))
}

fn name(error: ErrorCode) -> String {
    error.name().to_owned()
}
