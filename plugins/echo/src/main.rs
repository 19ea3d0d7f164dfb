//! Answers with the bytes of the request.

use std::process::ExitCode;

use weir_contracts::echo;
use weir_sdk::{Context, Error, Extension};

weir_sdk::manifest! { id: "echo", fulfills: &[echo::CONTRACT] }

fn main() -> ExitCode {
    extension().run()
}

fn extension() -> Extension<()> {
    Extension::new(MANIFEST, ()).on(echo::ECHO, async |(), _: &Context, bytes| Ok::<_, Error>(bytes))
}

#[cfg(test)]
mod tests {
    use weir_sdk::testing::Harness;

    use super::*;

    #[test]
    fn the_answer_is_what_was_sent() {
        let main = Harness::new(extension());
        for payload in [b"".to_vec(), b"\0\xff".to_vec()] {
            assert_eq!(main.call(echo::ECHO, &payload), Ok(payload));
        }
    }
}
