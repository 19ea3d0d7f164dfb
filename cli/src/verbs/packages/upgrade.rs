//! `weir upgrade`: extensions of an operator's file get other versions of their components.

use anyhow::{Context, bail};
use clap::ValueHint;
use semver::Version;
use weir_host::{
    ExtensionConfig,
    component::{Inspection, Signature, inspect},
    config::ArtifactHash,
    control::ControlError,
    names::ExtensionId,
};

use super::{
    Fetched, OfFile,
    asked::{self, Granted},
    device::Device,
    source::Source,
    trust,
};
use crate::{
    exit::{Said, Usage, say},
    output::{self, printable},
    verbs::check::needs,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without SOURCE, the package is looked for where the last one came from: a path is read again, and of a registry the
highest version is taken. Shows what the new version asks for that the one before did not. Grants stay as they are
but for --grant. The component before stays in `main.plugin-dir` until Main has reloaded.

`weir reload --all` runs the new version. With `update` in its table, it proves itself first.

Examples:
  weir upgrade echo echo-1.1.0.tar
  weir upgrade echo
  weir upgrade --all --config /etc/weir/weir.toml
  weir upgrade echo echo-1.0.0.tar --downgrade")]
pub(crate) struct Args {
    /// The extension
    #[arg(value_name = "ID", required_unless_present = "all")]
    id: Option<ExtensionId>,
    /// The package; by default, from where the last one came
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    source: Option<Source>,
    /// All extensions that came from a package
    #[arg(long, conflicts_with_all = ["id", "source", "grant"])]
    all: bool,
    /// Take a lower version, too
    #[arg(long, conflicts_with = "all")]
    downgrade: bool,
    #[command(flatten)]
    granted: Granted,
    #[command(flatten)]
    file: OfFile,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Args { id, source, downgrade, granted, file, all: _ } = args;
    if let Some(id) = id {
        let source = match source {
            Some(source) => source,
            None => {
                let sources = sources(&file).await?;
                let found = sources.into_iter().find(|(other, _)| *other == id.as_str());
                let (_, source) = found.ok_or_else(|| {
                    Usage(format!("it is not known where `{id}` came from: name the SOURCE of its package"))
                })?;
                match source.newest()? {
                    Some(newest) => newest,
                    None => return nothing_newer(&id, &source),
                }
            }
        };
        return one(&id, source, downgrade, &granted, &file).await;
    }
    let mut has_failed = false;
    for (id, source) in sources(&file).await? {
        let id: ExtensionId = id.parse()?;
        let upgraded = match source.newest() {
            Ok(Some(newest)) => one(&id, newest, false, &granted, &file).await,
            Ok(None) => nothing_newer(&id, &source),
            Err(error) => Err(error),
        };
        if let Err(error) = upgraded {
            say(&error.context(format!("`{id}` was not upgraded")));
            has_failed = true;
        }
    }
    if has_failed { Err(Said.into()) } else { Ok(()) }
}

fn nothing_newer(id: &ExtensionId, source: &Source) -> anyhow::Result<()> {
    output::line(&format!("`{id}` has nothing newer than `{}`", printable(&source.to_string())))
}

/// The extensions that came from packages, and from where.
pub(super) async fn sources(file: &OfFile) -> anyhow::Result<Vec<(String, Source)>> {
    let device = Device::open(&file.config).await?;
    let mut sources = Vec::new();
    for extension in &device.config.extensions {
        let installed = device.edit(extension.id.as_str())?.file.installed(extension.id.as_str());
        if let Some(source) = installed.and_then(|installed| installed.source) {
            sources.push((extension.id.to_string(), source.parse()?));
        }
    }
    Ok(sources)
}

/// The component that an extension has now, and its version, as far as they are known.
pub(super) fn present(extension: &ExtensionConfig) -> (Option<Inspection>, Option<Version>) {
    let Some(path) = extension.component.path() else { return (None, None) };
    let found = inspect(path).ok();
    let signature = weir_package::open(&Signature::path_of(path)).ok();
    let signature = signature.and_then(|file| {
        let mut text = Vec::new();
        let most = Signature::MAX_BYTES as u64;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, most), &mut text).ok()?;
        Signature::parse(&text).ok()
    });
    let of_manifest = || found.as_ref()?.manifest.as_ref()?.version.parse().ok();
    let version = signature.map(|signature| signature.version).or_else(of_manifest);
    (found, version)
}

async fn one(
    id: &ExtensionId,
    source: Source,
    downgrade: bool,
    granted: &Granted,
    file: &OfFile,
) -> anyhow::Result<()> {
    let fetched = Fetched::of(source)?;
    let version = fetched.version()?;
    let device = Device::open(&file.config).await?;
    let Some(extension) = device.extension(id.as_str()) else {
        return Err(ControlError::Unknown(id.to_string()).into());
    };
    let (before, version_before) = present(extension);
    let sha256 = ArtifactHash::from_bytes(fetched.package.sha256.bytes());
    if let Some(before) = &version_before {
        if *before == version && extension.sha256 == Some(sha256) {
            return output::line(&format!("`{id}` has version {version} already"));
        }
        if version < *before && !downgrade {
            bail!("`{id}` has version {before}, and {version} is lower: `--downgrade` takes it all the same");
        }
    }
    let name = fetched.source.to_string();
    trust::check(&device.config.main, &name, fetched.signature.as_ref(), sha256, fetched.package.size)?;
    let staged = device.stage(id.as_str(), &version.to_string(), &fetched)?;
    let component = device.installed(&staged, &fetched)?;
    let mut edit = device.edit(id.as_str())?;
    let failed = format!("cannot change `{}`", edit.path.display());
    edit.file.install(id.as_str(), &component).context(failed)?;
    granted.write(&mut edit.file, id.as_str(), &fetched.found)?;
    let source = component.source.clone().context("a package has a source")?;
    let warnings = device.checked(&edit)?.extensions.into_iter().find(|it| it.id == *id);
    let warnings = warnings.map(|extension| {
        let fault = needs::fault(&extension, &fetched.found).map(|text| format!("`{id}`: {text}"));
        fault.into_iter().chain(needs::warnings(&extension, &fetched.found)).collect::<Vec<_>>()
    });
    device.install(id.as_str(), &version.to_string(), staged, &edit, &source)?;

    Fetched::warn_without_compiler();
    let mut text = format!("{}\n", fetched.shown(&version));
    let changes = before.map(|before| asked::changes(&before, &fetched.found)).unwrap_or_default();
    if !changes.is_empty() {
        text.push_str("what it asks for has changed:\n");
        text.push_str(&asked::indented(&changes));
    }
    let before = version_before.map_or_else(|| "an unknown version".to_owned(), |before| before.to_string());
    text.push_str(&format!("`{}` has it in the place of {before} of `{id}`\n", edit.path.display()));
    for warning in warnings.unwrap_or_default() {
        output::complain(&format!("warning: {}", printable(&warning)));
    }
    output::write(text.as_bytes())
}
