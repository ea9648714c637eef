//! Numbers are kept as they were written; two spellings of an exponent say the same.
use serde_json::{Number, Value};

/// Whether two values say the same: numbers by their text, but for how an exponent is written; the order of keys ignored.
pub(super) fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || plain(a) == plain(b),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn plain(number: &Number) -> String {
    number.as_str().to_ascii_lowercase().replace("e+", "e")
}
