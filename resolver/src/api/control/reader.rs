//! Request bodies: the first JSON value only, field names in any case, unknown fields refused, and the first daemon's
//! sentences (mesh contract §1.1, §1.3).
use super::scan::Scanner;
use crate::mesh::Refusal;
use crate::mesh::names::quoted;
use stado_fleet::wire::RegisterRequest;

/// Body of `POST /v1/registrations`.
pub(crate) fn register(body: &[u8]) -> Result<RegisterRequest, Refusal> {
    let mut request = RegisterRequest::default();
    read(
        body,
        "registerRequest",
        |field| {
            let RegisterRequest { name, kind, app_protocol, source, backend, preferred_port, ttl_seconds, http_host } =
                &mut request;
            match field.name {
                "name" => field.string(name),
                "kind" => field.string(kind),
                "app_protocol" => field.string(app_protocol),
                "source" => field.string(source),
                "backend" => field.object("backendAddr", &["host", "port"], |inner| match inner.name {
                    "host" => inner.string(&mut backend.host),
                    _ => inner.int(&mut backend.port),
                }),
                "preferred_port" => field.int(preferred_port),
                "ttl_seconds" => field.int(ttl_seconds),
                _ => field.string(http_host),
            }
        },
        &["name", "kind", "app_protocol", "source", "backend", "preferred_port", "ttl_seconds", "http_host"],
    )?;
    Ok(request)
}

/// Body of `POST /v1/services/{name}/pin`: `{"port": N}`.
pub(crate) fn pin(body: &[u8]) -> Result<i64, Refusal> {
    let mut port = 0;
    read(body, "pinRequest", |field| field.int(&mut port), &["port"])?;
    Ok(port)
}

/// Body of `POST /v1/services/{name}/rename`: `{"name": "…"}`.
pub(crate) fn rename(body: &[u8]) -> Result<String, Refusal> {
    let mut name = String::new();
    read(body, "renameRequest", |field| field.string(&mut name), &["name"])?;
    Ok(name)
}

/// One value of an object whose field is known.
struct Field<'a> {
    /// The known name, whatever case the body wrote.
    name: &'static str,
    path: String,
    owner: &'static str,
    raw: &'a [u8],
}

fn read<'a>(
    body: &'a [u8],
    owner: &'static str,
    take: impl FnMut(Field<'a>) -> Result<(), String>,
    known: &[&'static str],
) -> Result<(), Refusal> {
    let raw = Scanner::new(body).value().map_err(|error| Refusal::Request(error.text()))?;
    let whole = Field { name: "", path: String::new(), owner, raw };
    whole.object(owner, known, take).map_err(Refusal::Request)
}

impl<'a> Field<'a> {
    fn string(&self, into: &mut String) -> Result<(), String> {
        match self.raw.first() {
            Some(b'"') => *into = unescape(self.raw),
            Some(b'n') => {}
            _ => return Err(self.mismatch(kind_of(self.raw), "string")),
        }
        Ok(())
    }

    fn int(&self, into: &mut i64) -> Result<(), String> {
        match self.raw.first() {
            Some(b'-' | b'0'..=b'9') => {
                let text = String::from_utf8_lossy(self.raw);
                *into = text.parse().map_err(|_| self.mismatch(&format!("number {text}"), "int"))?;
            }
            Some(b'n') => {}
            _ => return Err(self.mismatch(kind_of(self.raw), "int")),
        }
        Ok(())
    }

    /// Goes through an object. The first thing that is wrong in the order of the text is reported, the rest is still read.
    fn object(
        &self,
        type_name: &'static str,
        known: &[&'static str],
        mut take: impl FnMut(Field<'a>) -> Result<(), String>,
    ) -> Result<(), String> {
        match self.raw.first() {
            Some(b'{') => {}
            Some(b'n') => return Ok(()),
            _ => return Err(self.mismatch(kind_of(self.raw), type_name)),
        }
        let mut first_error = Ok(());
        for (key, raw) in members(self.raw) {
            let one = match known.iter().find(|name| folded(&key) == **name) {
                None => Err(format!("json: unknown field {}", quoted(&key))),
                Some(name) => {
                    let path = if self.path.is_empty() { (*name).to_owned() } else { format!("{}.{name}", self.path) };
                    take(Field { name, path, owner: self.owner, raw })
                }
            };
            first_error = first_error.and(one);
        }
        first_error
    }

    fn mismatch(&self, found: &str, wanted: &str) -> String {
        if self.path.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type api.{wanted}");
        }
        let wanted = if wanted == "backendAddr" { "api.backendAddr" } else { wanted };
        format!("json: cannot unmarshal {found} into Go struct field {}.{} of type {wanted}", self.owner, self.path)
    }
}

/// Keys and values of an object that was scanned before.
fn members(object: &[u8]) -> Vec<(String, &[u8])> {
    let mut scanner = Scanner::new(object);
    let mut found = Vec::new();
    scanner.skip(b'{');
    while let Ok(key) = scanner.value() {
        if !scanner.skip(b':') {
            break;
        }
        let Ok(value) = scanner.value() else { break };
        found.push((unescape(key), value));
        if !scanner.skip(b',') {
            break;
        }
    }
    found
}

/// Letter case does not matter, nor do the two letters outside ASCII that fold into it.
fn folded(key: &str) -> String {
    key.chars()
        .map(|c| match c {
            'ſ' => 's',
            'K' => 'k',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

fn kind_of(raw: &[u8]) -> &'static str {
    match raw.first() {
        Some(b'"') => "string",
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b't' | b'f') => "bool",
        _ => "number",
    }
}

/// The text of a scanned string. What is no Unicode becomes U+FFFD.
fn unescape(raw: &[u8]) -> String {
    let inner = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\"")).unwrap_or_default();
    let text = String::from_utf8_lossy(inner);
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    let mut buffer = [0u16; 2];
    while let Some(c) = chars.next() {
        let unit = match c {
            '\\' => match chars.next() {
                Some('u') => {
                    let hex: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&hex, 16).unwrap_or(0xfffd));
                    continue;
                }
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some(other) => other,
                None => break,
            },
            c => c,
        };
        units.extend_from_slice(unit.encode_utf16(&mut buffer));
    }
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
#[path = "tests/reader.rs"]
mod tests;
