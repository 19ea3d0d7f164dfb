//! The names that complete a command line, as a running Main gives them through its control interface.

use std::{collections::BTreeMap, env, ffi::OsStr, path::PathBuf, time::Duration};

use clap::{ArgMatches, CommandFactory};
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use serde_json::Value;

use super::arguments;
use crate::{
    args::{Args, Target},
    client::{self, Client, Route},
    output::printable,
};

/// How long Main may take to answer: a person waits for the names.
const PATIENCE: Duration = Duration::from_secs(1);

/// Completes a contract that an extension serves, or that a peer or Main serves and describes.
pub(crate) fn contract(current: &OsStr) -> Vec<CompletionCandidate> {
    let [described, extensions] = ask([Route::new(&["contracts"]), Route::new(&["extensions"])]);
    let mut names = Names::default();
    for extension in list(&extensions, "extensions") {
        list(extension, "fulfills").iter().for_each(|contract| names.add(contract.as_str(), None));
    }
    for contract in list(&described, "contracts") {
        names.add(text(contract, "/contract"), text(contract, "/document/info/description"));
    }
    names.that_begin_with(current)
}

/// Completes a file, or a contract that an extension serves, or that a peer or Main serves and describes.
#[cfg(feature = "tools")]
pub(crate) fn contract_or_file(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut candidates = contract(current);
    candidates.extend(PathCompleter::file().complete(current));
    candidates
}

/// Completes an operation of the contract on the command line.
pub(crate) fn operation(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut names = Names::default();
    if let Some(contract) = word("contract") {
        for method in list(&document(&contract), "methods") {
            let name = text(method, "/name").and_then(|name| name.rsplit('/').next());
            names.add(name, text(method, "/description"));
        }
    }
    names.that_begin_with(current)
}

/// Completes the arguments of the operation on the command line, or `@` and a file.
pub(crate) fn argument(current: &OsStr) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    // Zsh and fish pass the quote that is still open.
    let current = current.strip_prefix('\'').unwrap_or(current);
    if let Some(path) = current.strip_prefix('@') {
        let files = PathCompleter::file().complete(OsStr::new(path));
        return files.into_iter().map(|file| file.add_prefix("@")).collect();
    }
    let (Some(contract), Some(operation)) = (word("contract"), word("operation")) else { return Vec::new() };
    let (document, name) = (document(&contract), format!("{contract}/{operation}"));
    let mut methods = list(&document, "methods").iter();
    let method = methods.find(|method| text(method, "/name") == Some(&name));
    method.map(|method| arguments::candidates(list(method, "params"), current)).unwrap_or_default()
}

/// Completes the id of an extension.
pub(crate) fn extension(current: &OsStr) -> Vec<CompletionCandidate> {
    let [extensions] = ask([Route::new(&["extensions"])]);
    let mut names = Names::default();
    for extension in list(&extensions, "extensions") {
        names.add(text(extension, "/id"), text(extension, "/state"));
    }
    names.that_begin_with(current)
}

/// Completes a shared queue.
pub(crate) fn queue(current: &OsStr) -> Vec<CompletionCandidate> {
    let [queues] = ask([Route::new(&["queues"])]);
    let mut names = Names::default();
    list(&queues, "queues").iter().for_each(|queue| names.add(text(queue, "/queue"), None));
    names.that_begin_with(current)
}

/// Completes a topic that Main knows or that a contract describes.
pub(crate) fn topic(current: &OsStr) -> Vec<CompletionCandidate> {
    let mut topics = topics();
    topics.0.retain(|topic, _| !topic.contains(['*', '>']));
    topics.that_begin_with(current)
}

/// Completes a topic or a pattern of topics.
pub(crate) fn topic_pattern(current: &OsStr) -> Vec<CompletionCandidate> {
    topics().that_begin_with(current)
}

fn topics() -> Names {
    let [topics, described] = ask([Route::new(&["topics"]), Route::new(&["contracts"])]);
    let mut names = Names::default();
    list(&topics, "topics").iter().for_each(|topic| names.add(text(topic, "/topic"), None));
    for contract in list(&described, "contracts") {
        for topic in contract.get("document").map(|document| list(document, "x-topics")).unwrap_or_default() {
            names.add(text(topic, "/name"), text(topic, "/description"));
        }
    }
    names
}

/// Returns the document of a contract's first provider, or null.
fn document(contract: &str) -> Value {
    let [mut described] = ask([Route::new(&["contracts", contract])]);
    described.pointer_mut("/contracts/0/document").map(Value::take).unwrap_or_default()
}

/// Asks Main for these routes. An answer is null if Main is not there or refuses, or if the answer is late.
fn ask<const N: usize>(routes: [Route; N]) -> [Value; N] {
    let mut answers = [const { Value::Null }; N];
    let asking = async {
        let mut client = Client::connect(&target()).await?;
        for (route, answer) in routes.iter().zip(&mut answers) {
            *answer = client.get(route).await.unwrap_or_default();
        }
        anyhow::Ok(())
    };
    // Without Main there are no names.
    drop(client::block_on(async { tokio::time::timeout(PATIENCE, asking).await? }));
    answers
}

/// Names, each with a line about it.
#[derive(Debug, Default)]
struct Names(BTreeMap<String, Option<String>>);

impl Names {
    fn add(&mut self, name: Option<&str>, about: Option<&str>) {
        if let Some(name) = name {
            let about = about.and_then(|about| about.lines().next()).map(printable);
            self.0.insert(printable(name), about);
        }
    }

    fn that_begin_with(self, current: &OsStr) -> Vec<CompletionCandidate> {
        let current = current.to_string_lossy();
        let names = self.0.into_iter().filter(|(name, _)| name.starts_with(&*current));
        names.map(|(name, about)| CompletionCandidate::new(name).help(about.map(Into::into))).collect()
    }
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn text<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}

/// Returns the value of an argument on the unfinished command line.
fn word(argument: &str) -> Option<String> {
    found::<String>(&line()?, argument)
}

/// Returns the Main that the command line names.
fn target() -> Target {
    let line = line().unwrap_or_default();
    Target { socket: found::<PathBuf>(&line, "socket"), config: found(&line, "config") }
}

/// Returns the unfinished command line, as far as clap understands it. The shell passes it after `--`.
fn line() -> Option<ArgMatches> {
    let words = env::args_os().skip_while(|word| word != "--").skip(1);
    Args::command().ignore_errors(true).try_get_matches_from(words).ok()
}

/// Returns the value of an argument, from the innermost subcommand that has one.
fn found<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, argument: &str) -> Option<T> {
    let below = matches.subcommand().and_then(|(_, matches)| found(matches, argument));
    below.or_else(|| matches.try_get_one(argument).ok().flatten().cloned())
}
