//! Takes secrets out of what was gathered, and lists where. Pure.
use super::collect::{Collected, Content, Piece};
use super::secret::{self, REMOVED};
use serde_json::Value;
use std::path::Path;

/// One thing that was taken out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Removal {
    /// File of the bundle.
    pub(super) file: String,
    /// Key, or line.
    pub(super) at: String,
    pub(super) why: &'static str,
}

/// The bundle, ready to be written.
#[derive(Debug, Default)]
pub(super) struct Bundle {
    /// Name and text of each file.
    pub(super) files: Vec<(String, String)>,
    pub(super) removed: Vec<Removal>,
    pub(super) left: Vec<String>,
}

/// Everything without secrets; the home directory is `~` in it.
pub(super) fn all(collected: Collected, home: Option<&Path>) -> Bundle {
    let mut bundle = Bundle { left: collected.left, ..Bundle::default() };
    let home = home.and_then(Path::to_str).filter(|home| home.len() > 1);
    for Piece { name, content } in collected.pieces {
        let text = match content {
            Content::Json(value) => format!("{:#}\n", json(value, &name, "", &mut bundle.removed)),
            Content::Text(text) => lines(&text, &name, &mut bundle.removed),
        };
        let text = home.map_or_else(|| text.clone(), |home| text.replace(home, "~"));
        bundle.files.push((name, text));
    }
    let list = bundle.list();
    bundle.files.push(("removed.txt".to_owned(), list));
    bundle
}

fn json(value: Value, file: &str, at: &str, removed: &mut Vec<Removal>) -> Value {
    let below = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match value {
        Value::Object(object) => {
            let one = |(key, value): (String, Value)| {
                let at = below(&key);
                match secret::by_name(&key).filter(|_| holds(&value)) {
                    Some(why) => {
                        removed.push(Removal { file: file.to_owned(), at, why });
                        (key, REMOVED.into())
                    }
                    None if secret::is_public(&key) => (key, value),
                    None => {
                        let value = json(value, file, &at, removed);
                        (key, value)
                    }
                }
            };
            Value::Object(object.into_iter().map(one).collect())
        }
        Value::Array(all) => {
            let one = |(n, value): (usize, Value)| json(value, file, &below(&n.to_string()), removed);
            Value::Array(all.into_iter().enumerate().map(one).collect())
        }
        Value::String(text) => {
            let (less, why) = secret::by_look(&text);
            removed.extend(why.into_iter().map(|why| Removal { file: file.to_owned(), at: at.to_owned(), why }));
            Value::String(less.into_owned())
        }
        other => other,
    }
}

/// Whether there is something in it; an empty value or a switch is none.
fn holds(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(all) => !all.is_empty(),
        Value::Object(all) => !all.is_empty(),
        Value::Number(_) => true,
    }
}

/// Text by lines, but a PEM block is one thing.
fn lines(text: &str, file: &str, removed: &mut Vec<Removal>) -> String {
    let whole;
    let text = match secret::pem(text) {
        Some(less) => {
            removed.push(Removal { file: file.to_owned(), at: "a block".to_owned(), why: "a PEM block" });
            whole = less;
            &whole
        }
        None => text,
    };
    let mut out = String::with_capacity(text.len());
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let (less, why) = secret::by_look(line);
        removed.extend(why.into_iter().map(|why| Removal {
            file: file.to_owned(),
            at: format!("line {}", n + 1),
            why,
        }));
        out.push_str(&less);
    }
    out
}

impl Bundle {
    /// What was removed and what was left alone; it is in the bundle too.
    fn list(&self) -> String {
        let mut text = String::from(
            "Removed from this bundle, and never in it. What stays and may say more than you want: names of services, hosts and \
             accounts, addresses and ports.\n\nRemoved:\n",
        );
        if self.removed.is_empty() {
            text.push_str("  nothing\n");
        }
        for Removal { file, at, why } in &self.removed {
            text.push_str(&format!("  {file}  {at}: {why}\n"));
        }
        text.push_str("\nHere, and not read:\n");
        if self.left.is_empty() {
            text.push_str("  nothing\n");
        }
        self.left.iter().for_each(|name| text.push_str(&format!("  {name}\n")));
        text
    }

    /// For the person at the terminal: the files, and what was removed.
    pub(super) fn told(&self) -> String {
        let files: String =
            self.files.iter().map(|(name, text)| format!("  {name} ({} bytes)\n", text.len())).collect();
        let list = self.files.last().map(|(_, list)| list.as_str()).unwrap_or_default();
        crate::ui::clean::lines(format!("Packed:\n{files}\n{list}\n").as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn bundle(pieces: Vec<Piece>) -> Bundle {
        all(Collected { pieces, left: vec!["~/.ssh".into()] }, Some(Path::new("/home/ann")))
    }

    fn piece(content: Value) -> Piece {
        Piece { name: "stado/config.json".into(), content: Content::Json(content) }
    }

    #[test]
    fn secrets_go_and_each_is_listed_where_it_was() {
        let content = json!({
            "storage": {"token": "hunter2", "token_file": "/home/ann/.stado/t", "url": "https://a:b@h/x"},
            "list": [{"password": "p"}], "enabled": true, "owner_key": "process:0123456789ABCDEF01234567"
        });
        let bundle = bundle(vec![piece(content)]);
        let text = &bundle.files[0].1;
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value["storage"]["token"], "[removed]");
        assert_eq!(value["storage"]["token_file"], "~/.stado/t");
        assert_eq!(value["storage"]["url"], "https://[removed]@h/x");
        assert_eq!(value["owner_key"], "process:0123456789ABCDEF01234567");
        let at: Vec<&str> = bundle.removed.iter().map(|removal| removal.at.as_str()).collect();
        assert_eq!(at, ["storage.token", "storage.url", "list.0.password"]);
        let (name, list) = bundle.files.last().unwrap();
        assert_eq!(name, "removed.txt");
        assert!(
            list.contains("stado/config.json  storage.token: named like a secret") && list.contains("  ~/.ssh"),
            "{list}"
        );
        assert!(!bundle.told().contains("hunter2"));
    }

    #[test]
    fn a_log_loses_its_secrets_line_by_line() {
        let text = "one\ntoken=abc two\n-----BEGIN X-----\nkey\n-----END X-----\nGET /a?k=v HTTP/1.1\n";
        let bundle = bundle(vec![Piece { name: "logs/1.log".into(), content: Content::Text(text.into()) }]);
        assert_eq!(bundle.files[0].1, "one\ntoken=[removed] two\n[removed]\nGET /a?[removed] HTTP/1.1\n");
        assert!(bundle.removed.len() >= 3, "{:?}", bundle.removed);
    }
}
