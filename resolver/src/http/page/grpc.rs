//! What a gRPC client is told beside the page: it reads no body, and its users read no status of HTTP.
use super::Problem;
use super::words::Words;

/// The status and the sentence, as fields of the answer's head. The HTTP status stays what it is.
pub(in crate::http) fn grpc(problem: &Problem) -> [(&'static str, String); 2] {
    let words = Words::of(problem);
    [("grpc-status", code(words.status).to_owned()), ("grpc-message", encoded(&words.sentence))]
}

/// As gRPC itself reads a status of HTTP (its document "HTTP to gRPC status code mapping").
fn code(status: u16) -> &'static str {
    match status {
        400 => "13",             // internal
        404 => "12",             // unimplemented
        429 | 502..=504 => "14", // unavailable
        _ => "2",                // unknown
    }
}

/// Percent-encoded, but for what is printable in ASCII.
fn encoded(sentence: &str) -> String {
    let mut text = String::new();
    for byte in sentence.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_fits_into_a_field_and_the_status_is_grpcs() {
        let problem = |service: &str| Problem::TooMany { service: service.to_owned() };
        let [(_, code), (_, message)] = grpc(&problem("100 % möglich"));
        assert_eq!(code, "14");
        assert!(message.contains("100 %25 m%C3%B6glich"), "{message}");
        assert_eq!(grpc(&Problem::HeadTooLarge)[0].1, "2");
    }
}
