//! A page of Markdown as its reader meets it: sentences, links, anchors and blocks of code, each with its line.

use std::{
    collections::{BTreeSet, VecDeque},
    ops::Range,
    path::{Path, PathBuf},
};

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use unicode_segmentation::UnicodeSegmentation;

/// Stands for a span of code while sentences are found. A capital letter, since a span may begin a sentence.
const CODE: char = '𝙲';

#[derive(Default)]
pub(crate) struct Page {
    /// From the root of the repository.
    pub(crate) path: PathBuf,
    pub(crate) sentences: Vec<Sentence>,
    /// Where links may lead to: GitHub makes one for each heading.
    pub(crate) anchors: BTreeSet<String>,
    pub(crate) links: Vec<Link>,
    pub(crate) blocks: Vec<Block>,
}

pub(crate) struct Sentence {
    pub(crate) line: usize,
    pub(crate) place: Place,
    /// A span of code is one.
    pub(crate) words: usize,
    /// As it is written, in one line.
    pub(crate) shown: String,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Place {
    #[default]
    Text,
    Table,
    Heading,
}

pub(crate) struct Link {
    pub(crate) line: usize,
    pub(crate) to: String,
}

pub(crate) struct Block {
    pub(crate) line: usize,
    /// Empty if the page does not say it.
    pub(crate) language: String,
    pub(crate) text: String,
}

impl Page {
    pub(crate) fn parse(path: &Path, text: &str) -> Self {
        let mut reader = Reader {
            text,
            generated: generated(text),
            page: Self { path: path.to_owned(), ..Self::default() },
            piece: Piece::default(),
            block: None,
        };
        for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            reader.read(event, &range);
        }
        reader.page
    }
}

/// What stands between `<!-- NAME -->` and `<!-- /NAME -->` is made by a program.
fn generated(text: &str) -> Vec<Range<usize>> {
    let ends = text.match_indices("<!-- /").filter_map(|(end, _)| {
        let name = text[end..].strip_prefix("<!-- /")?.split_once(" -->")?.0;
        Some(text[..end].rfind(&format!("<!-- {name} -->"))?..end)
    });
    ends.collect()
}

struct Reader<'t> {
    text: &'t str,
    generated: Vec<Range<usize>>,
    page: Page,
    piece: Piece,
    block: Option<Block>,
}

/// A paragraph, an item, a heading or a cell, as far as it has been read.
#[derive(Default)]
struct Piece {
    place: Place,
    prose: String,
    codes: VecDeque<String>,
    /// Places in `prose`, and the lines of the page that they come from.
    lines: Vec<(usize, usize)>,
}

impl Reader<'_> {
    fn read(&mut self, event: Event<'_>, range: &Range<usize>) {
        let line = self.text[..range.start].matches('\n').count() + 1;
        match event {
            Event::Text(text) if self.block.is_some() => {
                self.block.iter_mut().for_each(|block| block.text += &text);
            }
            Event::Text(text) => self.push(line, &text),
            Event::Code(code) => {
                self.piece.codes.push_back(code.into_string());
                self.push(line, CODE.encode_utf8(&mut [0; 4]));
            }
            Event::SoftBreak | Event::HardBreak => self.piece.prose.push(' '),
            Event::Html(html) | Event::InlineHtml(html) => self.read_html(line, &html),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                self.page.links.push(Link { line, to: dest_url.into_string() });
            }
            Event::Start(Tag::Emphasis | Tag::Strong)
            | Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Link | TagEnd::Image) => {}
            Event::Start(Tag::CodeBlock(kind)) => {
                self.finish(range);
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.into_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.block = Some(Block { line, language, text: String::new() });
            }
            Event::End(TagEnd::CodeBlock) => self.page.blocks.extend(self.block.take()),
            Event::Start(tag) => {
                self.finish(range);
                self.piece.place = match tag {
                    Tag::Heading { .. } => Place::Heading,
                    Tag::TableCell => Place::Table,
                    _ => Place::Text,
                };
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = with_codes(&self.piece.prose, &mut self.piece.codes.clone(), "");
                self.add_anchor(&slug(&heading));
                self.finish(range);
            }
            _ => self.finish(range),
        }
    }

    fn push(&mut self, line: usize, text: &str) {
        self.piece.lines.push((self.piece.prose.len(), line));
        self.piece.prose += text;
    }

    fn read_html(&mut self, line: usize, html: &str) {
        for attribute in ["href=\"", "src=\"", "srcset=\""] {
            let values = html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            self.page.links.extend(values.map(|to| Link { line, to: to.to_owned() }));
        }
        for attribute in ["id=\"", "name=\""] {
            let values = html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next());
            self.page.anchors.extend(values.map(ToOwned::to_owned));
        }
    }

    /// The second heading of a name gets `-1`.
    fn add_anchor(&mut self, slug: &str) {
        let numbered = (1..).map(|number| format!("{slug}-{number}"));
        let mut anchors = std::iter::once(slug.to_owned()).chain(numbered);
        let free = anchors.find(|anchor| !self.page.anchors.contains(anchor));
        self.page.anchors.extend(free);
    }

    /// Splits the piece into sentences, by the rules of Unicode (UAX #29). In a cell, a semicolon ends an item of a list.
    fn finish(&mut self, range: &Range<usize>) {
        let mut piece = std::mem::take(&mut self.piece);
        if self.generated.iter().any(|generated| generated.contains(&range.start)) {
            return;
        }
        let mut start = 0;
        let is_table = piece.place == Place::Table;
        for prose in piece
            .prose
            .split_sentence_bounds()
            .flat_map(|sentence| sentence.split_inclusive(move |c| is_table && c == ';'))
        {
            let is_word = |word: &&str| word.contains(char::is_alphanumeric);
            let words = prose.split_whitespace().filter(is_word).count();
            let line =
                piece.lines.iter().rev().find(|(place, _)| *place <= start).map_or(1, |(_, line)| *line);
            start += prose.len();
            if words > 0 {
                self.page.sentences.push(Sentence {
                    line,
                    place: piece.place,
                    words,
                    shown: with_codes(prose.trim(), &mut piece.codes, "`"),
                });
            }
        }
    }
}

/// Puts spans of code back, and takes them from `codes`.
fn with_codes(prose: &str, codes: &mut VecDeque<String>, quote: &str) -> String {
    let mut shown = String::new();
    for letter in prose.chars() {
        match codes.front() {
            Some(code) if letter == CODE => {
                shown += &format!("{quote}{code}{quote}");
                codes.pop_front();
            }
            _ => shown.push(letter),
        }
    }
    shown
}

/// GitHub's anchor of a heading: small letters, hyphens for spaces, no punctuation but `-` and `_`.
fn slug(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page::parse(Path::new("page.md"), text)
    }

    fn sentences(text: &str) -> Vec<(usize, usize, String)> {
        let sentences = page(text).sentences.into_iter();
        sentences.map(|sentence| (sentence.line, sentence.words, sentence.shown)).collect()
    }

    #[test]
    fn a_sentence_goes_over_lines_and_has_the_line_it_begins_in() {
        let text = "One [two](x.md)\n**three** `four.five`. `Six`\nseven, e.g. eight\n\n- nine\n  ten\n";
        let expected =
            [(1, 4, "One two three `four.five`."), (2, 4, "`Six` seven, e.g. eight"), (5, 2, "nine ten")];
        assert_eq!(sentences(text), expected.map(|(line, words, shown)| (line, words, shown.to_owned())));
    }

    #[test]
    fn code_and_generated_regions_are_no_prose() {
        let text =
            "<!-- call -->\n```sh\na b c\n```\n\n<!-- x -->\n\nMade here.\n\n<!-- /x -->\n\nWritten.\n";
        assert_eq!(sentences(text), [(12, 1, "Written.".to_owned())]);
    }

    #[test]
    fn headings_have_the_anchors_that_github_gives_them() {
        let text = "# What `weir ps` shows: a, b\n\n## A_b-c (d)\n\n## A_b-c (d)\n\n<a id=\"own\"></a>\n";
        let expected = ["a_b-c-d", "a_b-c-d-1", "own", "what-weir-ps-shows-a-b"];
        assert_eq!(page(text).anchors, expected.map(ToOwned::to_owned).into());
    }
}
