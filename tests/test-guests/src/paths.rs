//! What paths mean to the functions that take them, natively or for a guest: the same outcomes are expected of both.

use std::{fmt::Write as _, fs, io, path::Path};

/// Paths in a directory that [`outcomes`] looks at, with slashes and dots at their ends.
const PATHS: [&str; 34] = [
    "l",
    "l/",
    "l//",
    "l/.",
    "l/./",
    "./l",
    "./l/",
    "l/..",
    "l/../f",
    "l/inner",
    "l/inner/",
    "d",
    "d/",
    "d/.",
    "d/l",
    "d/l/",
    "f",
    "f/",
    "f//",
    "f/.",
    "lf",
    "lf/",
    "lf/.",
    "dangling",
    "dangling/",
    "dangling/.",
    "loop",
    "loop/",
    "none",
    "none/",
    "none/.",
    ".",
    "./",
    "",
];

/// The outcome of each function for each path in a directory, one in a line. The directory has `d` with `inner` and the
/// symlink `l`, `f`, empty directories `e1` to `e9`, and the symlinks `l` to `d`, `le` to `e9`, `lf` to `f`, `dangling`
/// and `loop`.
pub fn outcomes(root: &Path) -> String {
    let mut all = String::new();
    // Not with `join`, which would tidy it up.
    let at = |path: &str| format!("{}/{path}", root.display());
    let mut tell = |what: &str, outcome: String| {
        // Writing to a string does not fail.
        let _written = writeln!(all, "{what}: {outcome}");
    };
    for path in PATHS {
        tell(&format!("lstat {path}"), kind(fs::symlink_metadata(at(path))));
        tell(&format!("stat {path}"), kind(fs::metadata(at(path))));
        tell(&format!("open {path}"), said(fs::File::open(at(path))));
        tell(&format!("list {path}"), said(fs::read_dir(at(path))));
        tell(&format!("readlink {path}"), said(fs::read_link(at(path))));
    }
    for path in ["d/..", "d/../", "l/..", "l/../", "f/..", "none/..", "none/../", "e1/../.", ".", "./"] {
        tell(&format!("rmdir {path}"), said(fs::remove_dir(at(path))));
        tell(&format!("unlink {path}"), said(fs::remove_file(at(path))));
        tell(&format!("rename {path}"), said(fs::rename(at(path), at("r"))));
        tell(&format!("rename f {path}"), said(fs::rename(at("f"), at(path))));
    }
    for path in ["l/", "f/", "lf/", "dangling/", "d/", "none/", "d/.", "l/.", "lf/.", "dangling/.", "l/./"] {
        tell(&format!("unlink {path}"), said(fs::remove_file(at(path))));
        tell(&format!("link f {path}"), said(fs::hard_link(at("f"), at(path))));
        tell(&format!("link none {path}"), said(fs::hard_link(at("none"), at(path))));
        tell(&format!("mkdir {path}"), said(fs::create_dir(at(path))));
        tell(&format!("symlink {path}"), said(symlink(&at(path))));
        tell(&format!("create {path}"), said(fs::File::create(at(path))));
        tell(&format!("rename f {path}"), said(fs::rename(at("f"), at(path))));
    }
    for path in ["f/", "lf/", "none/", "dangling/", "d/", "l/"] {
        tell(&format!("link {path}"), said(fs::hard_link(at(path), at("h"))));
    }
    for path in ["f/", "lf/", "none/", "dangling/", "l/", "d/.", "e1/."] {
        tell(&format!("rename {path}"), said(fs::rename(at(path), at("r"))));
    }
    for path in [
        "f/",
        "lf/",
        "none/",
        "none/.",
        "dangling/",
        "l/",
        "le/",
        "d/",
        "e1/.",
        "e1/./",
        "le/.",
        "e1/",
        "e2//",
        "e3",
        "./e4/",
    ] {
        tell(&format!("rmdir {path}"), said(fs::remove_dir(at(path))));
    }
    tell("rename e5/ r5/", said(fs::rename(at("e5/"), at("r5/"))));
    tell("rename e6 r6/", said(fs::rename(at("e6"), at("r6/"))));
    tell("mkdir m/", said(fs::create_dir(at("m/"))));
    tell("rmdir m/", said(fs::remove_dir(at("m/"))));
    let names = fs::read_dir(root).map(|entries| {
        let mut names: Vec<_> = entries
            .map(|entry| {
                entry
                    .map(|entry| entry.file_name().to_string_lossy().into_owned())
                    .map_err(|error| error.kind())
            })
            .collect();
        names.sort();
        names
    });
    tell("all", format!("{names:?}"));
    all
}

/// Makes what [`outcomes`] looks at, in an empty directory.
///
/// # Errors
///
/// What the file system says.
#[cfg(not(target_family = "wasm"))]
pub fn make(root: &Path) -> io::Result<()> {
    fs::create_dir(root.join("d"))?;
    for number in 1..=9 {
        fs::create_dir(root.join(format!("e{number}")))?;
    }
    fs::write(root.join("f"), "f")?;
    fs::write(root.join("d/inner"), "inner")?;
    for (name, to) in
        [("l", "d"), ("le", "e9"), ("lf", "f"), ("dangling", "nowhere"), ("loop", "loop"), ("d/l", "../e8")]
    {
        std::os::unix::fs::symlink(to, root.join(name))?;
    }
    Ok(())
}

fn said<T>(outcome: io::Result<T>) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        // The standard library has no kind for it on WASI.
        Err(error) if error.raw_os_error() == Some(NOT_EMPTY) => "DirectoryNotEmpty".to_owned(),
        Err(error) => format!("{:?}", error.kind()),
    }
}

#[cfg(target_family = "wasm")]
const NOT_EMPTY: i32 = 55;
#[cfg(not(target_family = "wasm"))]
const NOT_EMPTY: i32 = rustix::io::Errno::NOTEMPTY.raw_os_error();

fn kind(metadata: io::Result<fs::Metadata>) -> String {
    match metadata {
        Ok(metadata) if metadata.is_symlink() => "symlink".to_owned(),
        Ok(metadata) if metadata.is_dir() => "directory".to_owned(),
        Ok(_) => "file".to_owned(),
        failed => said(failed),
    }
}

#[cfg(not(target_family = "wasm"))]
fn symlink(path: &str) -> io::Result<()> {
    std::os::unix::fs::symlink("f", path)
}

/// In the first granted directory.
#[cfg(target_family = "wasm")]
fn symlink(path: &str) -> io::Result<()> {
    use wasip2::filesystem::{preopens, types::ErrorCode};

    let granted = preopens::get_directories();
    let (dir, name) = granted.first().ok_or(io::ErrorKind::NotFound)?;
    let path = path.strip_prefix(&format!("{name}/")).ok_or(io::ErrorKind::NotFound)?;
    dir.symlink_at("f", path).map_err(|code| {
        io::Error::from(match code {
            ErrorCode::NoEntry => io::ErrorKind::NotFound,
            ErrorCode::Exist => io::ErrorKind::AlreadyExists,
            ErrorCode::NotDirectory => io::ErrorKind::NotADirectory,
            _ => io::ErrorKind::Other,
        })
    })
}
