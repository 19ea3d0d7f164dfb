//! No code of its own: `tests/conformance` tests what Weir can do from each language.
