//! The table of `docs/tested.md`: one line for each group, its last pass.

use std::{fmt, str::FromStr};

use anyhow::{Context, Error, Result, bail, ensure};

use super::inputs::Inputs;

const HEAD: &str = "\
# Tested in full

`cargo xtask test --full GROUP` runs tests that take too long for every commit, and writes its pass here.
`cargo xtask test` fails if the inputs of a group have changed since: then run the group, and commit this page with
the change. `cargo xtask test --full` lists the groups.

| group | commit | inputs | tools | seconds | skipped |
| --- | --- | --- | --- | --- | --- |
";

const NONE: &str = "-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pass {
    pub(super) group: String,
    pub(super) commit: String,
    pub(super) inputs: Inputs,
    pub(super) tools: Vec<String>,
    pub(super) seconds: u64,
    pub(super) skipped: Vec<String>,
}

/// The last pass of each group, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Record(Vec<Pass>);

impl Record {
    pub(super) fn of(&self, group: &str) -> Option<&Pass> {
        self.0.iter().find(|pass| pass.group == group)
    }

    pub(super) fn put(&mut self, pass: Pass) {
        self.0.retain(|other| other.group != pass.group);
        self.0.push(pass);
        self.0.sort_by(|a, b| a.group.cmp(&b.group));
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(HEAD)?;
        for Pass { group, commit, inputs, tools, seconds, skipped } in &self.0 {
            let inputs: Vec<_> = inputs.0.iter().map(|(name, hash)| format!("{name} {hash}")).collect();
            let [inputs, tools, skipped] = [&inputs, tools, skipped].map(|items| listed(items));
            writeln!(f, "| {group} | {commit} | {inputs} | {tools} | {seconds} | {skipped} |")?;
        }
        Ok(())
    }
}

impl FromStr for Record {
    type Err = Error;

    fn from_str(page: &str) -> Result<Self> {
        let table = page.strip_prefix(HEAD).context("what stands above the passes is another text")?;
        let mut record = Self::default();
        for (number, line) in table.lines().enumerate() {
            let pass = pass(line).with_context(|| format!("line {}", HEAD.lines().count() + number + 1))?;
            ensure!(record.of(&pass.group).is_none(), "group `{}` has two lines", pass.group);
            record.put(pass);
        }
        Ok(record)
    }
}

fn pass(line: &str) -> Result<Pass> {
    let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
    let cells: Vec<_> = cells.context("a line that is none of a table")?.split(" | ").collect();
    let [group, commit, inputs, tools, seconds, skipped] = cells[..] else {
        bail!("{} cells and not 6", cells.len());
    };
    let input = |item: String| {
        let (name, hash) = item.split_once(' ').with_context(|| format!("input `{item}` has no hash"))?;
        Ok((name.to_owned(), hash.to_owned()))
    };
    Ok(Pass {
        group: group.to_owned(),
        commit: commit.to_owned(),
        inputs: Inputs(items(inputs).into_iter().map(input).collect::<Result<_>>()?),
        tools: items(tools),
        seconds: seconds.parse().with_context(|| format!("`{seconds}` is no number of seconds"))?,
        skipped: items(skipped),
    })
}

/// A cell of items. No item contains `, ` or `|`.
fn listed(items: &[String]) -> String {
    if items.is_empty() {
        return NONE.to_owned();
    }
    let items: Vec<_> =
        items.iter().map(|item| item.replace(", ", "; ").replace('|', "/").replace('\n', " ")).collect();
    items.join(", ")
}

fn items(cell: &str) -> Vec<String> {
    if cell == NONE { Vec::new() } else { cell.split(", ").map(str::to_owned).collect() }
}
