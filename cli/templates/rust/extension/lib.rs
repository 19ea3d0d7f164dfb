//! The contract `{{name}}@1`, for the extension and its callers.

use serde::{Deserialize, Serialize};
use weir_sdk::Shape;

weir_sdk::contract! {
    /// Greets people.
    pub const CONTRACT = "{{name}}@1";

    /// Greets a person by name.
    pub const GREET: fn(Name) -> Greeting = "greet", errors { "no-name": "There is nobody to greet." };

    /// The name of each person that was greeted.
    pub const GREETED: topic(String) = "{{name}}.greeted";
}

/// A person.
#[derive(Serialize, Deserialize, Shape)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// The person's name.
    pub name: String,
}

/// A greeting.
#[derive(Debug, PartialEq, Serialize, Deserialize, Shape)]
pub struct Greeting {
    /// The words of the greeting.
    pub text: String,
    /// How many people were greeted so far.
    pub number: u64,
}
