//! `weir symbolise`: from functions and offsets of a trace to lines of the source.
//!
//! The debug information is DWARF. Its addresses count from the start of the code section's contents
//! (<https://yurydelendik.github.io/webassembly-dwarf/>). The user trusts the file, so it is read whole.

use std::{fs, ops::Range, path::PathBuf};

use addr2line::{
    Context,
    gimli::{Dwarf, EndianSlice, LittleEndian},
};
use anyhow::{Context as _, bail, ensure};
use clap::ValueHint;
use serde::Serialize;
use serde_json::Value;
use wasmparser::Payload;

use super::inspect::sizes::{imported_functions, modules};
use crate::{
    output::{self, printable},
    payload::{self, payload},
};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The trace must be of an extension with `traces = \"lines\"`. The component must have its debug information
(DWARF): it is the file that ran, or the same file before it was stripped.

Examples:
  weir status --json storage | weir symbolise --component target/wasm32-wasip2/release/storage.wasm
  weir symbolise failure.json --component storage.wasm")]
pub(crate) struct Args {
    /// The failure as JSON, or an object with `failures`, of which the last is taken; `-` for stdin
    #[arg(value_name = "FILE", default_value = "-", value_hint = ValueHint::FilePath)]
    failure: String,
    /// The component with its debug information
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    component: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: Args) -> anyhow::Result<()> {
    let failure = match args.failure.as_str() {
        "-" => payload(Some("-"))?,
        path => payload::file(path)?,
    };
    let failure: Value = serde_json::from_slice(&failure).context("the failure is not JSON")?;
    let trace = trace(&failure)?;
    ensure!(
        trace.iter().any(|text| place(text).is_some()),
        "the trace names functions alone: its extension needs `traces = \"lines\"`, and an artifact `--traces lines`"
    );
    let path = args.component.display();
    let component = fs::read(&args.component).with_context(|| format!("cannot read `{path}`"))?;
    let module = Module::with_lines(&component).with_context(|| format!("cannot use `{path}`"))?;
    let context = module.context()?;
    let functions: Vec<_> =
        trace.iter().map(|text| Function { text, lines: module.lines(&context, text) }).collect();
    if args.json {
        return output::json(&functions);
    }
    for function in functions {
        output::line(&printable(function.text))?;
        for line in function.lines {
            output::line(&format!("    {}", printable(&line.to_string())))?;
        }
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Function<'a> {
    #[serde(rename = "function")]
    text: &'a str,
    /// The lines: of inlined functions first, of the function itself last. Empty if nothing is known.
    lines: Vec<Line>,
}

#[derive(Debug, Serialize)]
struct Line {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
}

impl std::fmt::Display for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.file.as_deref().unwrap_or("?"))?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        self.function.as_ref().map_or(Ok(()), |function| write!(f, " in {function}"))
    }
}

/// Returns the trace of a failure, or of the last failure in a list.
fn trace(json: &Value) -> anyhow::Result<Vec<&str>> {
    let failure = match json.get("failures").and_then(Value::as_array) {
        Some(failures) => failures.last().context("it has not failed")?,
        None => json,
    };
    let trace = failure.get("trace").and_then(Value::as_array).context("the failure has no `trace`")?;
    Ok(trace.iter().filter_map(Value::as_str).collect())
}

/// Reads the function's index and the offset from the end of a line of a trace, in Weir's own format.
fn place(text: &str) -> Option<(u32, u64)> {
    let (before, offset) = text.rsplit_once(" +0x")?;
    let (_, number) = before.rsplit_once("function ")?;
    Some((number.parse().ok()?, u64::from_str_radix(offset, 16).ok()?))
}

#[derive(Default)]
struct Module<'a> {
    /// The number of imported functions. The module's own functions are numbered after them.
    imported: u32,
    /// Offset of the code section's contents in the file.
    code: usize,
    bodies: Vec<Range<usize>>,
    debug: Vec<(&'a str, &'a [u8])>,
}

impl<'a> Module<'a> {
    /// Returns the only module of the component with debug information.
    fn with_lines(component: &'a [u8]) -> anyhow::Result<Self> {
        let mut modules = modules(component, |module: &mut Self, payload| {
            match payload {
                Payload::ImportSection(imports) => module.imported += imported_functions(imports)?,
                Payload::CodeSectionStart { range, .. } => module.code = range.start,
                Payload::CodeSectionEntry(body) => module.bodies.push(body.range()),
                Payload::CustomSection(section) if section.name().starts_with(".debug_") => {
                    module.debug.push((section.name(), section.data()));
                }
                _ => {}
            }
            Ok(())
        })?;
        modules.retain(|module| module.debug.iter().any(|(name, _)| *name == ".debug_line"));
        match (modules.pop(), modules.is_empty()) {
            (Some(module), true) => Ok(module),
            (Some(_), false) => {
                bail!("several of its modules have debug information, and a trace names no module")
            }
            (None, _) => bail!("it has no debug information: build it with that, and do not strip it"),
        }
    }

    fn context(&self) -> anyhow::Result<Context<Bytes<'a>>> {
        let section = |name: &str| {
            let found = self.debug.iter().find(|(known, _)| *known == name);
            EndianSlice::new(found.map_or(&[][..], |(_, data)| data), LittleEndian)
        };
        let dwarf = Dwarf::load(|id| Ok::<_, addr2line::gimli::Error>(section(id.name())))?;
        Context::from_dwarf(dwarf).context("its debug information is damaged")
    }

    fn lines(&self, context: &Context<Bytes<'_>>, text: &str) -> Vec<Line> {
        let address = place(text).and_then(|(function, offset)| self.address(function, offset));
        let found = address.and_then(|address| context.find_frames(address).skip_all_loads().ok());
        let mut lines = Vec::new();
        let Some(mut frames) = found else { return lines };
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|function| function.demangle().ok());
            let location = frame.location;
            lines.push(Line {
                function: function.map(|name| name.into_owned()),
                file: location.as_ref().and_then(|at| at.file).map(str::to_owned),
                line: location.as_ref().and_then(|at| at.line),
                column: location.as_ref().and_then(|at| at.column),
            });
        }
        lines
    }

    fn address(&self, function: u32, offset: u64) -> Option<u64> {
        let own = usize::try_from(function.checked_sub(self.imported)?).ok()?;
        let body = self.bodies.get(own)?;
        let address = body.start.checked_add(usize::try_from(offset).ok()?)?;
        body.contains(&address).then(|| (address - self.code) as u64)
    }
}
