//! A component that exports the interface of `wit/plugin.wit`.

use exports::local::plugin::greeter::{Guest, Problem};

wit_bindgen::generate!({ world: "plugin" });

/// What the component exports.
pub struct Greeter;

#[cfg(target_family = "wasm")]
export!(Greeter);

impl Guest for Greeter {
    fn greet(name: String) -> Result<String, Problem> {
        if name.is_empty() { Err(Problem::Nobody) } else { Ok(format!("hello, {name}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greets_by_name() {
        assert_eq!(Greeter::greet("Ada".into()).unwrap(), "hello, Ada");
    }

    #[test]
    fn nobody_is_not_greeted() {
        assert_eq!(Greeter::greet(String::new()).unwrap_err(), Problem::Nobody);
    }
}
