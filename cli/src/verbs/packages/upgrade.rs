//! `weir upgrade`: extensions of an operator's file get other versions of their components.

use std::path::Path;

use anyhow::{Context, bail};
use clap::ValueHint;
use semver::Version;
use weir_host::{
    ExtensionConfig,
    component::{Inspection, Signature, inspect},
    control::ControlError,
    names::ExtensionId,
};

use super::{
    Fetched, OfFile,
    asked::{self, Granted},
    device::Device,
    sha256,
    source::Source,
};
use crate::{
    client::Interrupted,
    exit::{Said, Usage, say},
    features,
    output::{self, printable},
    verbs::check::needs,
};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without SOURCE, the package is looked for where the last one came from: a path is read again, and of a registry the
highest version is taken. Shows what the new version asks for that the one before did not. Grants stay as they are
but for --grant. The component before stays in `main.plugin-dir`, until you remove it. A component of another id than the
one before has is refused without --signed-as, and so is one without a signature in the place of a signed one.

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
    /// Take a lower version, too, and any if the one before is not known
    #[arg(long, conflicts_with = "all")]
    downgrade: bool,
    /// Take a component with this id, though the one before has another
    #[arg(long, value_name = "ID", conflicts_with = "all")]
    signed_as: Option<ExtensionId>,
    #[command(flatten)]
    granted: Granted,
    #[command(flatten)]
    file: OfFile,
}

pub(crate) async fn run(args: Args) -> anyhow::Result<()> {
    let Args { id, source, downgrade, signed_as, granted, file, all: _ } = args;
    let named = Named { downgrade, signed_as };
    if let Some(id) = id {
        let source = match source {
            Some(source) => source,
            None => {
                let sources = sources(&file).await?;
                let found = sources.into_iter().find(|(other, _)| *other == id.as_str());
                let (_, source) = found.ok_or_else(|| {
                    Usage(format!("it is not known where `{id}` came from: name the SOURCE of its package"))
                })?;
                match source.newest().await? {
                    Some(newest) => newest,
                    None => return nothing_newer(&id, &source),
                }
            }
        };
        return one(&id, source, &named, &granted, &file).await;
    }
    let mut has_failed = false;
    for (id, source) in sources(&file).await? {
        let id: ExtensionId = id.parse()?;
        let upgraded = match source.newest().await {
            Ok(Some(newest)) => one(&id, newest, &named, &granted, &file).await,
            Ok(None) => nothing_newer(&id, &source),
            Err(error) => Err(error),
        };
        if let Err(error) = upgraded {
            if error.is::<Interrupted>() {
                return Err(error);
            }
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

/// What the operator takes that is refused otherwise.
struct Named {
    downgrade: bool,
    signed_as: Option<ExtensionId>,
}

/// The component that an extension has now, as far as it is known.
#[derive(Default)]
pub(super) struct Present {
    found: Option<Inspection>,
    signature: Option<Signature>,
    pub(super) version: Option<Version>,
}

impl Present {
    pub(super) fn of(extension: &ExtensionConfig) -> Self {
        let Some(path) = extension.component.path() else { return Self::default() };
        let found = inspect(path).ok();
        // One of another content is left over from an earlier component.
        let is_of_it = |signature: &Signature| found.as_ref().is_none_or(|it| it.sha256 == signature.sha256);
        let signature = signature_beside(path).filter(is_of_it);
        let of_manifest = || found.as_ref()?.manifest.as_ref()?.version.parse().ok();
        let version = signature.as_ref().map(|signature| signature.version.clone()).or_else(of_manifest);
        Self { found, signature, version }
    }

    /// The id by its signer or its author.
    fn id(&self) -> Option<&ExtensionId> {
        let signed = self.signature.as_ref().map(|signature| &signature.id);
        signed.or_else(|| Some(&self.found.as_ref()?.manifest.as_ref()?.id))
    }

    /// Checks that a component may come in the place of this one. `highest` is the highest version that is known of it.
    fn yields_to(
        &self,
        extension: &ExtensionConfig,
        fetched: &Fetched,
        highest: Option<&Version>,
        named: &Named,
    ) -> anyhow::Result<()> {
        let (id, version) = (&extension.id, fetched.version()?);
        let expected = named.signed_as.as_ref().or(self.id()).unwrap_or(id);
        if fetched.id() != Some(expected.as_str()) {
            let other = printable(fetched.id().unwrap_or_default());
            bail!(
                "`{id}` has the component `{expected}`, and the package `{}` has `{other}`: `--signed-as {other}` takes it \
                 all the same, with the grants of `{id}`",
                fetched.source
            );
        }
        if self.signature.is_some() && fetched.signature.is_none() {
            bail!(
                "`{id}` has a signed component, and the package `{}` has no signature: sign it with `weir sign`, or \
                 `weir remove {id}` and add it",
                fetched.source
            );
        }
        let sha256 = Some(sha256(&fetched.package));
        let present = self.found.as_ref().map(|found| found.sha256);
        if self.version.as_ref() == Some(&version) && present != sha256 {
            bail!(
                "`{id}` has version {version} with another content: a new component has a new version, so ask its author \
                 for one"
            );
        }
        match highest {
            Some(highest) if version < *highest && !named.downgrade => {
                bail!(
                    "`{id}` has version {highest}, and {version} is lower: `--downgrade` takes it all the same"
                )
            }
            None if !named.downgrade => {
                bail!("the version of `{id}` is not known: `--downgrade` takes {version} all the same")
            }
            _ => Ok(()),
        }
    }
}

/// The signature beside a component, if there is one that counts.
fn signature_beside(path: &Path) -> Option<Signature> {
    let signature = weir_package::open(&Signature::path_of(path)).ok();
    signature.and_then(|file| {
        let mut text = Vec::new();
        let most = Signature::MAX_BYTES as u64;
        std::io::Read::read_to_end(&mut std::io::Read::take(file, most), &mut text).ok()?;
        Signature::parse(&text).ok()
    })
}

async fn one(
    id: &ExtensionId,
    source: Source,
    named: &Named,
    granted: &Granted,
    file: &OfFile,
) -> anyhow::Result<()> {
    let fetched = Fetched::of(source, &features::load(&file.config)?.main).await?;
    let version = fetched.version()?;
    let device = Device::open(&file.config).await?;
    let Some(extension) = device.extension(id.as_str()) else {
        return Err(ControlError::Unknown(id.to_string()).into());
    };
    fetched.check(&device.config.main)?;
    let before = Present::of(extension);
    let locked = device.lock()?.and_then(|lock| lock.extensions.get(id)?.version.as_ref()?.parse().ok());
    let highest = before.version.clone().max(locked);
    before.yields_to(extension, &fetched, highest.as_ref(), named)?;
    if before.version.as_ref() == Some(&version) && extension.sha256 == Some(sha256(&fetched.package)) {
        return output::line(&format!("`{id}` has version {version} already"));
    }
    let is_older = highest.is_none_or(|highest| version < highest) && extension.update.is_some();
    let component = device.installed(id.as_str(), &fetched)?;
    let mut edit = device.edit(id.as_str())?;
    let failed = format!("cannot change `{}`", edit.path.display());
    edit.file.install(id.as_str(), &component).context(failed)?;
    device.name_signed(&mut edit, id.as_str(), &fetched)?;
    let granted = granted.write(&mut edit.file, id.as_str(), &fetched.found)?;
    let extension = device.install(id.as_str(), &fetched, &component, &edit)?;
    let fault = needs::fault(&extension, &fetched.found).map(|text| format!("`{id}`: {text}"));
    let warnings = fault.into_iter().chain(needs::warnings(&extension, &fetched.found));

    Fetched::warn_without_compiler();
    let mut text = format!("{}\n", fetched.shown(&version));
    if let (Some(old), Some(new)) = (&before.signature, &fetched.signature)
        && old.key != new.key
    {
        text.push_str(&format!("the one before was signed with the key `{}`\n", old.key));
    }
    text.push_str(&asked::shown(&granted));
    let changes = before.found.map(|before| asked::changes(&before, &fetched.found)).unwrap_or_default();
    if !changes.is_empty() {
        text.push_str("what it asks for has changed:\n");
        text.push_str(&asked::indented(&changes));
    }
    let before = before.version.map_or_else(|| "an unknown version".to_owned(), |before| before.to_string());
    text.push_str(&format!("`{}` has it in the place of {before} of `{id}`\n", edit.path.display()));
    if is_older {
        text.push_str(&format!("Main takes an older version only with `weir reload {id} --now`\n"));
    }
    for warning in warnings {
        output::complain(&format!("warning: {}", printable(&warning)));
    }
    output::write(text.as_bytes())
}
