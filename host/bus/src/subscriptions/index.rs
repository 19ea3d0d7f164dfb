//! Finds the subscriptions that match a topic, in a tree of segments. Subscriptions that do not match cost nothing.
//!
//! Built like the subject lists of NATS (`server/sublist.go`) and the topic trees of MQTT brokers. There is a node for
//! each segment, and one beside them for `*`. Each node holds the patterns that end there or go on with `>`.

use std::{collections::HashMap, sync::Arc};

use weir_names::Topic;

use super::Subscription;

#[derive(Debug, Default)]
pub(crate) struct Index {
    root: Node,
}

#[derive(Debug, Default)]
struct Node {
    ends: Vec<Arc<Subscription>>,
    /// The subscriptions with `>` as their next and last segment.
    rest: Vec<Arc<Subscription>>,
    named: HashMap<Box<str>, Node>,
    any: Option<Box<Node>>,
}

impl Index {
    pub(super) fn insert(&mut self, subscription: Arc<Subscription>) {
        let mut node = &mut self.root;
        for segment in subscription.pattern.as_str().split('.') {
            node = match segment {
                ">" => return node.rest.push(subscription.clone()),
                "*" => node.any.get_or_insert_default(),
                name => node.named.entry(name.into()).or_default(),
            };
        }
        node.ends.push(subscription.clone());
    }

    pub(super) fn remove(&mut self, subscription: &Subscription) {
        self.root.remove(subscription, 0);
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Returns every matching subscription, and the number of nodes visited.
    pub(crate) fn matching(&self, topic: &Topic) -> (Vec<Arc<Subscription>>, u32) {
        let (mut found, mut visited) = (Vec::new(), 0);
        self.root.find(Some(topic.as_str()), &mut found, &mut visited);
        (found, visited)
    }
}

impl Node {
    /// Adds the matching subscriptions to `found`. `rest` is what is left of the topic. The depth is at most 128, the
    /// most segments of a topic.
    fn find(&self, rest: Option<&str>, found: &mut Vec<Arc<Subscription>>, visited: &mut u32) {
        *visited += 1;
        let Some(rest) = rest else {
            found.extend_from_slice(&self.ends);
            return;
        };
        found.extend_from_slice(&self.rest);
        let (segment, rest) =
            rest.split_once('.').map_or((rest, None), |(segment, rest)| (segment, Some(rest)));
        if let Some(named) = self.named.get(segment) {
            named.find(rest, found, visited);
        }
        if let Some(any) = &self.any {
            any.find(rest, found, visited);
        }
    }

    fn remove(&mut self, meant: &Subscription, depth: usize) {
        // Compared by address, because numbers repeat after four thousand million.
        let others = |subscription: &Arc<Subscription>| !std::ptr::eq(&**subscription, meant);
        match meant.pattern.as_str().split('.').nth(depth) {
            None => self.ends.retain(others),
            Some(">") => self.rest.retain(others),
            Some("*") => {
                if let Some(any) = &mut self.any {
                    any.remove(meant, depth + 1);
                    if any.is_empty() {
                        self.any = None;
                    }
                }
            }
            Some(name) => {
                if let Some(named) = self.named.get_mut(name) {
                    named.remove(meant, depth + 1);
                    if named.is_empty() {
                        self.named.remove(name);
                    }
                }
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.ends.is_empty() && self.rest.is_empty() && self.named.is_empty() && self.any.is_none()
    }
}
