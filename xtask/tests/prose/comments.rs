//! Comments of sources, as far as they are read for their words.

use std::path::{Path, PathBuf};

use crate::rules::vague;

/// A vague word in a comment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Vague {
    pub(crate) path: PathBuf,
    pub(crate) line: usize,
    pub(crate) word: String,
    pub(crate) comment: String,
}

/// Vague words in a source file of Rust.
pub(crate) fn vague_words(path: &Path, source: &str) -> Vec<Vague> {
    let comments = source.lines().zip(1..).filter_map(|(line, number)| Some((number, comment(line)?)));
    let found = comments.flat_map(|(line, comment)| {
        vague(comment).map(move |word| Vague {
            path: path.to_owned(),
            line,
            word: word.to_owned(),
            comment: comment.trim().to_owned(),
        })
    });
    found.collect()
}

/// What follows `//` at the start of a line or after a space: in a string it is mostly a part of an address.
fn comment(line: &str) -> Option<&str> {
    let starts =
        line.match_indices("//").find(|(start, _)| line[..*start].trim_end().len() < *start || *start == 0);
    starts.map(|(start, _)| line[start..].trim_start_matches(['/', '!']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_are_read() {
        let source = "//! Who calls.\nlet who = \"http://who\"; // Whom\n    /// Nobody: whole.\n";
        let found = vague_words(Path::new("a.rs"), source);
        let found: Vec<_> = found.iter().map(|vague| (vague.line, vague.word.as_str())).collect();
        assert_eq!(found, [(1, "Who"), (2, "Whom")]);
    }
}
