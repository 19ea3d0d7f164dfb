//! A hook that does nothing, and the program that it is compared with.

fn main() {}
