//! Hostile and faulty extensions, each with its own guest or crafted component and an exact outcome. Main stays up, the
//! neighbour is served, and one line and one record tell of the failure (`stage.rs`).
//!
//! Tests in `extensions/` are in that binary.
//!
//! | case | tests |
//! | --- | --- |
//! | 1 infinite loop | `processor.rs`: `an_endless_loop_…`, `…_for_an_endless_loop_…`; `extensions/traps.rs` |
//! | 2 loop before the first `receive` | `processor.rs`: `a_start_function_that_loops_…`; `extensions/traps.rs`: `a_loop_before_ready_…` |
//! | 3 loop after stop | `processor.rs`: `a_storm_of_host_calls_…`; `extensions/traps.rs`: `a_loop_after_stop_…` |
//! | 4 loop in `cabi_realloc` | `processor.rs`: `a_loop_in_cabi_realloc_…`, `a_cabi_realloc_that_recurses_…` |
//! | 5 `memory.grow` bomb | `memory.rs`: `growth_beyond_the_cap_…`; `extensions/traps.rs`: `memory_beyond_the_limit_…` |
//! | 6 a hundred memories | `memory.rs`: `the_cap_is_on_the_sum_…` |
//! | 7 tables | `memory.rs`: `tables_grow_…`; `uninterrupted.rs`: `instances_that_fill_one_table_…` |
//! | 8 deep recursion | `processor.rs`: `recursion_of_every_kind_…`; `extensions/traps.rs`: `endless_recursion_…` |
//! | 9 `memory.fill` in a loop | `processor.rs`: `filling_the_whole_memory_…`, `every_bulk_operation_…`; `uninterrupted.rs`: `no_instruction_brings_fuel_back`, `bulk_operations_one_after_the_other_…` |
//! | 10 many under their cap | `admission.rs`; `memory.rs`: `core_instances_are_counted` |
//! | 11 lists outside memory | `messages.rs`: `lists_and_strings_…` |
//! | 12 too large | `messages.rs`: `what_is_over_a_limit_…`, `an_answer_that_is_too_large_…`, `the_text_of_an_error_is_cut_off`; `surroundings.rs`: `a_path_or_write_…`; `extensions/http.rs`: `headers_…`; `../keyvalue/hostile.rs` |
//! | 13 empty messages, 15 one that never receives | `floods.rs`: `a_flood_to_one_that_never_receives_…` |
//! | 14 unknown, oneself, stopped | `messages.rs`: `to_nobody_to_oneself_…` |
//! | 16 `receive` for ever | `messages.rs`: `one_that_waits_for_ever_…` |
//! | 17 endless exchange | `floods.rs`: `an_endless_exchange_of_two_…` |
//! | 18 circles | `messages.rs`: `a_circle_of_three_…`; `extensions/messages.rs`: `a_circle_of_blocking_calls_…`, `two_full_block_topics_…`; `extensions/two_queues.rs`: `two_full_block_queues_…` |
//! | 19 the target dies | `messages.rs`: `…_waits_for_one_that_dies_…`, `…_waits_unread_…`; `extensions/traps.rs`, `batches.rs` |
//! | 20 wrong answers | `messages.rs`: `a_second_answer_…`; `extensions/access.rs`: `another_extensions_request_…` |
//! | 21 a late answer | `messages.rs`: `a_late_answer_…` |
//! | 22 unanswered requests | `floods.rs`: `no_more_than_in_flight_requests_…`; `extensions/messages.rs`: `more_unanswered_requests_…`, `giving_up_on_requests_…` |
//! | 23 trap in start, 24 clean exit in a loop | `lifecycle.rs`: `one_that_traps_…`, `one_that_exits_…` |
//! | 25 trap during stop, 26 never ready | `lifecycle.rs`: `a_trap_while_it_stops_…`, `one_that_is_never_ready_…`; `extensions/traps.rs`: `a_loop_before_ready_…` |
//! | 27 asleep in a host call | `lifecycle.rs`: `one_that_is_asleep_…`; `messages.rs`: `one_that_waits_for_ever_…` |
//! | 28 handles | `lifecycle.rs`: `a_handle_that_is_forged_…`; `pollables.rs`: `pollables_used_wrongly_…` |
//! | 29 thousands of pollables | `lifecycle.rs`: `pollables_without_end_…`; `pollables.rs` |
//! | 30 no component, 31 a core module, 32 the wrong world | `extensions/refused.rs` |
//! | 33 too large | `files.rs`: `a_file_over_its_limit_…` |
//! | 34 made to be slow or huge to compile | `files/compilers.rs`; `../compile_bombs.rs` |
//! | 35 types that nest or multiply | `files.rs`: `types_that_multiply_…` |
//! | 36 compiled elsewhere | `files/signed.rs` |
//! | 37 the wrong thing in the cache, 38 no cache | `files/cached.rs`; a full disk in the tests of `weir` |
//! | 39 no file | `files.rs`: `what_is_no_file_…`; `extensions/refused.rs` |
//! | 40 paths that lead elsewhere | `files.rs`: `what_is_no_file_…`; golden files of the configuration |
//! | 45 floods of output | `output.rs`: `a_flood_of_lines_…`, `a_write_beyond_what_the_stream_permits_…`, `what_the_stream_permits_…` |
//! | 46 escapes | `output.rs`: `whatever_bytes_are_written_…`, `a_long_line_…`; `extensions/output.rs`: `each_line_of_output_…` |
//! | 47 a panic message of 10 MB | `output.rs`: `a_panic_message_…` |
//! | 48 randomness | `output.rs`: `a_gigabyte_of_randomness_…` |
//! | 49 probing | `surroundings.rs`: `one_to_which_…`; `extensions/files.rs`, `network.rs` |
//! | 50 climbing out | `surroundings.rs`: `no_path_climbs_out_…`; `extensions/files.rs`: `nothing_leads_out_…` |
//! | 51 writing where one may read | `surroundings.rs`: `nothing_changes_…`; `extensions/files.rs`: `a_directory_granted_read_only_…` |
//! | 52 shares | `../share.rs` |
//! | 53 pollables | `pollables.rs` |
//! | 54 storms | `storms.rs`, `floods.rs`: `one_that_publishes_to_itself_…`; `uninterrupted.rs` |
//! | 55 contracts that describe too much | `files/contracts.rs` |

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod admission;
mod bombs;
mod crafted;
mod features;
mod files;
mod floods;
mod lifecycle;
mod memory;
mod messages;
mod output;
mod paid;
mod pollables;
mod processor;
mod stage;
mod storms;
#[expect(dead_code, reason = "shared with the tests of extensions")]
#[path = "../extensions/support.rs"]
mod support;
mod surroundings;
mod turns;
mod uninterrupted;
