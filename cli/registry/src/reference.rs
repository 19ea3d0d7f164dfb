//! Names of what lies in a registry, as docker and podman have them: `HOST[:PORT]/NAME[:TAG][@DIGEST]`.

use std::{fmt, str::FromStr};

use weir_package::Digest;

/// Most bytes of a repository's name, as most registries have it.
const NAME_MAX: usize = 255;

/// Most bytes of a tag, as the standard has it.
const TAG_MAX: usize = 128;

/// The tag of a reference that has none, and no digest.
const LATEST: &str = "latest";

/// The host that `docker.io` stands for.
const DOCKER_HUB: (&str, &str) = ("docker.io", "registry-1.docker.io");

/// A repository of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The registry's host, with a port if one is named.
    pub(crate) host: String,
    /// The name within the registry.
    pub(crate) name: String,
}

/// A manifest in a repository, named by a tag, by its digest, or by both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    pub(crate) repository: Repository,
    pub(crate) tag: Option<String>,
    /// If it is there, it decides, and the tag is only shown.
    pub(crate) digest: Option<Digest>,
}

/// Why a text names nothing in a registry.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum ReferenceError {
    #[error("it names no registry: write `HOST/NAME:TAG`, as in `registry.example.com/plugins/echo:1.0.0`")]
    NoHost,
    #[error("`{0}` is no host with an optional port")]
    Host(String),
    #[error(
        "`{0}` is no name of a repository: it has lowercase letters and digits, and `.`, `_`, `-` and `/` between them"
    )]
    Name(String),
    #[error(
        "`{0}` is no tag: it has at most {TAG_MAX} letters, digits, `_`, `.` and `-`, and does not begin with `.` or `-`"
    )]
    Tag(String),
    #[error("`{0}` is no digest of the form `sha256:` with 64 lowercase hexadecimal digits")]
    Digest(String),
    #[error("a repository is named without a tag or digest")]
    NotARepository,
}

impl FromStr for Reference {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest = digest.parse().map_err(|_| ReferenceError::Digest(digest.to_owned()))?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        let (host, rest) = rest.split_once('/').ok_or(ReferenceError::NoHost)?;
        let (name, tag) = match rest.split_once(':') {
            Some((name, tag)) => (name, Some(tag.to_owned())),
            None => (rest, None),
        };
        // Docker would look for a name without a registry on its own.
        if !host.contains(['.', ':']) && host != "localhost" {
            return Err(ReferenceError::NoHost);
        }
        if !is_host(host) {
            return Err(ReferenceError::Host(host.to_owned()));
        }
        if name.len() > NAME_MAX || !name.split('/').all(is_component) {
            return Err(ReferenceError::Name(name.to_owned()));
        }
        if let Some(tag) = &tag
            && !is_tag(tag)
        {
            return Err(ReferenceError::Tag(tag.clone()));
        }
        let tag = if tag.is_none() && digest.is_none() { Some(LATEST.to_owned()) } else { tag };
        let repository = Repository { host: host.to_ascii_lowercase(), name: name.to_owned() };
        Ok(Self { repository, tag, digest })
    }
}

impl FromStr for Repository {
    type Err = ReferenceError;

    fn from_str(text: &str) -> Result<Self, ReferenceError> {
        let name = text.split_once('/').map_or("", |(_, name)| name);
        if name.contains([':', '@']) {
            return Err(ReferenceError::NotARepository);
        }
        Ok(text.parse::<Reference>()?.repository)
    }
}

impl Repository {
    /// The host, with a port if there is one, that answers for the registry.
    pub(crate) fn authority(&self) -> &str {
        let (name, host) = DOCKER_HUB;
        if self.host == name { host } else { &self.host }
    }
}

impl Reference {
    /// What the registry is asked for.
    pub(crate) fn wanted(&self) -> String {
        match (&self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.clone().unwrap_or_else(|| LATEST.to_owned()),
        }
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.name)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

fn is_host(text: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok_and(|port| port > 0);
    let is_name = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
            && !name.starts_with(['-', '.'])
    };
    if let Some(rest) = text.strip_prefix('[') {
        let (address, port) = rest.split_once(']').unwrap_or_default();
        let is_address = address.parse::<std::net::Ipv6Addr>().is_ok();
        return is_address && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port));
    }
    text.split_once(':').map_or_else(|| is_name(text), |(name, port)| is_name(name) && is_port(port))
}

/// Whether it is one part of a name, between slashes.
fn is_component(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let (first, last) = (text.bytes().next(), text.bytes().last());
    let between = text.split(|character: char| character.is_ascii() && is_inner(character as u8));
    first.is_some_and(is_inner)
        && last.is_some_and(is_inner)
        && between
            .into_iter()
            .all(|run| matches!(run, "" | "." | "_" | "__") || run.bytes().all(|byte| byte == b'-'))
}

/// Whether it is a tag as the standard has them.
pub(crate) fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    text.len() <= TAG_MAX
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || b".-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_reference_has_the_parts_that_docker_gives_it() {
        let of = |text: &str| {
            let reference: Reference = text.parse().unwrap();
            assert!(reference.to_string().starts_with(text), "`{text}` is shown as `{reference}`");
            let Repository { host, name } = reference.repository.clone();
            (host, name, reference.tag.clone(), reference.wanted())
        };
        let some = |text: &str| Some(text.to_owned());
        let (host, name) = ("localhost:5000".to_owned(), "a/b".to_owned());
        assert_eq!(of("localhost:5000/a/b:1.0"), (host.clone(), name.clone(), some("1.0"), "1.0".into()));
        assert_eq!(of("localhost:5000/a/b"), (host.clone(), name.clone(), some("latest"), "latest".into()));
        let pinned = format!("localhost:5000/a/b:1.0@{DIGEST}");
        assert_eq!(of(&pinned), (host.clone(), name.clone(), some("1.0"), DIGEST.into()));
        assert_eq!(of(&format!("localhost:5000/a/b@{DIGEST}")), (host, name, None, DIGEST.into()));
        assert_eq!(of("[::1]:5000/a").0, "[::1]:5000");
    }

    #[test]
    fn what_is_no_reference_is_refused_by_the_part_that_is_wrong() {
        use ReferenceError::*;
        let of = |text: &str| text.parse::<Reference>().unwrap_err();
        assert_eq!(of("echo"), NoHost);
        assert_eq!(of("plugins/echo"), NoHost);
        assert_eq!(of("host.test:0/echo"), Host("host.test:0".into()));
        assert_eq!(of("user:pass/echo"), Host("user:pass".into()));
        assert_eq!(of("[::g]/echo"), Host("[::g]".into()));
        for name in ["", "A", "a//b", "../a", "a/..", "a/.", "a.", "-a", "a___b", "a?b", "a b", "é", "a/"] {
            assert_eq!(of(&format!("host.test/{name}")), Name(name.into()), "{name}");
        }
        assert_eq!(of(&format!("host.test/{}", "a".repeat(256))), Name("a".repeat(256)));
        for tag in ["", ".a", "-a", "a/b", "a:b", "a?"] {
            assert_eq!(of(&format!("host.test/a:{tag}")), Tag(tag.into()), "{tag}");
        }
        assert_eq!(of(&format!("host.test/a:{}", "a".repeat(129))), Tag("a".repeat(129)));
        for digest in ["", "sha512:00", "sha256:e3", &DIGEST.to_uppercase(), &format!("{DIGEST}0")] {
            assert_eq!(of(&format!("host.test/a@{digest}")), Digest(digest.into()), "{digest}");
        }
        assert_eq!("host.test/a:1".parse::<Repository>(), Err(NotARepository));
        assert_eq!("host.test:1/a".parse::<Repository>().unwrap().to_string(), "host.test:1/a");
    }
}
