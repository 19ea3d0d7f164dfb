//! Edits of an operator's file as text: comments, order and spelling stay.
//!
//! The file was read by the loader of configurations before, and is again after the edit. So this knows only where the
//! keys of an extension are.

use std::{fmt, str::FromStr};

use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, TableLike, Value};

use crate::Digest;

/// Before the source of a component, in the comment behind its path.
const FROM: &str = "# from ";

/// Between the source and the digest of the package's manifest.
const PINNED: &str = " with the manifest ";

/// An operator's file, or a file that it includes.
#[derive(Clone, Debug)]
pub struct OperatorsFile(DocumentMut);

/// The component of an extension, as its table names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The value of `path`.
    pub path: String,
    /// The value of `sha256`, in hexadecimal digits.
    pub sha256: Option<String>,
    /// Where the component came from: an absolute path or a URL.
    pub source: Option<String>,
    /// The digest of the package's manifest, if the table says which one it was.
    pub manifest: Option<Digest>,
}

/// A key that a proposed table of an extension has beside its id and its component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskedGrant {
    /// The key, such as `wants` or `grants.net`.
    pub key: String,
    /// The key with its value, as TOML.
    pub line: String,
}

impl AskedGrant {
    /// Whether a text within its value, also in part, is this.
    #[must_use]
    pub fn has_text(&self, text: &str) -> bool {
        let table = self.line.parse::<DocumentMut>().unwrap_or_default();
        item_has_text(table.as_item(), text)
    }
}

/// Why a file cannot be edited.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The text is no TOML.
    #[error("it is not valid TOML")]
    Syntax(#[from] toml_edit::TomlError),
    /// No table of the file has this id.
    #[error("it has no `[[extension]]` with the id `{0}`")]
    NoSuchExtension(String),
    /// A grant is not a key with a value.
    #[error(
        "`{0}` is not `KEY = VALUE` in TOML, as in `wants = [\"a@1\"]` or `grants.env = {{ HOME = \"/\" }}`"
    )]
    NotAGrant(String),
    /// The table has the key in another form.
    #[error("`{0}` cannot join what is there, because that has another form: write it into the file by hand")]
    OtherForm(String),
}

impl FromStr for OperatorsFile {
    type Err = EditError;

    fn from_str(text: &str) -> Result<Self, EditError> {
        Ok(Self(text.parse()?))
    }
}

impl fmt::Display for OperatorsFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl OperatorsFile {
    /// Adds the table of an extension behind all others.
    pub fn add(&mut self, id: &str, component: &Installed) {
        let mut table = Table::new();
        table.insert("id", id.into());
        set(&mut table, component);
        if !self.0.is_empty() || !self.0.trailing().as_str().unwrap_or_default().is_empty() {
            table.decor_mut().set_prefix("\n");
        }
        let tables = self.0.entry("extension").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
        if let Some(tables) = tables.as_array_of_tables_mut() {
            tables.push(table);
        }
    }

    /// Removes the table of an extension, with the comments before it.
    ///
    /// # Errors
    ///
    /// Fails if there is none.
    pub fn remove(&mut self, id: &str) -> Result<(), EditError> {
        let tables = self.0.get_mut("extension").and_then(Item::as_array_of_tables_mut);
        let missing = || EditError::NoSuchExtension(id.to_owned());
        let tables = tables.ok_or_else(missing)?;
        let index = tables.iter().position(|table| is_of(table, id)).ok_or_else(missing)?;
        tables.remove(index);
        Ok(())
    }

    /// The component that the table of an extension names. `None` without the table.
    #[must_use]
    pub fn installed(&self, id: &str) -> Option<Installed> {
        let tables = self.0.get("extension")?.as_array_of_tables()?;
        let table = tables.iter().find(|table| is_of(table, id))?;
        let text = |key: &str| table.get(key).and_then(Item::as_str).map(ToOwned::to_owned);
        let comment = table.get("path")?.as_value()?.decor().suffix().and_then(|suffix| suffix.as_str());
        let comment = comment.and_then(|comment| comment.trim().strip_prefix(FROM));
        // Any other comment is the operator's own.
        let comment = comment.filter(|from| from.starts_with('/') || from.contains("://"));
        let pinned = comment.and_then(|comment| comment.rsplit_once(PINNED));
        let pinned = pinned.and_then(|(source, digest)| Some((source, digest.parse().ok()?)));
        let source = pinned.map(|(source, _)| source).or(comment).map(ToOwned::to_owned);
        let manifest = pinned.map(|(_, digest)| digest);
        Some(Installed { path: text("path")?, sha256: text("sha256"), source, manifest })
    }

    /// Names another component in the table of an extension.
    ///
    /// # Errors
    ///
    /// Fails if there is no table.
    pub fn install(&mut self, id: &str, component: &Installed) -> Result<(), EditError> {
        set(self.table(id)?, component);
        Ok(())
    }

    /// Names the id that the component of an extension is signed as, or none.
    ///
    /// # Errors
    ///
    /// Fails if there is no table.
    pub fn sign_as(&mut self, id: &str, signed: Option<&str>) -> Result<(), EditError> {
        let table = self.table(id)?;
        match signed {
            Some(signed) => drop(table.insert("signed-as", signed.into())),
            None => drop(table.remove("signed-as")),
        }
        Ok(())
    }

    /// Sets a key of an extension, written as `KEY = VALUE`. An array gets the items that it lacks.
    ///
    /// # Errors
    ///
    /// Fails if there is no table, or the text is no key with a value.
    pub fn grant(&mut self, id: &str, grant: &str) -> Result<(), EditError> {
        let refused = || EditError::NotAGrant(grant.to_owned());
        let wanted: DocumentMut = grant.parse().map_err(|_| refused())?;
        if wanted.len() != 1 {
            return Err(refused());
        }
        merge(self.table(id)?, wanted.as_table()).map_err(|why| why(grant.to_owned()))
    }

    fn table(&mut self, id: &str) -> Result<&mut Table, EditError> {
        let tables = self.0.get_mut("extension").and_then(Item::as_array_of_tables_mut);
        let table = tables.and_then(|tables| tables.iter_mut().find(|table| is_of(table, id)));
        table.ok_or_else(|| EditError::NoSuchExtension(id.to_owned()))
    }
}

/// Returns what a proposed table asks for. A text that is no such table asks for nothing.
#[must_use]
pub fn asked_grants(stanza: &str) -> Vec<AskedGrant> {
    let file = stanza.parse::<DocumentMut>().unwrap_or_default();
    let table = file.get("extension").and_then(Item::as_array_of_tables).and_then(|tables| tables.get(0));
    let keys =
        table.into_iter().flat_map(|table| table.iter()).filter(|(key, _)| !["id", "path"].contains(key));
    let mut asked = Vec::new();
    for (key, value) in keys {
        let below = value.as_table_like().filter(|_| key == "grants");
        let below = below.map(|table| table.iter().map(|(name, value)| (format!("{key}.{name}"), value)));
        let of_key = below.is_none().then(|| (key.to_owned(), value));
        for (key, value) in below.into_iter().flatten().chain(of_key) {
            let Item::Value(value) = value else { continue };
            let line = format!("{key} = {}", value.clone().decorated("", ""));
            asked.push(AskedGrant { key, line });
        }
    }
    asked
}

fn item_has_text(item: &Item, text: &str) -> bool {
    match item {
        Item::Value(Value::String(value)) => value.value().contains(text),
        Item::Value(Value::Array(array)) => {
            array.iter().any(|value| item_has_text(&Item::Value(value.clone()), text))
        }
        other => {
            other.as_table_like().is_some_and(|table| table.iter().any(|(_, item)| item_has_text(item, text)))
        }
    }
}

fn is_of(table: &Table, id: &str) -> bool {
    table.get("id").and_then(Item::as_str) == Some(id)
}

fn set(table: &mut Table, component: &Installed) {
    let mut path = Value::from(&*component.path);
    // A line feed would end the comment.
    let source = component.source.iter().filter(|source| !source.contains(char::is_control));
    path.decor_mut().set_prefix(" ");
    let pinned = component.manifest.map(|digest| format!("{PINNED}{digest}")).unwrap_or_default();
    path.decor_mut().set_suffix(source.map(|source| format!(" {FROM}{source}{pinned}")).collect::<String>());
    table.insert("path", Item::Value(path));
    match &component.sha256 {
        Some(digits) => drop(table.insert("sha256", digits.as_str().into())),
        None => drop(table.remove("sha256")),
    }
}

/// Writes the keys of one table into another. What is there is replaced only by what has the same form.
fn merge(to: &mut dyn TableLike, from: &dyn TableLike) -> Result<(), fn(String) -> EditError> {
    if from.is_empty() {
        return Err(EditError::NotAGrant);
    }
    for (key, wanted) in from.iter() {
        match (to.get_mut(key), wanted) {
            (Some(Item::Value(Value::Array(there))), Item::Value(Value::Array(wanted))) => add(there, wanted),
            (Some(there), _) if !is_scalar(there) || !is_scalar(wanted) => {
                let (there, wanted) = (there.as_table_like_mut(), wanted.as_table_like());
                let (there, wanted) = there.zip(wanted).ok_or(EditError::OtherForm as fn(String) -> _)?;
                merge(there, wanted)?;
            }
            (_, Item::Table(table)) => {
                // A dotted key stays one.
                let mut table = table.clone();
                table.set_dotted(true);
                to.insert(key, Item::Table(table));
            }
            (_, Item::Value(value)) => {
                let mut value = value.clone();
                value.decor_mut().set_prefix(" ");
                value.decor_mut().set_suffix("");
                to.insert(key, Item::Value(value));
            }
            (_, Item::None | Item::ArrayOfTables(_)) => return Err(EditError::NotAGrant),
        }
    }
    Ok(())
}

/// Whether it is a value without parts.
fn is_scalar(item: &Item) -> bool {
    item.is_value() && !item.is_array() && !item.is_inline_table()
}

/// Adds the items that the array lacks.
fn add(there: &mut Array, wanted: &Array) {
    let shown = |value: &Value| value.clone().decorated("", "").to_string();
    let known: Vec<String> = there.iter().map(shown).collect();
    for item in wanted.iter().filter(|item| !known.contains(&shown(item))) {
        if let Some(last) = there.len().checked_sub(1).and_then(|last| there.get_mut(last)) {
            // Else the comma would stand behind the space before the bracket.
            last.decor_mut().set_suffix("");
        }
        there.push(item.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
# The device's.
[main]
plugin-dir = \"plugins\" # All of them.

# It answers.
[[extension]]
id = \"echo\"
path = \"echo-1.0.0.wasm\" # from oci://registry/echo:1.0.0
fulfills = [ 'echo@1' ] # Mine.

  [extension.grants]
  net = [ \"[::1]:80\" ]

[[extension]]
id = \"other\" # Theirs.
path = \"other.wasm\"
";

    const PINNED_TAR: &str = "from /a.tar with the manifest \
        sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn component() -> Installed {
        Installed {
            path: "echo-2.0.0.wasm".to_owned(),
            sha256: Some("00".to_owned()),
            source: Some("/a.tar".to_owned()),
            manifest: Some(Digest::of(b"")),
        }
    }

    #[test]
    fn an_upgrade_changes_only_the_lines_of_the_component() {
        let mut file: OperatorsFile = FILE.parse().unwrap();
        assert_eq!(file.installed("echo").unwrap().source.as_deref(), Some("oci://registry/echo:1.0.0"));
        file.install("echo", &component()).unwrap();
        assert_eq!(file.installed("echo"), Some(component()));
        let line = "path = \"echo-1.0.0.wasm\" # from oci://registry/echo:1.0.0\n";
        let changed = FILE.replace(line, &format!("path = \"echo-2.0.0.wasm\" # {PINNED_TAR}\n"));
        let changed = changed.replace("# Mine.\n", "# Mine.\nsha256 = \"00\"\n");
        assert_eq!(file.to_string(), changed);
    }

    #[test]
    fn what_is_added_comes_last_and_is_removed_without_a_trace() {
        let mut file: OperatorsFile = FILE.parse().unwrap();
        file.add("new", &component());
        let table = format!(
            "\n[[extension]]\nid = \"new\"\npath = \"echo-2.0.0.wasm\" # {PINNED_TAR}\nsha256 = \"00\"\n"
        );
        assert_eq!(file.to_string(), FILE.to_owned() + &table);
        file.remove("new").unwrap();
        assert_eq!(file.to_string(), FILE);
        file.remove("echo").unwrap();
        let (before, rest) = FILE.split_once("\n# It answers.\n").unwrap();
        let (_, after) = rest.split_once(":80\" ]\n").unwrap();
        assert_eq!(file.to_string(), format!("{before}{after}"));
        assert!(matches!(file.remove("echo"), Err(EditError::NoSuchExtension(_))));
    }

    #[test]
    fn what_a_proposed_table_asks_for_are_its_keys_and_those_of_its_grants() {
        let stanza = "[[extension]]\nid = 'a'\npath = 'b'\nwants = ['a@1'] # All.\ngrants.dirs = [\n  { host = 'h' },\n]\n\
            grants.env = { A = 'b' }\n";
        let lines: Vec<_> = asked_grants(stanza).into_iter().map(|asked| (asked.key, asked.line)).collect();
        let expected = [
            ("wants", "wants = ['a@1']"),
            ("grants.dirs", "grants.dirs = [\n  { host = 'h' },\n]"),
            ("grants.env", "grants.env = { A = 'b' }"),
        ];
        assert_eq!(lines, expected.map(|(key, line)| (key.to_owned(), line.to_owned())));
        assert_eq!(asked_grants("none"), []);
    }

    #[test]
    fn the_id_of_a_signature_is_named_and_forgotten() {
        let mut file: OperatorsFile = FILE.parse().unwrap();
        file.sign_as("other", Some("theirs")).unwrap();
        assert_eq!(file.to_string(), FILE.to_owned() + "signed-as = \"theirs\"\n");
        file.sign_as("other", None).unwrap();
        assert_eq!(file.to_string(), FILE);
        assert!(matches!(file.sign_as("absent", None), Err(EditError::NoSuchExtension(_))));
    }

    #[test]
    fn an_operators_own_comment_is_no_source() {
        for comment in ["# from Bob, 2024", "# from a.tar", "# Theirs."] {
            let file = FILE.replace("# from oci://registry/echo:1.0.0", comment);
            let file: OperatorsFile = file.parse().unwrap();
            assert_eq!(file.installed("echo").unwrap().source, None, "{comment}");
        }
    }

    #[test]
    fn a_grant_takes_the_place_of_nothing_that_has_another_form() {
        let granted =
            "\n[[extension.grants.dirs]] # Mine.\nhost = \"/\"\n\n[extension.restart]\npolicy = \"never\"\n";
        let text = FILE.to_owned() + granted;
        let mut file: OperatorsFile = text.parse().unwrap();
        for grant in [
            "grants.dirs = [{ host = '/srv' }]",
            "grants.dirs = 1",
            "grants = []",
            "path = []",
            "path.a = 1",
            "restart = 'never'",
        ] {
            assert!(matches!(file.grant("other", grant), Err(EditError::OtherForm(_))), "{grant}");
        }
        assert_eq!(file.to_string(), text);
    }

    #[test]
    fn what_only_the_operator_knows_is_within_a_value() {
        for (line, expected) in [
            ("a = [{ host = \"FILL-IN\" }]", true),
            ("a = \"https://FILL-IN\"", true),
            ("a.FILL-IN = \"x\" # FILL-IN", false),
        ] {
            let asked = AskedGrant { key: "a".to_owned(), line: line.to_owned() };
            assert_eq!(asked.has_text("FILL-IN"), expected, "{line}");
        }
    }

    #[test]
    fn a_grant_joins_what_is_granted() {
        let mut file: OperatorsFile = FILE.parse().unwrap();
        file.grant("echo", "grants.net = [\"[::1]:80\", \"[::1]:81\"]").unwrap();
        file.grant("echo", "wants = ['a@1']").unwrap();
        file.grant("other", "grants.net = [\"[::1]:82\"]").unwrap();
        file.grant("other", "grants.env = { HOME = \"/\" }").unwrap();
        let text = file.to_string();
        for line in [
            "  net = [ \"[::1]:80\", \"[::1]:81\"]\n",
            "wants = ['a@1']\n",
            "path = \"other.wasm\"\ngrants.net = [\"[::1]:82\"]\ngrants.env = { HOME = \"/\" }\n",
        ] {
            assert!(text.contains(line), "{line}{text}");
        }
        for wrong in ["", "all", "wants =", "wants = []\npath = 'evil'", "a = 1\n[b]\n[[c]]"] {
            assert!(matches!(file.grant("echo", wrong), Err(EditError::NotAGrant(_))), "{wrong}");
        }
        assert!(matches!(file.grant("absent", "wants = []"), Err(EditError::NoSuchExtension(_))));
    }
}
