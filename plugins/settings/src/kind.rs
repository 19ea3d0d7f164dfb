//! The types of settings. A setting keeps its type.

use serde_json::Value;
use weir_contracts::settings::{Setting, Type};
use weir_sdk::Error;

/// Makes a setting of a value. It has the type of the old setting, or without one the value's own type.
///
/// # Errors
/// The code `wrong-type` for another type, `invalid-argument` for a value without a type.
pub(crate) fn setting(value: Value, old: Option<&Setting>) -> Result<Setting, Error> {
    let Some(own) = of(&value) else {
        return Err(Error::invalid_argument("a value is a boolean, a number or a string"));
    };
    let r#type = old.map_or(own, |old| old.r#type);
    let setting = Setting { value, r#type };
    if fits(&setting) {
        Ok(setting)
    } else {
        Err(Error::handler(
            "wrong-type",
            format_args!("this setting is of the type {}, not {}", name(r#type), name(own)),
        ))
    }
}

/// Whether a setting's value is of its type. Any integer is a number, too.
pub(crate) fn fits(setting: &Setting) -> bool {
    match of(&setting.value) {
        Some(Type::Integer) => matches!(setting.r#type, Type::Integer | Type::Number),
        own => own == Some(setting.r#type),
    }
}

/// The value's own type. `None` for null, lists and objects, which no setting can have.
fn of(value: &Value) -> Option<Type> {
    match value {
        Value::Bool(_) => Some(Type::Bool),
        Value::Number(number) if number.is_f64() => Some(Type::Number),
        Value::Number(_) => Some(Type::Integer),
        Value::String(_) => Some(Type::String),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

fn name(r#type: Type) -> &'static str {
    match r#type {
        Type::Bool => "`bool`",
        Type::Integer => "`integer`",
        Type::Number => "`number`",
        Type::String => "`string`",
    }
}
