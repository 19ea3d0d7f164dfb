//! No code of its own: `Cargo.toml` says what it is for.
