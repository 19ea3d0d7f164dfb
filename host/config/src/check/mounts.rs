//! Extensions that serve HTTP: their paths, who may reach them, and what they cannot have.

use std::path::PathBuf;

use super::{
    Judged,
    paths::{resolved, shown},
    repeated,
};
use crate::{
    Config, ExtensionConfig, ServesHttp,
    error::{ConfigError, Location},
    section::suggestion,
};

impl<'c> Judged<'c> {
    fn mounted(&self) -> impl Iterator<Item = (usize, &'c ExtensionConfig, &'c ServesHttp)> {
        self.extensions().filter_map(|(index, it)| Some((index, it, it.serves_http.as_ref()?)))
    }

    pub(super) fn place_in_mount(&self, extension: usize, key: &str) -> Option<Location> {
        self.places_of_extension(extension)?.within("serves-http")?.of(key)
    }

    /// Reports two extensions with one path, and what needs a program that runs by itself.
    pub(super) fn mounts(&self, errors: &mut Vec<ConfigError>) {
        let mounted = self.mounted().filter(|(_, _, http)| http.is_mounted());
        let paths = mounted.map(|(index, it, http)| (&http.path, (index, it, http)));
        for ((first, other, _), (index, extension, http)) in repeated(paths) {
            let (id, path) = (&extension.id, &http.path);
            let message =
                format!("`{}` and `{id}` both serve `{path}`: give each a path of its own", other.id);
            let key = format!("extension[{id}].serves-http.path");
            let error = ConfigError::new(key, message, self.place_in_mount(index, "path"));
            errors.push(error.note(self.place_in_mount(first, "path"), "the other is here"));
        }
        self.sockets_of_mounts(errors);
        for (index, extension, _) in self.mounted() {
            let id = &extension.id;
            let own = extension.http_contract();
            for party in
                self.parties().filter(|party| party.fulfills.iter().any(|it| Some(it) == own.as_ref()))
            {
                let message =
                    format!("`{}` fulfills the contract that Main has for requests to `{id}`", party.name);
                errors.push(ConfigError::new(
                    format!("{}.fulfills", party.path),
                    message,
                    party.place("fulfills", 0),
                ));
            }
            for (key, is_empty) in [
                ("fulfills", extension.fulfills.is_empty()),
                ("subscribes", extension.subscribes.is_empty()),
                ("takes", extension.takes.is_empty()),
            ] {
                if !is_empty {
                    let message =
                        format!("`{id}` serves HTTP, so it has no inbox for `{key}`: remove one of the two");
                    errors.push(ConfigError::new(
                        format!("extension[{id}].{key}"),
                        message,
                        self.places_of_extension(index).and_then(|at| at.of_item(key, 0)),
                    ));
                }
            }
        }
    }

    /// Reports sockets of servers that two have, or that are Main's.
    fn sockets_of_mounts(&self, errors: &mut Vec<ConfigError>) {
        let of_main = self.config.main.sockets();
        let mut seen: Vec<(String, PathBuf, Option<Location>)> =
            of_main.map(|(key, socket)| (key.to_owned(), resolved(socket), None)).collect();
        for (index, extension, http) in self.mounted() {
            let Some(socket) = &http.socket else { continue };
            let key = format!("extension[{}].serves-http.socket", extension.id);
            let at = self.place_in_mount(index, "socket");
            let path = resolved(socket);
            if let Some((other, _, place)) = seen.iter().find(|(_, other, _)| *other == path) {
                let message =
                    format!("`{key}` and `{other}` are both {}: give each its own path", shown(socket));
                let error = ConfigError::new(&*key, message, at.clone());
                errors.push(match place {
                    Some(place) => error.note(Some(place.clone()), "the other is here"),
                    None => error,
                });
            }
            seen.push((key, path, at));
        }
    }

    /// Reports servers that nobody may reach, and peers that may reach one and are not configured.
    pub(super) fn callers_of_mounts(&self, errors: &mut Vec<ConfigError>) {
        for (index, extension, http) in self.mounted() {
            let id = &extension.id;
            let said = match (http.open, http.peers.is_empty()) {
                (false, true) if http.socket.is_none() => {
                    "nobody may reach it: list `peers`, set `open = true` for anybody, or give it a `socket`"
                }
                (true, false) => "anybody may reach it, so `peers` has no effect: remove one of the two",
                _ => "",
            };
            if !said.is_empty() {
                let key = format!("extension[{id}].serves-http");
                let at = self.place_in_mount(index, "open").or_else(|| self.place_in_mount(index, "path"));
                errors.push(ConfigError::new(&*key, format!("in `{key}`: {said}"), at));
            }
            for (item, peer) in http.peers.iter().enumerate() {
                if self.config.peers.iter().any(|known| known.name == *peer) {
                    continue;
                }
                let known = self.config.peers.iter().map(|known| known.name.as_str());
                let help = suggestion(peer.as_str(), known, errors, "add its `[peer.\"…\"]`");
                let key = format!("extension[{}].serves-http.peers", extension.id);
                let message = format!("in `{key}`: no peer `{peer}` is configured: {help}");
                let places = self.places_of_extension(index).and_then(|at| at.within("serves-http"));
                errors.push(ConfigError::new(key, message, places.and_then(|at| at.of_item("peers", item))));
            }
        }
    }

    /// Warnings about servers that anybody may reach, or nobody, because no gateway listens.
    pub(super) fn open_mounts(&self) -> impl Iterator<Item = String> {
        let Config { sections, .. } = self.config;
        let has_gateway = sections.all().any(|section| section.lets_peers_in());
        self.mounted().filter_map(move |(_, extension, http)| match (has_gateway, http.open) {
            (false, _) => Some(format!("`{}` serves HTTP, and no `[gateway]` listens for it", extension.id)),
            (true, true) => Some(format!(
                "anybody who reaches the gateway may use `{}`, at `{}`",
                extension.id, http.path
            )),
            (true, false) => None,
        })
    }
}
