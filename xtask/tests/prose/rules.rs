//! What a page must keep. Each rule gives what breaks it, with the place and what to do.

use std::{fs, path::Path};

use crate::page::{Block, Link, Page, Place};

/// Words of a sentence.
const WORDS_MAX: usize = 35;
/// Words of a sentence of text, on average over a page.
const MEAN_MAX: f64 = 15.0;

/// Where this repository is for readers of packages: only whole addresses hold there.
const REPOSITORY: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");

/// Sentences that are too long, and a page whose sentences are too long on average.
pub(crate) fn sentence_lengths(page: &Page) -> Vec<String> {
    let path = page.path.display();
    let long = page.sentences.iter().filter(|sentence| sentence.words > WORDS_MAX);
    let mut faults: Vec<_> = long
        .map(|sentence| {
            let (line, words) = (sentence.line, sentence.words);
            format!(
                "{path}:{line}: {words} words, at most {WORDS_MAX}: make two sentences of “{}”",
                sentence.shown
            )
        })
        .collect();

    let mut text: Vec<_> = page.sentences.iter().filter(|sentence| sentence.place == Place::Text).collect();
    let words: usize = text.iter().map(|sentence| sentence.words).sum();
    let mean = words as f64 / text.len().max(1) as f64;
    if mean > MEAN_MAX {
        text.sort_by_key(|sentence| std::cmp::Reverse(sentence.words));
        let longest: String = text
            .iter()
            .take(5)
            .map(|sentence| {
                format!("\n    line {}: {} words: “{}”", sentence.line, sentence.words, sentence.shown)
            })
            .collect();
        faults.push(format!(
            "{path}: {mean:.1} words a sentence on average, at most {MEAN_MAX}: split the longest:{longest}"
        ));
    }
    faults
}

/// Links into this repository that lead nowhere.
pub(crate) fn links(page: &Page, root: &Path) -> Vec<String> {
    let dead = page.links.iter().filter_map(|link| {
        let why = dead(page, link, root)?;
        Some(format!("{}:{}: `{}`: {why}: correct the link", page.path.display(), link.line, link.to))
    });
    dead.collect()
}

fn dead(page: &Page, link: &Link, root: &Path) -> Option<String> {
    let (from, to) = match link.to.strip_prefix(REPOSITORY) {
        Some(to) => (Path::new("README.md"), to),
        None => (page.path.as_path(), link.to.as_str()),
    };
    if to.contains("://") || to.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = to.split_once('#').unwrap_or((to, ""));
    let target = if path.is_empty() { root.join(from) } else { root.join(from).parent()?.join(path) };
    if !target.exists() {
        return Some("there is no such file".to_owned());
    }
    if anchor.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = fs::read_to_string(&target).ok()?;
    let anchors = Page::parse(&target, &text).anchors;
    (!anchors.contains(anchor)).then(|| format!("no heading has the anchor; there are {anchors:?}"))
}

/// Blocks of code that do not say their language, or are not in it.
pub(crate) fn code_blocks(page: &Page) -> Vec<String> {
    let faults = page.blocks.iter().filter_map(|block| {
        let fault = block_fault(block)?;
        Some(format!("{}:{}: {fault}", page.path.display(), block.line))
    });
    faults.collect()
}

fn block_fault(Block { language, text, .. }: &Block) -> Option<String> {
    match language.split([',', ' ']).next().unwrap_or_default() {
        "" => {
            Some("a block of code in no language: fence it with ```console, text, toml or another".to_owned())
        }
        "toml" => toml::from_str::<toml::Table>(text).err().map(|error| format!("not TOML: {error}")),
        "json" => serde_json::Deserializer::from_str(text)
            .into_iter::<serde_json::Value>()
            .find_map(Result::err)
            .map(|error| format!("not JSON: {error}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Page {
        Page::parse(Path::new("docs/page.md"), text)
    }

    #[test]
    fn a_sentence_may_have_35_words_and_no_more() {
        let short = "It runs. ".repeat(10);
        let of_35 = format!("{short}\n\n{}end.\n", "word ".repeat(34));
        assert!(sentence_lengths(&page(&of_35)).is_empty());
        let of_36 = format!("{short}\n\n{}`end`.\n", "word ".repeat(35));
        let faults = sentence_lengths(&page(&of_36));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(
            faults[0].starts_with("docs/page.md:3: 36 words, at most 35: make two sentences of “word word")
        );
        assert!(faults[0].ends_with("word `end`.”"), "{faults:?}");
    }

    #[test]
    fn a_cell_may_not_be_long_either_and_does_not_count_for_the_mean() {
        let table = format!("| a |\n| --- |\n| {} |\n", "word ".repeat(36));
        let faults = sentence_lengths(&page(&table));
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].starts_with("docs/page.md:3: 36 words"), "{faults:?}");
        let items = format!("| a |\n| --- |\n| {} |\n", "word word; ".repeat(18));
        assert!(sentence_lengths(&page(&items)).is_empty());
    }

    #[test]
    fn sentences_have_15_words_on_average_and_no_more() {
        let (of_15, of_16) = (format!("{}end. ", "Word ".repeat(14)), format!("{}end. ", "Word ".repeat(15)));
        assert!(sentence_lengths(&page(&of_15.repeat(3))).is_empty());
        let faults = sentence_lengths(&page(&format!("# Short\n\n{of_15}{of_16}")));
        assert_eq!(faults.len(), 1, "{faults:?}");
        let expected = "docs/page.md: 15.5 words a sentence on average, at most 15: split the longest:\n    line 3: 16 words: “Word";
        assert!(faults[0].starts_with(expected), "{faults:?}");
    }

    #[test]
    fn a_link_leads_to_a_file_and_to_a_heading_of_it() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("docs")).unwrap();
        fs::write(root.path().join("README.md"), "# First\n").unwrap();
        let text = "# Here\n\n[a](../README.md#first) [b](#here) [c](https://weir.example/#x) [d](../docs)\n";
        fs::write(root.path().join("docs/page.md"), text).unwrap();
        assert!(links(&page(text), root.path()).is_empty());

        let faults =
            links(&page("[a](../README.md#second)\n[b](none.md)\n![c](c.svg)\n[d](#there)"), root.path());
        let whole = format!("[a]({REPOSITORY}README.md#first) [b]({REPOSITORY}none.md)");
        assert_eq!(links(&page(&whole), root.path()).len(), 1);
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(faults[0].starts_with("docs/page.md:1: `../README.md#second`: no heading has"), "{faults:?}");
        assert!(faults[1].starts_with("docs/page.md:2: `none.md`: there is no such file"), "{faults:?}");
        assert!(faults[3].starts_with("docs/page.md:4: `#there`: no heading has"), "{faults:?}");
    }

    #[test]
    fn a_block_of_code_says_its_language_and_parses_in_it() {
        let good = "```toml\na = 1\n```\n\n```json\n{}\n[1]\n```\n\n```rust,no_run\nx\n```\n";
        assert!(code_blocks(&page(good)).is_empty());
        let bad = "```\na\n```\n\n```toml\na = \n```\n\n```json\n{\n```\n\n    indented\n";
        let faults = code_blocks(&page(bad));
        assert_eq!(faults.len(), 4, "{faults:?}");
        for (fault, start) in
            faults.iter().zip(["1: a block of", "5: not TOML", "9: not JSON", "13: a block of"])
        {
            assert!(fault.starts_with(&format!("docs/page.md:{start}")), "{faults:?}");
        }
    }
}
