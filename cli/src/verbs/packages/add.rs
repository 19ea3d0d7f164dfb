//! `weir add`: the component of a package becomes an extension of an operator's file.

use clap::ValueHint;
use weir_host::names::ExtensionId;

use super::{
    Fetched, OfFile,
    asked::{self, Granted},
    device::Device,
    source::Source,
};
use crate::{exit::Usage, features, output, verbs::check::needs};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
SOURCE is a directory or a tar that `weir package` made, or oci://REGISTRY/NAME:TAG, which needs the program
weir-registry. The component goes to `main.plugin-dir`, and its table behind those of the other
extensions. The table has no grants but those of --grant; what else the component asks for is shown, to be pasted. A signature must be
of one of `main.trusted-keys`. If anything is refused, nothing is written. `weir reload --all` starts the extension
in a Main that runs.

Examples:
  weir add echo-1.0.0.tar
  weir add echo-1.0.0.tar --config /etc/weir/weir.toml --grant fulfills --grant wants
  weir add oci://registry.example.com/echo:1.0.0 --grant all
  weir add reader.tar --grant 'grants.dirs = [{ host = \"/srv\", guest = \"/data\", mode = \"ro\" }]'")]
pub(crate) struct Args {
    /// The package
    #[arg(value_name = "SOURCE", value_hint = ValueHint::AnyPath)]
    source: Source,
    /// The id of the extension; by default, that of the package
    #[arg(long, value_name = "ID")]
    id: Option<ExtensionId>,
    #[command(flatten)]
    granted: Granted,
    #[command(flatten)]
    file: OfFile,
}

pub(crate) async fn run(Args { source, id, granted, file }: Args) -> anyhow::Result<()> {
    let fetched = Fetched::of(source, &features::load(&file.config)?.main).await?;
    let suggested = || fetched.id()?.parse().ok();
    let id: ExtensionId = id.or_else(suggested).ok_or_else(|| {
        Usage(format!("the package `{}` suggests no id: give one with `--id`", fetched.source))
    })?;
    let version = fetched.version()?;
    let device = Device::open(&file.config).await?;
    if device.extension(id.as_str()).is_some() {
        return Err(Usage(format!(
            "`{}` has an extension `{id}` already: `weir upgrade {id} SOURCE` gives it another version, and `--id` this one \
             another id",
            file.config.display()
        ))
        .into());
    }
    fetched.check(&device.config.main)?;
    let component = device.installed(id.as_str(), &fetched)?;
    let mut edit = device.edit(id.as_str())?;
    edit.file.add(id.as_str(), &component);
    device.name_signed(&mut edit, id.as_str(), &fetched)?;
    let granted = granted.write(&mut edit.file, id.as_str(), &fetched.found)?;
    let extension = device.install(id.as_str(), &fetched, &component, &edit)?;

    Fetched::warn_without_compiler();
    let mut text = format!("{}\n{}", fetched.shown(&version), asked::shown(&granted));
    let missing = asked::missing(&edit.file, id.as_str(), &fetched.found);
    if !missing.is_empty() {
        text.push_str("it asks for this, which it does not have:\n");
        text.push_str(&asked::indented(&missing));
    }
    text.push_str(&format!(
        "added to `{}` as `{id}`; its component is `{}`\n",
        edit.path.display(),
        device.path_of(&component)?.display()
    ));
    if let Some(warning) = needs::of_size(&extension, &fetched.found) {
        output::complain(&format!("warning: {}", output::printable(&warning)));
    }
    output::write(text.as_bytes())
}
