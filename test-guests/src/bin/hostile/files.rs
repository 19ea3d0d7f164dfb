//! Files, by calls that `std` does not make. A path is `N:PATH`, below the Nth granted directory.

use test_guests::words::{number, word};
use wasip2::{
    cli::environment::{get_arguments, get_environment},
    filesystem::{
        preopens::get_directories,
        types::{Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags},
    },
};

use crate::Outcome;

pub(crate) fn run(command: &str, rest: &str) -> Outcome {
    Some(match command {
        "surroundings" => Ok(surroundings()),
        "file" => file(rest),
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
