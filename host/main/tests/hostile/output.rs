//! Output: bounded, cut, escaped, and never under another name.

use std::time::Duration;

use weir_host::logs::{Level, Source};

use super::{
    stage::{Fault, Stage, hostile, hostile_with},
    support::tell,
};

/// Case 45.
#[tokio::test]
async fn a_flood_of_lines_is_kept_to_its_rate_and_the_rest_is_counted() {
    for (to, source) in [("stdout", Source::Stdout), ("stderr", Source::Stderr), ("log", Source::Log)] {
        let stage = Stage::start(vec![hostile_with(|h| h.limits.log_rate = 10)]).await;
        tell(&stage.main, "good", "log before").await.unwrap();
        let began = std::time::Instant::now();
        stage.beside(stage.tell(&format!("lines 50000 {to}"))).await.0.unwrap();
        let most = 100 + 10 * (began.elapsed().as_secs() + 1);
        // Drops since the last report are reported at the end.
        stage.main.control().stop("hostile").await.unwrap();
        let written = stage.written_by("hostile", source);
        let kept = written.len() as u64;
        assert!((100..=most).contains(&kept), "{kept} of at most {most}");
        assert_eq!(written[..100], (0..100).map(|line| format!("line {line}")).collect::<Vec<_>>());
        let mut dropped = 0;
        for line in stage.said_by_main("hostile").iter().filter(|line| line.level == Level::Warn) {
            let number = line.message.strip_prefix("over `log-rate` of 10 lines a second: ").unwrap();
            dropped += number.strip_suffix(" dropped").unwrap().parse::<u64>().unwrap();
        }
        assert_eq!(kept + dropped, 50_000);
        assert_eq!(stage.written_by("good", Source::Log), ["before"]);
        stage.stands().await;
    }
}

/// Case 46; for escapes see `each_line_of_output_carries_the_id_and_no_control_characters`.
#[tokio::test]
async fn whatever_bytes_are_written_no_character_moves_the_cursor_or_turns_text_round() {
    let stage = Stage::start(vec![hostile_with(|h| h.limits.log_rate = 1000)]).await;
    for (bytes, line) in [
        // C1: a one-character control sequence introducer, and a next line.
        ("c29b324a 0a", "\\u{9b}2J"),
        ("c285 0a", "\\u{85}"),
        ("0b 0c 0d 41 0a", "\\u{b}\\u{c}\\rA"),
        ("7f 08 0a", "\\u{7f}\\u{8}"),
        ("e280a8 e280a9 0a", "\\u{2028}\\u{2029}"),
        // Direction overrides, isolates and marks.
        ("e280ae e281a7 d89c 0a", "\\u{202e}\\u{2067}\\u{61c}"),
        ("ff fe 41 0a", "\u{fffd}\u{fffd}A"),
        ("c3 0a", "\u{fffd}"),
        ("00 0a", "\\u{0}"),
        ("5b 6d61696e 5d 0a", "[main]"),
    ] {
        stage.tell(&format!("bytes {bytes}")).await.unwrap();
        assert_eq!(stage.written_by("hostile", Source::Stdout).last().unwrap(), line, "{bytes}");
    }
    let logs = stage.main.control().logs();
    let mut written = logs.iter().filter(|line| line.source != Source::Main);
    assert!(written.all(|line| &*line.extension == "hostile"));
}

#[tokio::test]
async fn a_long_line_is_cut_between_characters() {
    let stage = Stage::start(vec![hostile()]).await;
    // 4095 bytes, then a three-byte character.
    stage.tell(&format!("bytes {} e282ac e282ac 0a", "41".repeat(4095))).await.unwrap();
    let written = stage.written_by("hostile", Source::Stdout);
    assert_eq!(written, [format!("{}…", "A".repeat(4095))]);
}

/// Case 47.
#[tokio::test]
async fn a_panic_message_of_ten_megabytes_is_cut_off() {
    let stage = Stage::start(vec![hostile_with(|h| {
        h.limits.memory = 64 << 20;
        h.limits.fuel_per_message = 100_000_000_000;
        h.limits.cpu_share = weir_host::config::CpuShare::WHOLE;
    })])
    .await;
    let (told, _) = stage.beside(stage.tell("panic 10000000")).await;
    assert_eq!(told, Err("Trapped".to_owned()));
    let cause = "trapped: wasm `unreachable` instruction executed";
    stage.failed("hostile", &Fault::new(cause).asked().within("output::run")).await;
    let written = stage.written_by("hostile", Source::Stderr);
    let message = written.iter().find(|line| line.starts_with("cheese")).unwrap();
    assert_eq!(message.len(), 4096 + '…'.len_utf8());
    assert!(written.iter().map(String::len).sum::<usize>() < 8192, "{}", written.len());
}

/// Case 48.
#[tokio::test]
async fn a_gigabyte_of_randomness_is_a_trap() {
    for command in ["random", "insecure-random"] {
        let stage = Stage::start(vec![hostile()]).await;
        assert_eq!(stage.tell(&format!("{command} 65536")).await.unwrap(), "65536");
        for bytes in [65_537, 1 << 30, u64::MAX] {
            stage.main.control().stop("hostile").await.unwrap();
            stage.main.control().start("hostile").await.unwrap();
            assert_eq!(stage.tell(&format!("{command} {bytes}")).await, Err("Trapped".to_owned()));
            super::support::reached(&stage.main, "hostile", weir_host::control::ExtensionState::Failed).await;
            let record = stage.status("hostile").failures.pop().unwrap();
            assert_eq!(
                record.cause,
                format!("trapped: asked for {bytes} of `random-bytes`, but 65536 are allowed")
            );
            let hit = record.limit.unwrap();
            assert_eq!((hit.name.as_str(), hit.used, hit.allowed), ("random-bytes", bytes, 65_536));
        }
        stage.stands().await;
    }
}

/// Case 45: in pieces that no stream permits.
#[tokio::test]
async fn a_write_beyond_what_the_stream_permits_is_a_trap_that_takes_no_memory() {
    let huge = u64::MAX;
    for (command, cause) in [
        (format!("write-zeroes {huge}"), "trapped: cannot write more zeroes than `check_write` allows"),
        (
            format!("block-zeroes {huge}"),
            "trapped: Buffer too large for blocking-write-zeroes-and-flush (expected at most 4096)",
        ),
        ("write 1025".to_owned(), "trapped: wrote more than was permitted"),
        ("write 1000000".to_owned(), "trapped: wrote more than was permitted"),
        (
            "block-write 4097".to_owned(),
            "trapped: Buffer too large for blocking-write-and-flush (expected at most 4096)",
        ),
    ] {
        let stage = Stage::start(vec![hostile()]).await;
        assert_eq!(stage.tell(&command).await, Err("Trapped".to_owned()), "{command}");
        stage.failed("hostile", &Fault::new(cause).asked()).await;
    }
}

/// Case 45: the permitted rest.
#[tokio::test]
async fn what_the_stream_permits_is_written_and_there_is_nothing_to_read() {
    let stage = Stage::start(vec![hostile()]).await;
    assert_eq!(stage.tell("write 1024").await.unwrap(), "()");
    assert_eq!(stage.tell("block-write 4096").await.unwrap(), "()");
    assert_eq!(stage.tell("block-zeroes 4096").await.unwrap(), "()");
    assert_eq!(stage.tell(&format!("splice {}", u64::MAX)).await, Err("StreamError::Closed".to_owned()));
    stage.main.control().stop("hostile").await.unwrap();
    let written = stage.written_by("hostile", Source::Stdout);
    assert_eq!(written, [format!("{}…", "x".repeat(4096))]);
    // It stopped in time: output did not hold it up.
    assert!(stage.status("hostile").cpu < Duration::from_secs(10));
}
