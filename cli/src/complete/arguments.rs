//! The arguments of an operation as JSON: all of them, or the next name in an object that was begun.

use clap_complete::engine::CompletionCandidate;
use serde_json::Value;

use crate::output::printable_json;

/// Returns the candidates for an operation with these parameters of an OpenRPC document.
pub(super) fn candidates(params: &[Value], current: &str) -> Vec<CompletionCandidate> {
    let params: Vec<_> = params.iter().filter_map(Param::of).collect();
    let candidates = if current.is_empty() { whole(&params) } else { next(&params, current) };
    candidates.into_iter().map(|text| CompletionCandidate::new(printable_json(&text))).collect()
}

struct Param<'p> {
    /// The name, quoted as in JSON.
    name: String,
    required: bool,
    /// An empty value of the parameter's type, as JSON.
    value: &'p str,
}

impl<'p> Param<'p> {
    fn of(param: &'p Value) -> Option<Self> {
        let name = Value::from(param.get("name")?.as_str()?).to_string();
        let kind = param.pointer("/schema/type");
        // Of several types, the first one counts.
        let kind = kind.and_then(|kind| kind.get(0).unwrap_or(kind).as_str());
        let value = match kind {
            Some("string") => "\"\"",
            Some("integer" | "number") => "0",
            Some("boolean") => "false",
            Some("array") => "[]",
            Some("object") => "{}",
            _ => "null",
        };
        let required = param.get("required").and_then(Value::as_bool).unwrap_or_default();
        Some(Self { name, required, value })
    }
}

/// Returns an object with the required arguments, and one with all, if they differ. Leaves out an empty object.
fn whole(params: &[Param<'_>]) -> Vec<String> {
    let object = |only_required: bool| {
        let members = params.iter().filter(|param| param.required || !only_required);
        let members: Vec<_> = members.map(|param| format!("{}:{}", param.name, param.value)).collect();
        format!("{{{}}}", members.join(","))
    };
    let mut objects = vec![object(true), object(false)];
    objects.dedup();
    objects.retain(|object| object != "{}");
    objects
}

/// Returns the begun object continued with one more name, once for each name that fits and is not in it yet. Returns
/// nothing if the text ends at or inside a value.
fn next(params: &[Param<'_>], current: &str) -> Vec<String> {
    let (mut depth, mut in_string, mut escaped, mut start) = (0_usize, false, false, None);
    for (at, character) in current.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ if in_string => {}
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match character {
            '{' | ',' if !in_string && depth == 1 => start = Some(at + 1),
            ':' if !in_string && depth == 1 => start = None,
            _ => {}
        }
    }
    let Some((before, begun)) =
        start.filter(|_| depth == 1).and_then(|start| current.split_at_checked(start))
    else {
        return Vec::new();
    };
    let blank = begun.len() - begun.trim_start().len();
    let (blank, begun) = begun.split_at(blank);
    let is_new = |param: &&Param<'_>| !before.contains(&format!("{}:", param.name));
    let fits = params.iter().filter(is_new).filter(|param| param.name.starts_with(begun));
    fits.map(|param| format!("{before}{blank}{}:", param.name)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn completed(current: &str) -> Vec<String> {
        let params = json!([
            {"name": "key", "required": true, "schema": {"type": "string"}},
            {"name": "value", "required": true, "schema": {"$ref": "#/components/schemas/Value"}},
            {"name": "keep-s", "required": false, "schema": {"type": ["integer", "null"]}},
        ]);
        let found = candidates(params.as_array().unwrap(), current);
        found.iter().map(|candidate| candidate.get_value().to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn nothing_is_completed_to_the_required_arguments_or_all_of_them() {
        let objects = [r#"{"key":"","value":null}"#, r#"{"key":"","value":null,"keep-s":0}"#];
        assert_eq!(completed(""), objects);
        assert!(candidates(&[], "").is_empty());
    }

    #[test]
    fn an_object_that_was_begun_gets_its_next_name() {
        assert_eq!(completed("{"), [r#"{"key":"#, r#"{"value":"#, r#"{"keep-s":"#]);
        assert_eq!(completed(r#"{"ke"#), [r#"{"key":"#, r#"{"keep-s":"#]);
        assert_eq!(
            completed(r#"{"key":"a, {b","#),
            [r#"{"key":"a, {b","value":"#, r#"{"key":"a, {b","keep-s":"#]
        );
        assert_eq!(completed(r#"{"value":{"a":1}, "ke"#).len(), 2);
    }

    #[test]
    fn a_value_is_left_to_the_caller() {
        for current in
            [r#"{"key":"#, r#"{"key":"ke"#, r#"{"value":{"k"#, r#"{"value":["#, "7", "{}", "\\\"{é"]
        {
            assert!(completed(current).is_empty(), "{current}");
        }
    }
}
