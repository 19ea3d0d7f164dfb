//! Places in JSON, as people read them: `$.value.key[0]`.

use weir_names::harmless;

/// The most bytes of a name in a path or a message.
const MAX_SHOWN: usize = 100;

/// A step of a path to the field of this name: `.name`, or `["any name"]`.
#[must_use]
pub fn field(name: &str) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "-_$".contains(character);
    if !name.is_empty() && name.chars().all(is_plain) {
        format!(".{}", shown(name))
    } else {
        format!("[\"{}\"]", shown(name).replace('"', "\\\""))
    }
}

/// A step of a path to the value at this place of a list.
#[must_use]
pub fn index(index: usize) -> String {
    format!("[{index}]")
}

/// A foreign text, made safe to show and cut to 100 bytes.
#[must_use]
pub fn shown(text: &str) -> String {
    harmless(text, MAX_SHOWN)
}

/// The texts as an enumeration with a word before the last, such as `a`, `b` or `c`.
pub(crate) fn alternatives(texts: &[String], between: &str) -> String {
    match texts {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {between} {last}", first.join(", ")),
    }
}

/// A number of things, such as `1 value` or `2 values`.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
