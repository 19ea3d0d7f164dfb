//! Without a build script, cargo looks at no dependency of one.

fn main() {}
