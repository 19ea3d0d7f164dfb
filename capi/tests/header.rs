//! The header is made of the sources: a difference fails. `WEIR_HEADER=write` writes it.

use std::{env, fs, path::Path};

/// In the order of the header. Each is a reader's next question.
const SOURCES: [&str; 15] = [
    "c", "buffer", "error", "log", "config", "builder", "running", "call", "request", "topics", "queue",
    "session", "control", "events", "hooks",
];

#[test]
fn each_function_is_there_for_cpp() {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let [c, cpp] = ["weir.h", "weir.hpp"].map(|name| fs::read_to_string(include.join(name)).unwrap());
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let functions =
        c.lines().filter(|line| !line.starts_with([' ', '/', '}']) && !line.starts_with("typedef"));
    let functions: Vec<&str> = functions
        .filter_map(|line| line.split_once('(')?.0.rsplit(|c| !is_name(c)).next())
        .filter(|name| name.starts_with("weir_"))
        .collect();
    assert!(functions.len() > 70, "{functions:?}");
    let is_used = |name: &&str| cpp.split(|c| !is_name(c)).any(|word| word == *name);
    let missing: Vec<_> = functions.iter().filter(|name| !is_used(name)).collect();
    assert!(missing.is_empty(), "`weir.hpp` uses none of {missing:?}");
}

#[test]
fn the_header_is_made_of_the_sources() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in SOURCES {
        builder = builder.with_src(root.join(format!("src/{source}.rs")));
    }
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    let (path, made) = (root.join("include/weir.h"), String::from_utf8(made).unwrap());
    if env::var_os("WEIR_HEADER").is_some_and(|value| value == "write") {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    let differs = kept.lines().zip(made.lines()).position(|(kept, made)| kept != made);
    assert!(
        kept == made,
        "`include/weir.h` is not of these sources from line {} on: run `WEIR_HEADER=write cargo test --workspace --test \
         header`",
        differs.unwrap_or_else(|| kept.lines().count().min(made.lines().count())) + 1
    );
}
