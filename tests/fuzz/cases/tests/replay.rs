//! Every target passes on the kept findings of the fuzzer, built by the ordinary compiler.
//!
//! A corpus is one file of names and bytes. That of `loader` is a folder, since its files are large and binary.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

/// The inputs of a target, each with a name.
type Corpus = &'static [(&'static str, &'static [u8])];

/// What is given each input.
type Target = fn(&[u8]);

/// Each target, but for `loader`, with what is kept of it.
const CORPORA: [(&str, Corpus, Target); 11] = [
    ("channels", include!("../../corpus/channels.rs"), weir_fuzz_cases::channels),
    ("contracts", include!("../../corpus/contracts.rs"), weir_fuzz_cases::contracts),
    ("control", include!("../../corpus/control.rs"), weir_fuzz_cases::control),
    ("exports", include!("../../corpus/exports.rs"), weir_fuzz_cases::exports),
    ("gateway", include!("../../corpus/gateway.rs"), weir_fuzz_cases::gateway),
    ("mount", include!("../../corpus/mount.rs"), weir_fuzz_cases::mount),
    ("packages", include!("../../corpus/packages.rs"), weir_fuzz_cases::packages),
    ("peers", include!("../../corpus/peers.rs"), weir_fuzz_cases::peers),
    ("signatures", include!("../../corpus/signatures.rs"), weir_fuzz_cases::signatures),
    ("smith", include!("../../corpus/smith.rs"), weir_fuzz_cases::smith),
    ("toml", include!("../../corpus/toml.rs"), weir_fuzz_cases::toml),
];

/// The folder of a target, which is the fuzzer's corpus.
fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target)
}

/// The files of a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("no corpus in `{}`: {error}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Gives a target each input that is kept of it.
fn replay(wanted: &str) {
    let (_, kept, target) = CORPORA.into_iter().find(|(name, ..)| *name == wanted).unwrap();
    assert!(!kept.is_empty(), "the corpus of `{wanted}` is empty");
    for (name, input) in kept {
        eprintln!("{name}");
        target(input);
    }
}

#[test]
fn whatever_bytes_an_extensions_file_has_it_is_loaded_or_refused() {
    let paths = files(&folder("loader"));
    assert!(!paths.is_empty(), "the corpus of `loader` is empty");
    for path in paths {
        eprintln!("{}", path.display());
        weir_fuzz_cases::loader(&fs::read(&path).unwrap());
    }
}

#[test]
fn a_package_is_read_as_it_was_written_or_refused_in_words() {
    replay("packages");
}

#[test]
fn a_signature_is_read_as_it_was_written_and_refused_if_it_was_changed() {
    replay("signatures");
}

#[test]
fn whatever_a_component_says_of_its_contracts_reads_as_written_or_is_refused() {
    replay("contracts");
}

#[test]
fn whatever_operators_files_hold_they_are_a_configuration_or_refused_with_the_place() {
    replay("toml");
}

#[test]
fn whatever_comes_to_the_control_socket_main_answers_and_extensions_serve() {
    replay("control");
}

#[test]
fn whatever_comes_to_the_peer_socket_main_speaks_frames_and_nothing_is_left_of_the_session() {
    replay("peers");
}

#[test]
fn whatever_apps_and_extensions_send_the_gateway_writes_json_and_payloads_come_back() {
    replay("gateway");
}

#[test]
fn whatever_json_a_function_is_called_with_it_gets_values_of_its_types_or_is_not_called() {
    replay("exports");
}

#[test]
fn whatever_the_head_of_a_request_is_a_server_gets_one_host_and_no_name_but_the_gateways() {
    replay("mount");
}

#[test]
fn whatever_a_guest_calls_in_whatever_order_the_neighbour_serves_and_nothing_is_left_over() {
    replay("channels");
}

#[test]
fn whatever_a_module_does_it_stays_within_its_limits_and_the_neighbour_serves() {
    replay("smith");
}

#[test]
#[ignore = "writes the folders that the fuzzer begins with"]
fn corpora_to_folders() {
    for (target, kept, _) in CORPORA {
        let folder = folder(target);
        // Fails if it is there: what an earlier run left in it would be kept with the rest.
        fs::create_dir(&folder).unwrap();
        for (name, input) in kept {
            fs::write(folder.join(name), input).unwrap();
        }
    }
}

#[test]
#[ignore = "keeps what is in the fuzzer's folders"]
fn corpora_from_folders() {
    for (target, ..) in CORPORA {
        let folder = folder(target);
        if !folder.is_dir() {
            continue;
        }
        let mut text = "&[\n".to_owned();
        for path in files(&folder) {
            let (name, input) = (path.file_name().unwrap().display(), fs::read(&path).unwrap());
            writeln!(text, "(\"{name}\", b\"{}\"),", input.escape_ascii()).unwrap();
        }
        fs::write(folder.with_extension("rs"), text + "]\n").unwrap();
    }
}
