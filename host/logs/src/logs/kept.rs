//! The last log lines, within a bound of bytes that writers share fairly.
//!
//! No writer has a reserved part: a lone writer may fill the buffer. When it is full, the writer with the most bytes
//! loses its oldest line, so a flood pushes out itself.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    mem::size_of,
    sync::Arc,
};

use super::{LogLine, Source};

/// Bytes of all lines with their overhead. About a thousand ordinary lines: enough to see how every extension of a
/// device started.
const MAX_BYTES: usize = 256 * 1024;

/// Additional bytes of a line: table entries and the allocator's overhead.
const OVERHEAD: usize = 96;

/// The extension, and whether Main wrote the line. Main's lines count apart, or an extension could push out the
/// reason for its failure.
type Writer = (Arc<str>, bool);

#[derive(Debug, Default)]
pub(super) struct Kept {
    by_writer: HashMap<Writer, Lines>,
    /// Writers by their bytes, the largest last.
    by_bytes: BTreeSet<(usize, Writer)>,
    bytes: usize,
    /// Lines ever added: the number of the last one.
    added: u64,
}

#[derive(Debug, Default)]
struct Lines {
    lines: BTreeMap<u64, Arc<LogLine>>,
    bytes: usize,
}

impl Kept {
    pub(super) fn add(&mut self, line: Arc<LogLine>) {
        self.added += 1;
        let number = self.added;
        let bytes = cost(&line);
        let writer = (line.extension.clone(), line.source == Source::Main);
        self.change(writer, |of_writer| {
            of_writer.bytes += bytes;
            of_writer.lines.insert(number, line);
        });
        while self.bytes > MAX_BYTES
            && let Some((_, greediest)) = self.by_bytes.last().cloned()
        {
            self.change(greediest, Lines::remove_oldest);
        }
    }

    /// All lines, oldest first.
    pub(super) fn in_order(&self) -> Vec<Arc<LogLine>> {
        let mut lines: Vec<_> = self.by_writer.values().flat_map(|of_writer| &of_writer.lines).collect();
        lines.sort_unstable_by_key(|(number, _)| **number);
        lines.into_iter().map(|(_, line)| line.clone()).collect()
    }

    /// Changes a writer's lines and all sums.
    fn change(&mut self, writer: Writer, change: impl FnOnce(&mut Lines)) {
        let mut of_writer = self.by_writer.remove(&writer).unwrap_or_default();
        let mut place = (of_writer.bytes, writer);
        self.by_bytes.remove(&place);
        self.bytes -= of_writer.bytes;
        change(&mut of_writer);
        // A writer without lines is removed.
        if !of_writer.lines.is_empty() {
            self.bytes += of_writer.bytes;
            place.0 = of_writer.bytes;
            self.by_writer.insert(place.1.clone(), of_writer);
            self.by_bytes.insert(place);
        }
    }
}

impl Lines {
    fn remove_oldest(&mut self) {
        if let Some((_, line)) = self.lines.pop_first() {
            self.bytes -= cost(&line);
        }
    }
}

/// Bytes allocated for a line, rounded up.
fn cost(line: &LogLine) -> usize {
    let LogLine { extension, message, fields, .. } = line;
    let texts: usize = fields.iter().map(|(name, value)| name.capacity() + value.capacity()).sum();
    let fields = fields.capacity() * size_of::<(String, String)>() + texts;
    OVERHEAD + size_of::<LogLine>() + extension.len() + message.capacity() + fields
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::Level;

    fn add(kept: &mut Kept, extension: &str, source: Source, message: &str) {
        kept.add(Arc::new(LogLine {
            time: SystemTime::UNIX_EPOCH,
            extension: extension.into(),
            level: Level::Info,
            source,
            message: message.to_owned(),
            fields: Vec::new(),
        }));
    }

    fn flood(kept: &mut Kept, extension: &str) {
        for number in 0..5000 {
            add(kept, extension, Source::Log, &format!("flood {number}"));
        }
    }

    fn count(kept: &Kept, extension: &str) -> usize {
        kept.in_order().iter().filter(|line| &*line.extension == extension).count()
    }

    #[test]
    fn a_flood_pushes_out_the_flood_and_nobody_elses_lines() {
        let mut kept = Kept::default();
        add(&mut kept, "quiet", Source::Stdout, "before");
        add(&mut kept, "noisy", Source::Main, "failed: before");
        flood(&mut kept, "noisy");
        add(&mut kept, "quiet", Source::Stdout, "after");
        let lines = kept.in_order();
        let texts: Vec<_> = lines.iter().map(|line| &*line.message).collect();
        assert_eq!(texts[..2], ["before", "failed: before"]);
        assert_eq!(texts[texts.len() - 2..], ["flood 4999", "after"]);
        assert!(texts.len() > 500, "a flood may use what nobody else does: {} lines", texts.len());
    }

    #[test]
    fn two_floods_share_the_room() {
        let mut kept = Kept::default();
        flood(&mut kept, "a");
        flood(&mut kept, "b");
        assert!(count(&kept, "a").abs_diff(count(&kept, "b")) <= 1);
    }

    #[test]
    fn what_is_kept_stays_within_its_bound_whoever_writes() {
        let mut kept = Kept::default();
        for number in 0..2000 {
            add(&mut kept, &format!("extension-{number}"), Source::Log, &"x".repeat(number * 3));
            assert!(kept.bytes <= MAX_BYTES);
        }
        let lines = kept.in_order();
        assert_eq!(kept.bytes, lines.iter().map(|line| cost(line)).sum::<usize>());
        assert_eq!(kept.by_writer.len(), lines.len(), "a writer without lines takes no room");
        assert_eq!(kept.by_bytes.len(), lines.len());
    }

    #[test]
    fn lines_come_in_the_order_in_which_they_were_written() {
        let mut kept = Kept::default();
        for number in 0..30 {
            add(&mut kept, ["a", "b", "c"][number % 3], Source::Log, &number.to_string());
        }
        let lines = kept.in_order();
        let expected: Vec<_> = (0..30).map(|number| number.to_string()).collect();
        assert_eq!(lines.iter().map(|line| &*line.message).collect::<Vec<_>>(), expected);
    }
}
