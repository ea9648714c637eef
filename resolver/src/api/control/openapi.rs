//! The description of the API, as `GET /v1/openapi.json` gives it. A test holds it against the routes.

/// The document.
pub const DOCUMENT: &str = include_str!("openapi.json");
