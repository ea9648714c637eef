//! Answers, and their heads.
use serde_json::{Value, json};
use std::fs::File;

/// What is sent back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: String,
    /// Further header lines, each with its end.
    pub(super) headers: String,
    pub(super) body: Body,
}

/// What follows the head.
#[derive(Debug)]
pub(super) enum Body {
    Bytes(Vec<u8>),
    /// So many bytes of an open file from where it stands.
    File(File, u64),
}

impl Answer {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        let body = Body::Bytes(body.to_string().into_bytes());
        Self { status, content_type: "application/json".into(), headers: String::new(), body }
    }

    pub(super) fn error(status: u16, error: &str) -> Self {
        Self::json(status, &json!({ "error": error }))
    }

    pub(super) fn absent(uri: &str) -> Self {
        Self::json(404, &json!({"state": "absent", "uri": uri}))
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        let body = Body::Bytes(text.as_bytes().to_vec());
        Self { status, content_type: "text/plain; charset=utf-8".into(), headers: String::new(), body }
    }

    pub(super) fn with(mut self, header: &str, value: &str) -> Self {
        self.headers.push_str(&format!("{header}: {value}\r\n"));
        self
    }

    pub(super) fn head(&self) -> String {
        let length = match &self.body {
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(_, length) => *length,
        };
        let Self { status, content_type, headers, .. } = self;
        let reason = reason(*status);
        format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n{headers}Connection: \
             close\r\n\r\n"
        )
    }
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        206 => "Partial Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        409 => "Conflict",
        416 => "Range Not Satisfiable",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Error",
    }
}
