//! `database_api.databases` of the configuration file: which databases there are, and who may resolve them (fleet contract
//! §1.8, §6.12). They are not in the registry; where one is placed, the directory entry of the same name says.
mod edit;

pub(crate) use edit::edit_databases;

use super::{ConfigError, Env, FleetFile, wrong};
use serde_json::{Map, Value};
use stado_fleet::name::LogicalName;
use std::path::PathBuf;

/// Wins over the file; the same JSON object.
pub(super) const VARIABLE: &str = "WC_DATABASE_API_DATABASES";
const KEY: &str = "database_api.databases";

/// What serves a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    Postgres,
    Sqlite,
}

impl Engine {
    /// As it is written.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }
}

/// What the credentials of a database allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Read,
    Write,
}

impl Scope {
    /// As it is written.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// One database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Database {
    pub(crate) name: LogicalName,
    pub(crate) engine: Engine,
    pub(crate) scopes: Vec<Scope>,
    pub(crate) consumers: Vec<String>,
}

impl Database {
    /// The vault's item with its credentials.
    pub(crate) fn item(&self) -> String {
        item(self.name.as_str())
    }

    /// Its scopes as they are written.
    pub(crate) fn scope_words(&self) -> Vec<&'static str> {
        self.scopes.iter().map(|scope| scope.word()).collect()
    }

    /// Writes it over an entry; keys of others stay.
    pub(crate) fn write_into(&self, entry: &mut Map<String, Value>) {
        entry.insert("item".to_owned(), self.item().into());
        entry.insert("engine".to_owned(), self.engine.word().into());
        entry.insert("scopes".to_owned(), self.scope_words().into());
        entry.insert("consumers".to_owned(), self.consumers.clone().into());
    }

    /// Whether a consumer may resolve it.
    pub(crate) fn admits(&self, consumer: &str) -> bool {
        self.consumers.iter().any(|known| known == consumer)
    }
}

fn item(name: &str) -> String {
    format!("{name}-database")
}

/// Every declared database, in the order of the declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Databases {
    pub(crate) all: Vec<Database>,
    /// The file that declares them, or where a declaration would be written.
    pub(crate) file: PathBuf,
}

impl Databases {
    /// Reads them.
    pub(crate) fn read(env: &Env) -> Result<Self, ConfigError> {
        let file = FleetFile::find(env)?;
        let path = file.home_of(env)?;
        let all = match env.text(VARIABLE)? {
            Some(text) => {
                let value: Value = serde_json::from_str(&text)
                    .map_err(|e| ConfigError(format!("{VARIABLE} is not a JSON object of databases: {e}")))?;
                declared(Some(&value), VARIABLE)?
            }
            None => declared(file.value(KEY), &format!("{KEY} in {}", path.display()))?,
        };
        Ok(Self { all, file: path })
    }

    /// One of them.
    pub(crate) fn find(&self, name: &str) -> Option<&Database> {
        self.all.iter().find(|database| database.name.as_str() == name)
    }

    /// Their names, for the sentence that refuses another one.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|database| database.name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    }
}

fn declared(value: Option<&Value>, place: &str) -> Result<Vec<Database>, ConfigError> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Object(all)) => all.iter().map(|(name, entry)| database(name, entry, place)).collect(),
        Some(_) => wrong(format!("{place} must be a JSON object of databases by name")),
    }
}

/// One entry as it is declared; keys that are not read belong to others and stay.
pub(crate) fn database(name: &str, entry: &Value, place: &str) -> Result<Database, ConfigError> {
    let at = format!("{place}, database {name:?}");
    let parsed = name.parse().map_err(|e| ConfigError(format!("{at}: the name {e}")))?;
    let Value::Object(entry) = entry else { return wrong(format!("{at}: it must be a JSON object")) };
    if let Some(found) = entry.get("item").filter(|found| found.as_str() != Some(&item(name))) {
        return wrong(format!("{at}: item is {found}; it is always {:?}", item(name)));
    }
    let engine = match entry.get("engine").and_then(Value::as_str) {
        Some("postgres") => Engine::Postgres,
        Some("sqlite") => Engine::Sqlite,
        _ => return wrong(format!("{at}: engine must be postgres or sqlite")),
    };
    let mut scopes = Vec::new();
    for word in texts(entry, "scopes", &at)? {
        let scope = match word.as_str() {
            "read" => Scope::Read,
            "write" => Scope::Write,
            other => return wrong(format!("{at}: scope {other:?} is neither read nor write")),
        };
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    if scopes.is_empty() {
        return wrong(format!("{at}: scopes must name read, write or both"));
    }
    Ok(Database { name: parsed, engine, scopes, consumers: texts(entry, "consumers", &at)? })
}

/// A list of texts; none when the key is not there.
fn texts(entry: &Map<String, Value>, key: &str, at: &str) -> Result<Vec<String>, ConfigError> {
    let list = match entry.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(_) => return wrong(format!("{at}: {key} must be an array")),
    };
    let text = |value: &Value| match value.as_str() {
        Some(text) if !text.is_empty() && !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => wrong(format!("{at}: {key} must hold texts that are not empty")),
    };
    list.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(databases: &str) -> Result<Databases, String> {
        let home = tempfile::tempdir().unwrap();
        let env = Env::of([("HOME", home.path().to_str().unwrap()), (VARIABLE, databases)]);
        Databases::read(&env).map_err(|e| e.0)
    }

    #[test]
    fn the_contracts_example_is_read() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir(home.path().join(".stado")).unwrap();
        let file = home.path().join(".stado/config.json");
        let text = r#"{"database_api":{"databases":{"orders":{"item":"orders-database","engine":"postgres","scopes":["read"],"consumers":["shop"]}}}}"#;
        std::fs::write(&file, text).unwrap();
        let env = Env::of([("HOME", home.path().to_str().unwrap())]);
        let databases = Databases::read(&env).unwrap();
        let orders = databases.find("orders").unwrap();
        assert_eq!(
            (orders.engine, orders.scope_words(), orders.item()),
            (Engine::Postgres, vec!["read"], "orders-database".into())
        );
        assert!(orders.admits("shop") && !orders.admits("sho") && !orders.admits(""));
        assert_eq!((&databases.file, databases.find("other")), (&file, None));
        // The variable wins, whole.
        let env = Env::of([("HOME", home.path().to_str().unwrap()), (VARIABLE, "{}")]);
        assert_eq!(Databases::read(&env).unwrap().names(), "none");
    }

    #[test]
    fn what_cannot_be_read_names_its_place() {
        let refused = |entry: &str| read(&format!(r#"{{"orders":{entry}}}"#)).unwrap_err();
        let at = format!("{VARIABLE}, database \"orders\": ");
        assert_eq!(refused("1"), format!("{at}it must be a JSON object"));
        assert_eq!(refused(r#"{"engine":"mysql"}"#), format!("{at}engine must be postgres or sqlite"));
        assert_eq!(
            refused(r#"{"engine":"sqlite","scopes":["admin"]}"#),
            format!("{at}scope \"admin\" is neither read nor write")
        );
        assert_eq!(refused(r#"{"engine":"sqlite"}"#), format!("{at}scopes must name read, write or both"));
        assert_eq!(
            refused(r#"{"engine":"sqlite","scopes":["read"],"item":"x"}"#),
            format!("{at}item is \"x\"; it is always \"orders-database\"")
        );
        assert_eq!(
            refused(r#"{"engine":"sqlite","scopes":["read"],"consumers":[""]}"#),
            format!("{at}consumers must hold texts that are not empty")
        );
        assert!(read(r#"{"A B":{}}"#).unwrap_err().contains("the name must be a lowercase identifier"));
        assert!(read("[]").unwrap_err().contains("must be a JSON object of databases by name"));
        assert!(read("{").unwrap_err().starts_with(VARIABLE));
    }
}
