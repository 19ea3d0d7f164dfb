//! Places in JSON, as people read them: `$.value.key[0]`.

use weir_names::harmless;

/// Characters of a name in a path or a message.
const MAX_SHOWN: usize = 100;

/// A field of this name: `.name`, or `["any name"]`.
pub(crate) fn field(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_$".contains(character);
    if !name.is_empty() && name.chars().all(is_plain) {
        format!(".{}", shown(name))
    } else {
        format!("[\"{}\"]", shown(name).replace('"', "\\\""))
    }
}

/// The value at this place of a list.
pub(crate) fn index(index: usize) -> String {
    format!("[{index}]")
}

/// A foreign text that is safe to show.
pub(crate) fn shown(text: &str) -> String {
    harmless(text, MAX_SHOWN)
}

/// Texts as `a`, `b` or `c`.
pub(crate) fn alternatives(texts: &[String], between: &str) -> String {
    match texts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {between} {last}", first.join(", ")),
    }
}

/// Such as `1 value` or `2 values`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
