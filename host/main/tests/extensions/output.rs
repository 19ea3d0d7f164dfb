//! Output becomes log lines under the extension's own id, and cannot forge others.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use weir_host::logs::{Level, NextLine, Source};

use super::support::{puppet, start, tell};

#[tokio::test]
async fn each_line_of_output_carries_the_id_and_no_control_characters() {
    let main = start(vec![puppet("a")]).await;
    tell(&main, "a", "print one\r\n[b] forged \x1b[31mred\x07\nno line feed").await.unwrap();
    tell(&main, "a", "eprint trouble\n").await.unwrap();
    tell(&main, "a", "log said\n\x1b[2J").await.unwrap();
    main.control().stop("a").await.unwrap();
    let lines = main.control().logs();
    let lines: Vec<_> = lines.iter().filter(|line| !line.message.contains("compiled")).collect();
    let said: Vec<_> =
        lines.iter().map(|line| (&*line.extension, line.source, line.level, &*line.message)).collect();
    assert_eq!(
        said,
        [
            ("a", Source::Stdout, Level::Info, "one"),
            ("a", Source::Stdout, Level::Info, "[b] forged \\u{1b}[31mred\\u{7}"),
            ("a", Source::Stderr, Level::Warn, "trouble"),
            ("a", Source::Log, Level::Warn, "said\\n\\u{1b}[2J"),
            ("a", Source::Stdout, Level::Info, "no line feed"),
            ("a", Source::Main, Level::Info, "stop: done"),
        ]
    );
    assert_eq!(lines[3].fields, [("na\\nme".to_owned(), "va\\u{1b}[2Jlue".to_owned())]);
}

#[tokio::test]
async fn a_line_without_end_is_cut_and_a_follower_misses_nothing_unsaid() {
    let main = start(vec![puppet("a")]).await;
    let (_, mut lines) = main.control().follow_logs();
    tell(&main, "a", &format!("print {}", "x".repeat(10_000))).await.unwrap();
    tell(&main, "a", "print still the same\nanother\n").await.unwrap();
    for expected in [format!("{}…", "x".repeat(4096)), "another".to_owned()] {
        let Some(NextLine::Line(line)) = lines.next().await else { panic!("no line") };
        assert_eq!(line.message, expected);
    }
}

/// `tracing` output with a binary's subscriber.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl io::Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn a_tracing_subscriber_sees_each_line_as_one_event_with_the_id() {
    let captured = Captured::default();
    let writer = captured.clone();
    tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).init();
    let main = start(vec![puppet("traced")]).await;
    tell(&main, "traced", "log first\nsecond").await.unwrap();
    main.shutdown().await.unwrap();
    let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
    let written = text.lines().filter(|line| !line.contains("compiled"));
    let lines: Vec<_> = written.filter(|line| line.contains("extension=\"traced\"")).collect();
    assert_eq!(lines.len(), 1, "{text}");
    assert!(lines[0].contains("WARN weir::extension") && lines[0].contains("first\\nsecond"), "{text}");
}
