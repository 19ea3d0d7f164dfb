//! Greets each caller, and publishes the name.

use std::{cell::Cell, process::ExitCode};

use {{crate}}::{CONTRACT, GREET, GREETED, Greeting, Name};
use weir_sdk::{Context, Error, Extension};

// The manifest: what the extension is and needs. It travels in the component; the operator decides.
weir_sdk::manifest! {
    id: "{{name}}",
    fulfills: &[CONTRACT],
    publishes: &[GREETED.pattern()],
}

#[derive(Default)]
struct Greeter {
    greeted: Cell<u64>,
}

impl Greeter {
    async fn greet(&self, ctx: &Context, Name { name }: Name) -> Result<Greeting, Error> {
        if name.is_empty() {
            return Err(Error::handler("no-name", "there is nobody to greet"));
        }
        self.greeted.set(self.greeted.get() + 1);
        ctx.publish(GREETED, &name)?;
        Ok(Greeting { text: format!("hello, {name}"), number: self.greeted.get() })
    }
}

fn extension() -> Extension<Greeter> {
    Extension::new(MANIFEST, Greeter::default()).on(GREET, Greeter::greet)
}

fn main() -> ExitCode {
    extension().run()
}

#[cfg(test)]
mod tests {
    use weir_sdk::testing::Harness;

    use super::*;

    #[test]
    fn greets_by_name_and_publishes_it() {
        let main = Harness::new(extension());

        let greeting = main.call(GREET, &Name { name: "Ada".into() });

        assert_eq!(greeting, Ok(Greeting { text: "hello, Ada".into(), number: 1 }));
        assert_eq!(main.published()[0].json::<String>(), "Ada");
    }
}
