//! What was said where, and whether it is what the row claims.
use super::{Place, Situation};
use serde_json::Value;

/// Answers by place.
#[derive(Debug, Default, Clone)]
pub struct Said {
    /// Text of `status`.
    pub status: Option<String>,
    /// Its JSON.
    pub json: Option<Value>,
    /// Both outputs of `connect`.
    pub connect: Option<String>,
    /// The page as JSON; the other forms are made from the same words.
    pub page: Option<Value>,
    /// What a refused command said.
    pub refusal: Option<String>,
}

impl Said {
    /// What is missing or wrong; nothing when every place of the row says its sentence and names its hop.
    pub fn judge(&self, row: &Situation) -> Vec<String> {
        let mut wrong: Vec<String> = row.places.iter().filter_map(|place| self.at(*place, row).err()).collect();
        let extra = [
            (Place::Connect, self.connect.is_some()),
            (Place::Page, self.page.is_some()),
            (Place::Refusal, self.refusal.is_some()),
        ];
        for (place, asked) in extra {
            if asked && !row.places.contains(&place) {
                wrong.push(format!("{} was asked and the row does not claim it", place.name()));
            }
        }
        wrong
    }

    fn at(&self, place: Place, row: &Situation) -> Result<(), String> {
        let nothing = || Err(format!("{} was not asked", place.name()));
        let lines = |text: &Option<String>| match text {
            Some(text) => in_lines(text, row).map_err(|why| format!("{}: {why}", place.name())),
            None => nothing(),
        };
        match place {
            Place::Status => lines(&self.status),
            Place::Connect => lines(&self.connect),
            Place::Refusal => lines(&self.refusal),
            Place::Json => match &self.json {
                Some(json) => in_json(json, row).map_err(|why| format!("JSON: {why}")),
                None => nothing(),
            },
            Place::Page => match &self.page {
                Some(json) => on_page(json, row),
                None => nothing(),
            },
        }
    }
}

/// Whether `text` holds the parts of `pattern`, or of another form of it behind a `|`, one after the other.
pub fn says(text: &str, pattern: &str) -> bool {
    pattern.split('|').any(|form| has(text, form))
}

fn has(text: &str, form: &str) -> bool {
    let mut rest = text;
    form.split('…').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// Words by which a sentence names a hop.
fn names(text: &str, hop: &str) -> bool {
    let words: &[&str] = match hop {
        "registry" => &["registry", "directory", "snapshot", "authority", "registered"],
        "adapter" => &["adapter", "frontend", "its port", "does not serve"],
        "service" => &["service", "backend", "producer", "is placed on"],
        _ => return text.contains(hop),
    };
    words.iter().any(|word| text.contains(word))
}

fn in_lines(text: &str, row: &Situation) -> Result<(), String> {
    let found: Vec<&str> = text.lines().filter(|line| says(line, row.sentence)).collect();
    match found.iter().any(|line| names(line, row.hop)) {
        true => Ok(()),
        false if found.is_empty() => Err(format!("no line says {:?}:\n{text}", row.sentence)),
        false => Err(format!("no line names the {}:\n{}", row.hop, found.join("\n"))),
    }
}

/// A string that says it, and beside it or in it the hop.
fn in_json(json: &Value, row: &Situation) -> Result<(), String> {
    let mut found = false;
    let named = walk(json, &mut |text, beside| {
        let here = says(text, row.sentence);
        found |= here;
        let field = beside.and_then(|object| object.get("hop")).is_some_and(|hop| hop == row.hop);
        here && (field || names(text, row.hop))
    });
    match named {
        true => Ok(()),
        false if found => Err(format!("it says so and does not name the {}: {json:#}", row.hop)),
        false => Err(format!("nothing says {:?}: {json:#}", row.sentence)),
    }
}

fn walk(value: &Value, ask: &mut impl FnMut(&str, Option<&Value>) -> bool) -> bool {
    match value {
        Value::Array(all) => all.iter().any(|one| match one.as_str() {
            Some(text) => ask(text, None),
            None => walk(one, ask),
        }),
        Value::Object(all) => all.values().any(|one| match one.as_str() {
            Some(text) => ask(text, Some(value)),
            None => walk(one, ask),
        }),
        _ => false,
    }
}

fn on_page(json: &Value, row: &Situation) -> Result<(), String> {
    let error = &json["error"];
    if !says(error["message"].as_str().unwrap_or_default(), row.sentence) {
        return Err(format!("page: it does not say {:?}: {json:#}", row.sentence));
    }
    if error["hop"] != row.hop {
        return Err(format!("page: it does not name the {}: {json:#}", row.hop));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn row(places: &'static [Place]) -> Situation {
        let sentence = "could not bind … Address already in use";
        Situation { id: "x", broken: "", hop: "adapter", sentence, cause: "", next: "", places }
    }

    #[test]
    fn a_sentence_without_its_hop_or_in_one_place_only_is_not_enough() {
        assert!(says("a b c d", "a…c") && !says("c a", "a…c") && !says("abc", "ac"));
        let good = "blocker the adapter at 1: could not bind 1: Address already in use\n";
        let said =
            |status: &str, json: Value| Said { status: Some(status.into()), json: Some(json), ..Said::default() };
        let row = row(super::super::HOST);
        assert_eq!(said(good, json!({"blockers": [good]})).judge(&row), Vec::<String>::new());
        let beside = json!({"routes": [{"hop": "adapter", "cause": "could not bind 1: Address already in use"}]});
        assert_eq!(said(good, beside.clone()).judge(&row), Vec::<String>::new());
        let other = json!({"routes": [{"hop": "service", "cause": "could not bind 1: Address already in use"}]});
        assert_eq!(said(good, other).judge(&row).len(), 1, "another hop");
        assert_eq!(said("could not bind 1: Address already in use", beside.clone()).judge(&row).len(), 1);
        assert_eq!(said("adapter\ncould not bind 1: Address already in use", beside).judge(&row).len(), 1);
        assert_eq!(said("", json!({})).judge(&row).len(), 2);
    }
}
