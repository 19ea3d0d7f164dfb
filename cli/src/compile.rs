//! `weir keygen` and `weir compile`: artifacts for devices that do not compile.

use std::{
    fs::{self, OpenOptions},
    io::Write,
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::Context;
use weir_host::{
    component::{self, CompileTarget, SigningKey},
    config::Limits,
};

use crate::{
    args::{CompileArgs, KeygenArgs},
    compilation::compilation,
    output::{self, printable},
    progress,
};

pub(crate) fn keygen(args: &KeygenArgs) -> anyhow::Result<()> {
    let key = if args.public { read_key(&args.file)? } else { make_key(&args.file)? };
    output::line(&format!("trusted-keys = [\"{}\"]", key.trusted_key()))
}

pub(crate) fn compile(args: &CompileArgs) -> anyhow::Result<()> {
    let key = read_key(&args.key)?;
    let target = CompileTarget::new(args.target.as_deref(), args.address_space)?;
    let what = format!("compiling `{}`", printable(&args.file.display().to_string()));
    let artifact = progress::during(&what, || {
        component::compile(&args.file, Some(&target), &Limits::max(), args.traces, &compilation(), &key)
    })?;
    let output = args.output.clone().unwrap_or_else(|| args.file.with_extension("cwasm"));
    anyhow::ensure!(
        output != args.file,
        "the artifact would overwrite `{}`: choose another `--output`",
        output.display()
    );
    write(&output, &artifact).with_context(|| format!("cannot write `{}`", output.display()))
}

fn make_key(file: &Path) -> anyhow::Result<SigningKey> {
    let failed = || format!("cannot make the key `{}`", file.display());
    let key = SigningKey::generate().with_context(failed)?;
    let pem = key.to_pem().with_context(failed)?;
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(file).with_context(failed)?;
    file.write_all(pem.as_bytes()).and_then(|()| file.sync_all()).with_context(failed)?;
    Ok(key)
}

fn read_key(file: &Path) -> anyhow::Result<SigningKey> {
    let failed = || format!("cannot use the key `{}`", file.display());
    SigningKey::from_pem(&fs::read_to_string(file).with_context(failed)?).with_context(failed)
}

/// Writes the whole file, or leaves the old one.
fn write(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = fs::Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new().permissions(permissions).tempfile_in(dir)?;
    file.write_all(content)?;
    file.persist(path)?;
    Ok(())
}
