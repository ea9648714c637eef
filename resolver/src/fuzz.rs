//! Readers of this crate that strangers' bytes reach, for `tests/fuzz`. Each panics when a promise is broken, and tells in
//! words what it made of the bytes. Not an interface for other programs.

use crate::api::control::reader;
use crate::mesh::state_file::{Document, Unreadable};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// A body of the control API: read or refused, and never accepted where a strict parser finds no JSON value.
pub fn api_body(body: &[u8]) -> String {
    let read = reader::register(body);
    // The strict parser refuses some texts by depth or by Unicode that the reader takes; never the other way round.
    if read.is_ok() && std::str::from_utf8(body).is_ok() && !body.contains(&b'\\') {
        // What follows the value does not count, and need not even be set off from it.
        let first = IgnoredAny::deserialize(&mut serde_json::Deserializer::from_slice(body));
        assert!(first.is_ok(), "accepted what is no JSON");
    }
    let said = |result: Result<String, String>| result.unwrap_or_else(|error| plain(&error));
    let pin = reader::pin(body).map(|_| "pin".to_owned()).map_err(|error| error.to_string());
    let rename = reader::rename(body).map(|_| "rename".to_owned()).map_err(|error| error.to_string());
    let read = read.map(|request| format!("{}{}", request.kind, request.source.is_empty())).map_err(|e| e.to_string());
    [said(read), said(pin), said(rename)].concat()
}

/// A state file: read or refused; what was read survives being written.
pub fn state_file(bytes: &[u8]) -> String {
    match Document::<i64>::parse("tcp_ports", bytes) {
        Err(Unreadable::Corrupt(why)) => plain(&why),
        Err(Unreadable::Version(_)) => "version".into(),
        Ok(read) => {
            let written = read.render();
            assert!(written.is_ok(), "cannot be written: {written:?}");
            let again = Document::<i64>::parse("tcp_ports", &written.unwrap_or_default());
            assert_eq!(again.map(|again| again.entries().clone()), Ok(read.entries().clone()));
            format!("{} entries", read.entries().len().min(3))
        }
    }
}

/// The bytes of an HTTP/1 request: passed on or refused, and a refused one has nothing for the backend.
pub fn http_request(bytes: &[u8]) -> String {
    crate::http::fuzz::request(bytes)
}

/// The words of a sentence without the numbers and names in it.
fn plain(text: &str) -> String {
    text.split(' ').filter(|word| word.bytes().all(|b| b.is_ascii_lowercase())).collect()
}
