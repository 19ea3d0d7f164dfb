//! `docs/benchmarks.md`: the parts between its marks are generated from the record beside it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::{Context, Result};

use crate::{
    figure::Figure,
    machine::Machine,
    plots,
    record::{Entry, Record},
    scale::Scale,
    table,
};

const RECORD: &str = "figures.json";

/// A page, and a directory of the same name with the record and the plots.
#[derive(Debug)]
pub(crate) struct Docs {
    page: PathBuf,
}

#[derive(Debug)]
struct Rendered {
    page: String,
    plots: Vec<(String, String)>,
}

impl Docs {
    pub(crate) fn new(page: PathBuf) -> Self {
        Self { page }
    }

    pub(crate) fn update(
        &self,
        scenario: &str,
        figures: Vec<Figure>,
        scale: Scale,
        machine: &Machine,
        instead: Option<String>,
    ) -> Result<()> {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let mut record = self.record()?;
        record.replace(Entry {
            scenario: scenario.to_owned(),
            date: now.split('T').next().unwrap_or_default().to_owned(),
            scale: scale.name().to_owned(),
            machine: machine.to_string(),
            instead,
            figures,
        });
        let rendered = render(&read(&self.page)?, &record)?;
        write(&self.beside(RECORD), &record.text()?)?;
        write(&self.page, &rendered.page)?;
        rendered.plots.iter().try_for_each(|(name, svg)| write(&self.beside(name), svg))
    }

    fn record(&self) -> Result<Record> {
        Record::parse(&read(&self.beside(RECORD))?)
    }

    fn beside(&self, name: &str) -> PathBuf {
        self.page.with_extension("").join(name)
    }
}

/// The part of a scenario that is not in the record stays.
fn render(page: &str, record: &Record) -> Result<Rendered> {
    let mut rendered = Rendered { page: page.to_owned(), plots: Vec::new() };
    for runs in record.entries.chunk_by(|one, other| one.scenario == other.scenario) {
        let Some((latest, others)) = runs.split_first() else { continue };
        let mut section = measured(latest);
        let plots = match latest.instead {
            None => plots::drawn(&latest.scenario, &latest.figures)?,
            Some(_) => Vec::new(),
        };
        for plot in plots {
            section += &format!("![{}](benchmarks/{})\n\n", plot.title, plot.file);
            rendered.plots.push((plot.file, plot.svg));
        }
        section += &table::markdown(&latest.figures);
        for other in others {
            section += &measured(other);
            section += &table::markdown(&other.figures);
        }
        rendered.put(&latest.scenario, &section)?;
    }
    rendered.put("summary", &format!("\n{}", table::summary(record)))?;
    Ok(rendered)
}

fn measured(Entry { date, scale, machine, instead, .. }: &Entry) -> String {
    let instead = instead.as_deref().map(|instead| format!("{instead}; ")).unwrap_or_default();
    format!("\nMeasured on {date}, {scale} run, {instead}on {machine}.\n\n")
}

impl Rendered {
    /// Replaces the text between `<!-- MARK -->` and `<!-- /MARK -->`.
    fn put(&mut self, mark: &str, section: &str) -> Result<()> {
        let replaced = replaced(&self.page, mark, section);
        self.page = replaced.with_context(|| format!("the page has no marks for `{mark}`"))?;
        Ok(())
    }
}

fn replaced(text: &str, mark: &str, section: &str) -> Option<String> {
    let (start, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (before, rest) = text.split_once(&start)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{start}{section}\n{end}{after}"))
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read `{}`", path.display()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write `{}`", path.display()))
}

#[cfg(test)]
fn ours() -> Docs {
    Docs::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/benchmarks.md"))
}

#[cfg(test)]
pub(crate) fn committed() -> Record {
    ours().record().unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenarios::SCENARIOS;

    #[test]
    fn only_what_stands_between_the_marks_changes() {
        let page = "a\n<!-- x -->\nold\n\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n";
        let x = replaced(page, "x", "new\n").unwrap();
        assert_eq!(x, "a\n<!-- x -->\nnew\n\n<!-- /x -->\nb\n<!-- y -->\n<!-- /y -->\n");
        assert_eq!(replaced(&x, "x", "old\n").unwrap(), page);
        assert!(replaced(page, "z", "new\n").is_none());
    }

    #[test]
    fn page_and_plots_are_what_the_record_makes_of_them() {
        let docs = ours();
        let page = read(&docs.page).unwrap();
        let rendered = render(&page, &committed()).unwrap();
        let by = "`cargo xtask bench --docs` makes it from the record";
        assert!(rendered.page == page, "the page differs: {by}");
        let files = fs::read_dir(docs.beside("")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let mut made: Vec<_> = rendered.plots.iter().map(|(name, _)| name.as_str()).chain([RECORD]).collect();
        made.sort_unstable();
        assert_eq!(files, made);
        for (name, svg) in &rendered.plots {
            assert!(read(&docs.beside(name)).unwrap() == *svg, "`{name}` differs: {by}");
        }
    }

    #[test]
    fn every_scenario_has_its_marks_on_the_page() {
        let page = read(&ours().page).unwrap();
        for scenario in &SCENARIOS {
            assert!(replaced(&page, scenario.name, "").is_some(), "{}", scenario.name);
        }
    }

    #[test]
    fn what_is_not_in_the_record_stays() {
        let page = "<!-- summary -->\n<!-- /summary -->\n<!-- hooks -->\nolder\n<!-- /hooks -->\n";
        let rendered = render(page, &Record { entries: Vec::new() }).unwrap();
        assert!(rendered.page.ends_with("<!-- hooks -->\nolder\n<!-- /hooks -->\n"), "{}", rendered.page);
    }
}
