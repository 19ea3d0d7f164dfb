//! Every target passes on the kept findings of the fuzzer, built by the ordinary compiler.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::{fs, path::Path};

/// Gives a target each file of its corpus, in the order of their names.
fn replay(name: &str, target: fn(&[u8])) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(&dir)
        .unwrap_or_else(|error| panic!("no corpus in `{}`: {error}", dir.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!paths.is_empty(), "the corpus in `{}` is empty", dir.display());
    paths.sort();
    for path in paths {
        eprintln!("{}", path.display());
        target(&fs::read(&path).unwrap());
    }
}

#[test]
fn whatever_bytes_an_extensions_file_has_it_is_loaded_or_refused() {
    replay("loader", weir_fuzz_cases::loader);
}

#[test]
fn whatever_a_component_says_of_its_contracts_reads_as_written_or_is_refused() {
    replay("contracts", weir_fuzz_cases::contracts);
}

#[test]
fn whatever_operators_files_hold_they_are_a_configuration_or_refused_with_the_place() {
    replay("toml", weir_fuzz_cases::toml);
}

#[test]
fn whatever_comes_to_the_control_socket_main_answers_and_extensions_serve() {
    replay("control", weir_fuzz_cases::control);
}

#[test]
fn whatever_comes_to_the_peer_socket_main_speaks_frames_and_nothing_is_left_of_the_session() {
    replay("peers", weir_fuzz_cases::peers);
}

#[test]
fn whatever_apps_and_extensions_send_the_gateway_writes_json_and_payloads_come_back() {
    replay("gateway", weir_fuzz_cases::gateway);
}

#[test]
fn whatever_a_guest_calls_in_whatever_order_the_neighbour_serves_and_nothing_is_left_over() {
    replay("channels", weir_fuzz_cases::channels);
}

#[test]
fn whatever_a_module_does_it_stays_within_its_limits_and_the_neighbour_serves() {
    replay("smith", weir_fuzz_cases::smith);
}
