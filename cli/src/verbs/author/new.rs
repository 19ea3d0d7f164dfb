//! `weir new`: makes a project.

mod templates;

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::{ValueEnum, ValueHint};
use weir_host::{config::TokenHash, names::ExtensionId};

use self::templates::{TEMPLATES, Template};
use super::go::SDK as GO_SDK;
use crate::{exit::Usage, output, verbs::peers};

/// The version of the published crates and packages.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// The file of the token of an app that connects through the gateway.
const TOKEN: &str = ".weir/token";

/// Names that Weir allows, and that Rust or Cargo keep for themselves.
const RESERVED: &str = "\
    abstract alloc as async await become box break build const continue core crate deps do dyn else enum \
    examples extern false final fn for gen if impl in incremental let loop macro match mod move mut pub \
    ref return self static std struct super test true";

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Makes a directory of that name, with sources, tests, a `weir.toml` and a workflow for CI. Touches nothing
that is there.

Examples:
  weir new greeter
  weir new check --kind hook
  weir new site --kind http
  weir new plugin --kind plain --lang c
  weir new counter --lang go
  weir new thermal --lang python --kind sidecar
  weir new greeter --sdk ~/src/weir")]
pub(crate) struct Args {
    /// The name of the project and its directory, as in `greeter`
    #[arg(value_name = "NAME")]
    name: String,
    /// The language
    #[arg(long, value_name = "LANGUAGE", default_value = "rust")]
    lang: Language,
    /// What the program is
    #[arg(long, value_name = "KIND", default_value = "extension")]
    kind: Kind,
    /// A clone of Weir to use instead of published packages; also WEIR_SDK
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, env = "WEIR_SDK", hide_env = true)]
    sdk: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Language {
    /// Rust
    Rust,
    /// Python
    Python,
    /// TypeScript
    #[value(name = "typescript")]
    TypeScript,
    /// Go
    Go,
    /// C
    C,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A component that Main runs and that serves messages
    Extension,
    /// A component that answers requests by HTTP
    Http,
    /// A component that exports functions, and knows nothing of Weir
    Plain,
    /// A component that Main runs to its end
    Hook,
    /// A program outside Main that calls extensions
    App,
    /// A program outside Main that serves a contract
    Sidecar,
}

pub(in crate::verbs) fn run(args: Args) -> anyhow::Result<()> {
    let template = find(args.lang, args.kind)?;
    check_name(&args.name, args.lang)?;
    let clone = args.sdk.as_deref().map(clone).transpose()?;
    let root = Path::new(&args.name);
    fs::create_dir(root).with_context(|| format!("cannot make the directory `{}`", args.name))?;
    let token = peers::generate()?;
    let filler = Filler::new(&args.name, clone.as_deref(), &TokenHash::of(&token));
    for (path, content) in template.files {
        write(&root.join(path), &filler.filled(content), 0o666)?;
    }
    if template.has_token() {
        write(&root.join(TOKEN), &format!("{token}\n"), 0o600)?;
    }
    let files: String = template.files.iter().map(|(path, _)| format!("  {}/{path}\n", args.name)).collect();
    output::write(format!("{files}\nNow run `weir dev` or `weir test` in `{}`.\n", args.name).as_bytes())
}

fn find(lang: Language, kind: Kind) -> anyhow::Result<&'static Template> {
    let found = TEMPLATES.iter().find(|template| template.lang == lang && template.kind == kind);
    Ok(found.ok_or_else(|| {
        let all = TEMPLATES.iter().map(|template| format!("  {}\n", template.shown())).collect::<String>();
        let asked = Template { lang, kind, files: &[] }.shown();
        Usage(format!("there is no template for `{asked}`; there are\n{}", all.trim_end()))
    })?)
}

fn check_name(name: &str, lang: Language) -> anyhow::Result<()> {
    if let Err(error) = name.parse::<ExtensionId>() {
        return Err(Usage(error.to_string()).into());
    }
    if lang == Language::Rust
        && (RESERVED.split(' ').any(|reserved| reserved == name) || name.starts_with("weir-"))
    {
        return Err(Usage(format!("`{name}` cannot be the name of a Rust package of yours")).into());
    }
    Ok(())
}

/// Returns the absolute path of a clone of Weir.
fn clone(path: &Path) -> anyhow::Result<String> {
    let shown = path.display();
    let path = fs::canonicalize(path).with_context(|| format!("cannot open `{shown}`"))?;
    if !path.join("guest-sdk/rust/Cargo.toml").is_file() {
        bail!("`{shown}` is no clone of Weir: it has no `guest-sdk/rust/Cargo.toml`");
    }
    path.into_os_string().into_string().ok().with_context(|| format!("`{shown}` is not UTF-8"))
}

fn write(path: &PathBuf, content: &str, mode: u32) -> anyhow::Result<()> {
    let parents = path.parent().map_or(Ok(()), fs::create_dir_all);
    let file = parents.and_then(|()| OpenOptions::new().write(true).create_new(true).mode(mode).open(path));
    file.and_then(|mut file| file.write_all(content.as_bytes()))
        .with_context(|| format!("cannot write `{}`", path.display()))
}

/// The texts that stand in place of `{{…}}` in a template.
struct Filler(Vec<(&'static str, String)>);

impl Filler {
    fn new(name: &str, clone: Option<&str>, hash: &TokenHash) -> Self {
        let of = |published: String, in_clone: &dyn Fn(&str) -> String| clone.map_or(published, in_clone);
        let depends = |directory: &str| {
            of(format!("{VERSION:?}"), &|clone| format!("{{ path = {:?} }}", format!("{clone}/{directory}")))
        };
        let python = of(format!("weir-sdk~={VERSION}.0"), &|clone| {
            format!("weir-sdk @ file://{clone}/guest-sdk/python")
        });
        let client = of(format!("^{VERSION}.0"), &|clone| format!("file:{clone}/outside/gateway/client"));
        let go = of(format!("v{VERSION}.0"), &|clone| {
            format!("v{VERSION}.0\n\nreplace {GO_SDK} => {clone}/guest-sdk/go")
        });
        // The package that `npm pack` makes: npm installs the dependencies of a package, not those of a directory.
        let npm = of(format!("^{VERSION}.0"), &|clone| {
            format!("file:{clone}/guest-sdk/typescript/weir-sdk-{}.tgz", env!("CARGO_PKG_VERSION"))
        });
        // With a clone, the workflow makes the clone itself and builds from it, until the packages are published.
        let install = of(
            concat!("      - run: cargo install --locked ", env!("CARGO_PKG_NAME")).to_owned(),
            &|clone| {
                format!(
                    "      - run: sudo install -d -o \"$USER\" {clone}\n      \
                 - run: git clone --depth 1 {REPOSITORY} {clone}\n      \
                 - run: cargo install --locked --path {clone}/cli"
                )
            },
        );
        let pack = of("      - run: npm install".to_owned(), &|clone| {
            format!("      - run: cd {clone}/guest-sdk/typescript && npm install && npm pack")
        });
        Self(vec![
            ("{{name}}", name.to_owned()),
            ("{{crate}}", name.replace('-', "_")),
            ("{{weir-sdk}}", depends("guest-sdk/rust")),
            ("{{weir-peer}}", depends("outside/peer")),
            ("{{weir-client}}", client),
            ("{{weir-go}}", go),
            ("{{weir-sdk-python}}", python),
            ("{{weir-sdk-npm}}", npm),
            ("{{install}}", install),
            ("{{install-npm}}", pack),
            ("{{uid}}", rustix::process::getuid().as_raw().to_string()),
            ("{{hash}}", hash.to_string()),
        ])
    }

    fn filled(&self, template: &str) -> String {
        self.0.iter().fold(template.to_owned(), |text, (place, value)| text.replace(place, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_in_a_template_is_filled() {
        for template in TEMPLATES {
            for clone in [None, Some("/src/weir")] {
                let filler = Filler::new("my-name", clone, &TokenHash::of("secret"));
                for (path, content) in template.files {
                    let filled = filler.filled(content);
                    // Workflows and format strings have other braces.
                    assert!(!filled.contains("{{"), "{} {path}: {filled}", template.shown());
                    assert!(!filled.contains("/src/weir") || clone.is_some());
                }
            }
        }
    }

    #[test]
    fn every_project_has_what_an_author_needs() {
        for template in TEMPLATES {
            let has = |file: &str| template.files.iter().any(|(path, _)| *path == file);
            for file in ["weir.toml", "README.md", ".gitignore", ".github/workflows/test.yml"] {
                assert!(has(file), "{} has no `{file}`", template.shown());
            }
            let (_, readme) = template.files.iter().find(|(path, _)| *path == "README.md").unwrap();
            assert!(readme.lines().count() <= 10, "{}", template.shown());
        }
    }
}
