//! Packages for other registries than Rust's. Each is made by the registry's own tool, below `target/release-packages`.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use serde_json::Value;
use tempfile::tempdir;

use super::{Release, VERSION, directory, in_tarball};
use crate::{
    files,
    run::{output, root, run},
    setup::{self, GO, NODE, PYTHON},
};

const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

/// Makes wheels and source distributions, as `pyproject.toml` says.
const HATCHLING: &str = "hatchling==1.33.0";

/// Writes the files whose paths are read from stdin into a zip file, below a directory.
const ZIP: &str = "\
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as archive:
    for line in sys.stdin.read().splitlines():
        path, name = line.split('\\t')
        archive.write(path, name)
";

impl Release {
    /// Makes and checks the packages for npm, PyPI and Go, and the versions of what C's tools install.
    pub(super) fn others(&mut self) -> Result<()> {
        setup::require(&[&NODE, &PYTHON, &GO])?;
        self.npm()?;
        self.python()?;
        self.go()?;
        if !files::read("guest-sdk/c/CMakeLists.txt")?.contains(&format!(" VERSION {VERSION} ")) {
            self.find(
                "guest-sdk/c",
                "the project has another version",
                format!("write {VERSION} into `CMakeLists.txt`"),
            );
        }
        Ok(())
    }

    fn npm(&mut self) -> Result<()> {
        let to = directory("npm")?;
        for (name, folder) in self.names.npm.clone() {
            let manifest: Value = serde_json::from_str(&files::read(folder.join("package.json"))?)?;
            let url = format!("git+{REPOSITORY}.git");
            let directory = folder.to_string_lossy();
            let expected = [
                ("/name", &*name),
                ("/version", VERSION),
                ("/repository/url", &url),
                ("/repository/directory", &directory),
            ];
            let needed = ["/author", "/description", "/keywords", "/license"].map(ToOwned::to_owned);
            if !self.has_fields(&name, &manifest, &expected, &needed) {
                continue;
            }
            let npm = |arguments: &[&str]| {
                output(Command::new("npm").args(arguments).current_dir(root()?.join(&folder)))
            };
            if manifest.pointer("/devDependencies").is_some() {
                npm(&["install", "--no-audit", "--no-fund", "--silent"])?;
            }
            npm(&["pack", "--silent", "--pack-destination", &to.to_string_lossy()])?;
            let files = in_tarball(&to.join(format!("{name}-{VERSION}.tgz")))?;
            self.contents("npm", &name, &files, Some(&files::read(folder.join("README.md"))?))?;
        }
        Ok(())
    }

    fn python(&mut self) -> Result<()> {
        let to = directory("pypi")?;
        let environment = tempdir().context("cannot make a directory")?;
        let program = |name: &str| Command::new(environment.path().join("bin").join(name));
        run(Command::new("python3").args(["-m", "venv"]).arg(environment.path()))?;
        run(program("pip").args(["install", "--quiet", "--disable-pip-version-check", HATCHLING]))?;
        for (name, folder) in self.names.pypi.clone() {
            let manifest: Value = toml::from_str(&files::read(folder.join("pyproject.toml"))?)?;
            let expected = [
                ("/project/name", &*name),
                ("/project/version", VERSION),
                ("/project/urls/Repository", REPOSITORY),
            ];
            if files::read(folder.join("LICENSE"))? != files::read("LICENSE")? {
                self.find(&name, "its `LICENSE` is not that of the repository", "copy it");
            }
            let needed =
                ["authors", "classifiers", "description", "keywords", "license", "license-files", "readme"];
            if !self.has_fields(&name, &manifest, &expected, &needed.map(|key| format!("/project/{key}"))) {
                continue;
            }
            output(program("hatchling").args(["build", "-d"]).arg(&to).current_dir(root()?.join(&folder)))?;
            let stem = format!("{}-{VERSION}", name.replace('-', "_"));
            let source = in_tarball(&to.join(format!("{stem}.tar.gz")))?;
            self.contents("pypi/source", &name, &source, Some(&files::read(folder.join("README.md"))?))?;
            let listed = "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))";
            let listed = output(
                program("python").args(["-c", listed]).arg(to.join(format!("{stem}-py3-none-any.whl"))),
            )?;
            let wheel = listed.lines().map(|file| file.replace(&stem, &name)).collect();
            self.contents("pypi/wheel", &name, &wheel, None)?;
        }
        Ok(())
    }

    fn go(&mut self) -> Result<()> {
        let to = directory("go")?;
        for (module, folder) in self.names.go.clone() {
            let definition = files::read(folder.join("go.mod"))?;
            let line = format!("module {module}");
            if !self.compare(&module, "`go.mod`'s first line", definition.lines().next(), &line) {
                continue;
            }
            let (release, own) = (format!("v{VERSION}"), format!("{}/v{VERSION}", folder.display()));
            if let Some(commit) = tagged(&release)?
                && tagged(&own)?.as_ref() != Some(&commit)
            {
                self.find(
                    &module,
                    format!("has no tag at the commit of `{release}`"),
                    format!("tag it `{own}`"),
                );
            }
            let mut files = in_repository(&folder)?;
            serve(&to, &module, &folder, &files)?;
            files.insert("LICENSE".to_owned());
            self.contents("go", &module, &files, Some(&files::read(folder.join("README.md"))?))?;
        }
        Ok(())
    }

    /// Checks fields of a manifest: what they are, or only that they are there. Without them there is no package to look into.
    fn has_fields(
        &mut self,
        package: &str,
        manifest: &Value,
        expected: &[(&str, &str)],
        needed: &[String],
    ) -> bool {
        let mut has_all = true;
        for (field, value) in expected {
            let found = manifest.pointer(field).and_then(Value::as_str);
            has_all &= self.compare(package, &format!("`{field}`"), found, value);
        }
        for field in needed.iter().filter(|field| manifest.pointer(field).is_none()) {
            self.find(package, format!("its manifest has no `{field}`"), "write it");
            has_all = false;
        }
        has_all
    }
}

/// The files of a folder that belong to the repository, or would with the next commit.
fn in_repository(folder: &Path) -> Result<BTreeSet<String>> {
    let arguments = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let listed = output(Command::new("git").args(arguments).current_dir(root()?.join(folder)))?;
    Ok(listed.lines().map(ToOwned::to_owned).collect())
}

/// The commit of a tag, if there is one.
fn tagged(tag: &str) -> Result<Option<String>> {
    let arguments = ["for-each-ref", "--format=%(objectname) %(*objectname)", &format!("refs/tags/{tag}")];
    let listed = output(Command::new("git").args(arguments).current_dir(root()?))?;
    // A tag with a message is an object of its own, and then comes the commit.
    Ok(listed.split_whitespace().last().map(ToOwned::to_owned))
}

/// Writes what a proxy of Go serves of a module, and has Go fetch it, which checks it.
fn serve(to: &Path, module: &str, folder: &Path, files: &BTreeSet<String>) -> Result<()> {
    let (root, versions) = (root()?, to.join(module).join("@v"));
    files::make_directory(&versions)?;
    let file = |end: &str| versions.join(format!("v{VERSION}.{end}"));
    files::copy(&root.join(folder).join("go.mod"), &file("mod"))?;
    files::write(&file("info"), format!("{{\"Version\":\"v{VERSION}\"}}"))?;
    let line = |from: PathBuf, name: &str| format!("{}\t{module}@v{VERSION}/{name}\n", from.display());
    let own = files.iter().map(|name| line(root.join(folder).join(name), name));
    // Go itself puts the licence of the repository into a module that has none.
    files::write(&file("list"), own.chain([line(root.join("LICENSE"), "LICENSE")]).collect::<String>())?;
    let list = fs::File::open(file("list")).context("cannot open the list of files")?;
    run(Command::new("python3").args(["-c", ZIP]).arg(file("zip")).stdin(list))?;
    let cache = tempdir().context("cannot make a directory")?;
    let mut download = Command::new("go");
    download.args(["mod", "download", "-modcacherw", &format!("{module}@v{VERSION}")]);
    download.env("GOPROXY", format!("file://{}", to.display())).env("GONOSUMDB", module);
    run(download.env("GOMODCACHE", cache.path()).current_dir(cache.path()))
}
