//! What tests need beyond rustup: found, or installed from Debian's packages.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use crate::run::{output, run};

/// Programs, and the Debian packages that provide them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Need {
    packages: &'static [&'static str],
    /// A shell command that succeeds if they are installed, under any name of the packages.
    probe: &'static str,
}

/// C for WebAssembly: compiler, linker, libc and compiler runtime.
pub(crate) const C_FOR_WASM: Need = Need {
    packages: &["clang", "lld", "wasi-libc", "libclang-rt-14-dev-wasm32"],
    probe: "echo 'int main(void) { return 0; }' | clang --target=wasm32-wasi -x c - -o /dev/null",
};

/// Node and its package manager, for clients and extensions in TypeScript.
pub(crate) const NODE: Need = Need { packages: &["nodejs", "npm"], probe: "node --version && npm --version" };

/// Python with virtual environments, into which tests install what they need.
pub(crate) const PYTHON: Need =
    Need { packages: &["python3", "python3-venv"], probe: "python3 -c 'import ensurepip, venv'" };

/// Java, in which the compiler of Kotlin is written.
pub(crate) const JAVA: Need = Need { packages: &["openjdk-17-jre-headless"], probe: "java -version" };

/// Go from 1.26 on. Debian 12 has an older one: newer ones are at `https://go.dev/dl`.
pub(crate) const GO: Need =
    Need { packages: &["golang-go"], probe: "go version | grep -qE 'go1\\.(2[6-9]|[3-9][0-9])'" };

pub(crate) const CHROMIUM: Need = Need { packages: &["chromium"], probe: "chromium --version" };

/// Prometheus with its tool `promtool`.
pub(crate) const PROMETHEUS: Need =
    Need { packages: &["prometheus"], probe: "prometheus --version && promtool --version" };

/// A web server with TLS.
pub(crate) const NGINX: Need = Need { packages: &["nginx-light"], probe: "nginx -V 2>&1 | grep -q http_ssl" };

/// Debian's NATS server, for machines without a Go that can build a current one.
pub(crate) const NATS_SERVER: Need = Need { packages: &["nats-server"], probe: "nats-server --version" };

/// A registry of containers.
pub(crate) const DOCKER_REGISTRY: Need =
    Need { packages: &["docker-registry"], probe: "docker-registry --version" };

/// What copies between registries and layouts, as many have it.
pub(crate) const SKOPEO: Need = Need { packages: &["skopeo"], probe: "skopeo --version" };

/// CMake and `pkg-config`, with compilers for the machine itself.
pub(crate) const CMAKE: Need = Need {
    packages: &["cmake", "g++", "gcc", "pkg-config"],
    probe: "cmake --version && c++ --version && cc --version && pkg-config --version",
};

pub(crate) const VALGRIND: Need = Need { packages: &["valgrind"], probe: "valgrind --version" };

/// The C compiler with which `ring` is built for static programs, and the licence of musl.
pub(crate) const MUSL: Need = Need { packages: &["musl-tools"], probe: "musl-gcc --version" };

/// The program that makes a Debian in a directory.
pub(crate) const DEBOOTSTRAP: Need =
    Need { packages: &["debootstrap"], probe: "PATH=$PATH:/usr/sbin debootstrap --version" };

/// With these the kernel starts programs for other processors by an emulator, in other roots, too.
pub(crate) const FOREIGN_PROGRAMS: Need = Need {
    packages: &["qemu-user-static", "binfmt-support"],
    probe: "qemu-aarch64-static --version && PATH=$PATH:/usr/sbin update-binfmts --version",
};

/// A linker and a C library for 32-bit ARM, and an emulator.
pub(crate) const ARMV7: Need = Need {
    packages: &["gcc-arm-linux-gnueabihf", "libc6-dev-armhf-cross", "qemu-user"],
    probe: "arm-linux-gnueabihf-gcc --version && qemu-arm --version && test -d /usr/arm-linux-gnueabihf/include",
};

/// A linker and a C library for 64-bit ARM, and an emulator.
pub(crate) const AARCH64: Need = Need {
    packages: &["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross", "qemu-user"],
    probe: "aarch64-linux-gnu-gcc --version && qemu-aarch64 --version && test -d /usr/aarch64-linux-gnu/include",
};

impl Need {
    pub(crate) fn is_met(&self) -> bool {
        let mut probe = Command::new("sh");
        probe.args(["-c", self.probe]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    }
}

/// Installs what is missing. Returns what is missing if it may not install.
///
/// # Errors
/// If an installation fails, or does not suffice: the step that needs it would be skipped although it should run.
pub(crate) fn install(needs: &[&'static Need]) -> Result<Vec<&'static Need>> {
    let missing: Vec<_> = needs.iter().copied().filter(|need| !need.is_met()).collect();
    if missing.is_empty() {
        return Ok(missing);
    }
    let Some(as_root) = how_to_be_root() else { return Ok(missing) };
    let apt_get = |arguments: &[&str]| {
        // `sudo` would drop a variable set outside.
        let mut words =
            as_root.iter().chain(&["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]).chain(arguments);
        run(Command::new(words.next().context("no command")?).args(words))
    };
    let packages = packages(&missing);
    apt_get(&["update", "--quiet"])?;
    apt_get(&[&["install", "--quiet", "--yes", "--no-install-recommends"], &packages[..]].concat())?;
    let missing: Vec<_> = missing.into_iter().filter(|need| !need.is_met()).collect();
    ensure!(missing.is_empty(), "`{}` are installed, and do not suffice", packages.join(" "));
    Ok(missing)
}

/// Installs what is missing, or fails and says how to.
pub(crate) fn require(needs: &[&'static Need]) -> Result<()> {
    let missing = install(needs)?;
    ensure!(missing.is_empty(), "first run `{}`", line(&missing));
    Ok(())
}

/// The command that installs what is missing.
pub(crate) fn line(missing: &[&Need]) -> String {
    format!("sudo apt-get install --no-install-recommends {}", packages(missing).join(" "))
}

fn packages(needs: &[&Need]) -> Vec<&'static str> {
    needs.iter().flat_map(|need| need.packages).copied().collect()
}

/// A program that is run as root. `None` where that takes a password, and without `apt-get`.
pub(crate) fn as_root(program: &str) -> Option<Command> {
    let words = how_to_be_root()?;
    let mut command = Command::new(words.first().unwrap_or(&program));
    if !words.is_empty() {
        command.args(words.iter().skip(1)).arg(program);
    }
    Some(command)
}

/// The words before a command that run it as root. `None` where that takes a password, and without `apt-get`.
fn how_to_be_root() -> Option<&'static [&'static str]> {
    if !Path::new("/usr/bin/apt-get").exists() {
        return None;
    }
    if output(Command::new("id").arg("-u")).is_ok_and(|user| user.trim_end() == "0") {
        return Some(&[]);
    }
    output(Command::new("sudo").args(["-n", "true"])).is_ok().then_some(&["sudo", "-n"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_not_installed() {
        const THERE: Need = Need { packages: &["no-such-package"], probe: "true" };
        assert_eq!(install(&[&THERE]).unwrap(), Vec::<&Need>::new());
    }

    #[test]
    fn the_line_names_the_packages_of_all_that_is_missing() {
        assert_eq!(
            line(&[&C_FOR_WASM, &VALGRIND]),
            "sudo apt-get install --no-install-recommends clang lld wasi-libc libclang-rt-14-dev-wasm32 valgrind"
        );
    }
}
