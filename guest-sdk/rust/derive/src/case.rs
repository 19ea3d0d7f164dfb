//! The rules of `rename_all`, as serde applies them.

use syn::{Error, LitStr, Result};

#[derive(Clone, Copy)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

impl Case {
    pub(crate) fn parse(text: &LitStr) -> Result<Self> {
        Ok(match text.value().as_str() {
            "lowercase" => Self::Lower,
            "UPPERCASE" => Self::Upper,
            "PascalCase" => Self::Pascal,
            "camelCase" => Self::Camel,
            "snake_case" => Self::Snake,
            "SCREAMING_SNAKE_CASE" => Self::ScreamingSnake,
            "kebab-case" => Self::Kebab,
            "SCREAMING-KEBAB-CASE" => Self::ScreamingKebab,
            _ => return Err(Error::new(text.span(), "serde has no such case")),
        })
    }

    /// The JSON name of a variant, which is in `PascalCase`.
    pub(crate) fn of_variant(self, name: &str) -> String {
        match self {
            Self::Pascal => name.to_owned(),
            Self::Lower => name.to_ascii_lowercase(),
            Self::Upper => name.to_ascii_uppercase(),
            Self::Camel => first_lower(name),
            Self::Snake => snake(name),
            Self::ScreamingSnake => snake(name).to_ascii_uppercase(),
            Self::Kebab => snake(name).replace('_', "-"),
            Self::ScreamingKebab => snake(name).to_ascii_uppercase().replace('_', "-"),
        }
    }

    /// The JSON name of a field, which is in `snake_case`.
    pub(crate) fn of_field(self, name: &str) -> String {
        match self {
            Self::Lower | Self::Snake => name.to_owned(),
            Self::Upper | Self::ScreamingSnake => name.to_ascii_uppercase(),
            Self::Pascal => pascal(name),
            Self::Camel => first_lower(&pascal(name)),
            Self::Kebab => name.replace('_', "-"),
            Self::ScreamingKebab => name.to_ascii_uppercase().replace('_', "-"),
        }
    }
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for character in name.chars() {
        if character.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(character.to_ascii_lowercase());
    }
    snake
}

fn pascal(name: &str) -> String {
    let mut after_line = true;
    let mut pascal = String::new();
    for character in name.chars() {
        if character == '_' {
            after_line = true;
        } else {
            pascal.push(if after_line { character.to_ascii_uppercase() } else { character });
            after_line = false;
        }
    }
    pascal
}

fn first_lower(name: &str) -> String {
    let mut characters = name.chars();
    characters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(characters).collect()
}

#[cfg(test)]
mod tests {
    use super::Case;

    #[test]
    fn names_are_renamed_as_serde_renames_them() {
        for (case, variant, field) in [
            (Case::Lower, "veryfull", "max_age"),
            (Case::Upper, "VERYFULL", "MAX_AGE"),
            (Case::Pascal, "VeryFull", "MaxAge"),
            (Case::Camel, "veryFull", "maxAge"),
            (Case::Snake, "very_full", "max_age"),
            (Case::ScreamingSnake, "VERY_FULL", "MAX_AGE"),
            (Case::Kebab, "very-full", "max-age"),
            (Case::ScreamingKebab, "VERY-FULL", "MAX-AGE"),
        ] {
            assert_eq!(case.of_variant("VeryFull"), variant);
            assert_eq!(case.of_field("max_age"), field);
        }
    }
}
