//! The bindings are checked in, so that an author's build needs no generator. `WEIR_BLESS=1 cargo test -p
//! weir-sdk --test bindings` writes them anew: as the generator does, without indentation, which was two thirds of
//! the file.

use std::{fs, path::Path};

use wit_bindgen_core::{Files, WorldGenerator, wit_parser::Resolve};
use wit_bindgen_rust::{Opts, WithOption};

#[test]
fn bindings_are_what_the_generator_makes_of_the_wit_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(root.join("../../wit")).unwrap();
    let world = resolve.select_world(&[package], Some("imports")).unwrap();

    let poll = ("wasi:io/poll@0.2.12".to_owned(), WithOption::Path("::wasip2::io::poll".to_owned()));
    let options = Opts { generate_all: true, with: vec![poll], ..Opts::default() };
    let mut files = Files::default();
    options.build().generate(&mut resolve, world, &mut files).unwrap();
    let generated = files.iter().map(|(_, text)| String::from_utf8_lossy(text)).collect::<String>();
    let lines = generated.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = "// Generated from `wit/iec.wit`; `tests/bindings.rs` says how.";
    let generated: String = [first].into_iter().chain(lines).flat_map(|line| [line, "\n"]).collect();

    let path = root.join("src/bindings.rs");
    if std::env::var_os("WEIR_BLESS").is_some() {
        fs::write(&path, &generated).unwrap();
    }
    assert!(fs::read_to_string(&path).unwrap() == generated, "`{}` is out of date", path.display());
}
