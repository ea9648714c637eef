//! Numbers as they were written. The JSON library keeps every digit of a number, but writes `1E3` as `1e+3`.
use serde_json::{Number, Value};

/// Puts the texts of a pass back: each with how many numbers stand before it in the document.
pub(super) fn restore(value: &mut Value, exponents: &[(usize, &str)]) {
    if !exponents.is_empty() {
        walk(value, &mut 0, &mut exponents.iter().peekable());
    }
}

fn walk<'t>(
    value: &mut Value,
    numbers: &mut usize,
    exponents: &mut std::iter::Peekable<impl Iterator<Item = &'t (usize, &'t str)>>,
) {
    match value {
        Value::Number(number) => {
            if let Some((_, text)) = exponents.next_if(|(index, _)| index == numbers) {
                *number = Number::from_string_unchecked((*text).to_owned());
            }
            *numbers += 1;
        }
        Value::Array(list) => list.iter_mut().for_each(|inner| walk(inner, numbers, exponents)),
        Value::Object(map) => map.values_mut().for_each(|inner| walk(inner, numbers, exponents)),
        _ => {}
    }
}

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
