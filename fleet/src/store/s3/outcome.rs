//! What the answers of an S3 store mean. Pure.
use crate::fault::Class;
use crate::name::StoreVersion;
use crate::store::http::{Lost, Reply};
use crate::store::{StoreError, Stored};

/// How much of a body a sentence repeats.
const QUOTED: usize = 300;

/// What a read brought.
#[derive(Debug)]
pub(super) enum Found {
    /// No such object.
    Nothing,
    /// It still is at the version that was held.
    Same,
    /// The object.
    Stored(Stored),
}

/// How a write ended.
#[derive(Debug)]
pub(super) enum Put {
    /// Written.
    Written(StoreVersion),
    /// Its condition did not hold; nothing was written.
    Refused,
    /// It cannot be told.
    Unknown(StoreError),
}

/// What came of a read.
pub(super) fn read(reply: Result<Reply, Lost>) -> Result<Found, StoreError> {
    let reply = reply.map_err(lost)?;
    match reply.status {
        200 => Ok(Found::Stored(Stored { version: version(&reply)?, bytes: reply.body.into() })),
        304 => Ok(Found::Same),
        404 if !is_bucket(&reply) => Ok(Found::Nothing),
        _ => Err(refused(&reply)),
    }
}

/// What came of a write. Three answers say that its condition did not hold (412; 409 for a write beside it; 404 where the
/// object is gone), some that nothing was done, and the others nothing at all.
pub(super) fn written(reply: Result<Reply, Lost>) -> Result<Put, StoreError> {
    let reply = match reply {
        Ok(reply) => reply,
        Err(end) if end.sent => return Ok(Put::Unknown(lost(end))),
        Err(end) => return Err(lost(end)),
    };
    match reply.status {
        // Written, and at a version that is not told: reading back tells.
        200..300 => Ok(version(&reply).map_or_else(Put::Unknown, Put::Written)),
        404 if !is_bucket(&reply) => Ok(Put::Refused),
        409 | 412 | 304 => Ok(Put::Refused),
        // It says itself that it did nothing.
        503 if code(&reply) == Some("SlowDown") => Err(refused(&reply)),
        500.. => Ok(Put::Unknown(refused(&reply))),
        _ => Err(refused(&reply)),
    }
}

/// A version as people see it: an ETag without its quotes. A weak one promises too little for a swap.
fn version(reply: &Reply) -> Result<StoreVersion, StoreError> {
    let etag = reply.headers.get(http::header::ETAG).and_then(|etag| etag.to_str().ok());
    let strong = etag.filter(|etag| !etag.starts_with("W/")).map(|etag| etag.trim_matches('"'));
    strong.and_then(|etag| etag.parse().ok()).ok_or_else(|| StoreError {
        sentence: "it answered without a strong ETag, so its objects have no version that a write could depend on"
            .into(),
        class: Class::Refused,
    })
}

fn lost(lost: Lost) -> StoreError {
    StoreError { sentence: lost.why, class: lost.class }
}

fn refused(reply: &Reply) -> StoreError {
    let (class, hint) = match (reply.status, code(reply)) {
        (404, _) => (Class::Config, "; create the bucket, or name another one"),
        (403, Some("RequestTimeTooSkewed")) => (Class::Config, "; the clock of this host is off"),
        (401 | 403, _) => (Class::Auth, "; look at the keys of this host and what they may do"),
        (408, _) => (Class::Timeout, ""),
        (429, _) | (503, Some("SlowDown")) => (Class::RateLimit, ""),
        (500.., _) => (Class::InfraDown, ""),
        (301 | 307 | 308, _) => (Class::Config, "; the bucket is elsewhere: name its region or its endpoint"),
        _ => (Class::Refused, ""),
    };
    StoreError { sentence: format!("S3 error HTTP {}: {}{hint}", reply.status, words(reply)), class }
}

/// `NoSuchBucket: The specified bucket does not exist`, or what there is.
fn words(reply: &Reply) -> String {
    let said = match (code(reply), element(reply, "Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code.to_owned(),
        (None, _) => String::from_utf8_lossy(&reply.body).trim().to_owned(),
    };
    said.chars().take(QUOTED).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn is_bucket(reply: &Reply) -> bool {
    code(reply) == Some("NoSuchBucket")
}

fn code(reply: &Reply) -> Option<&str> {
    element(reply, "Code")
}

/// The text of an element of an error.
fn element<'r>(reply: &'r Reply, name: &str) -> Option<&'r str> {
    let body = std::str::from_utf8(&reply.body).ok()?;
    let rest = body.split_once(&format!("<{name}>"))?.1;
    Some(rest.split_once("</")?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderMap;

    fn reply(status: u16, code: &str) -> Reply {
        let body = format!("<Error><Code>{code}</Code><Message>m</Message></Error>").into_bytes();
        Reply { status, headers: HeaderMap::new(), body }
    }

    #[test]
    fn three_answers_refuse_a_write_and_an_answer_that_says_nothing_is_unknown() {
        let put = |status, code: &str| written(Ok(reply(status, code)));
        for (status, code) in [(412, "PreconditionFailed"), (409, "ConditionalRequestConflict"), (404, "NoSuchKey")] {
            assert!(matches!(put(status, code), Ok(Put::Refused)), "{status}");
        }
        for status in [500, 502, 503, 504] {
            assert!(matches!(put(status, "InternalError"), Ok(Put::Unknown(_))), "{status}");
        }
        for (status, code, class) in [
            (404, "NoSuchBucket", Class::Config),
            (403, "AccessDenied", Class::Auth),
            (403, "RequestTimeTooSkewed", Class::Config),
            (503, "SlowDown", Class::RateLimit),
            (400, "EntityTooLarge", Class::Refused),
            (301, "PermanentRedirect", Class::Config),
        ] {
            let error = put(status, code).unwrap_err();
            assert!(error.class == class && error.sentence.contains(&format!("{code}: m")), "{error:?}");
        }
        let silent = |sent| Err(Lost { why: "silent".into(), class: Class::Timeout, sent });
        assert!(matches!(written(silent(true)), Ok(Put::Unknown(_))));
        assert!(written(silent(false)).is_err());
    }

    #[test]
    fn a_version_is_a_strong_etag_without_its_quotes() {
        let with = |etag: &str| {
            let mut reply = reply(200, "");
            reply.headers.insert(http::header::ETAG, etag.parse().unwrap());
            version(&reply)
        };
        assert_eq!(with("\"9b2c\"").unwrap().as_str(), "9b2c");
        for none in ["", "\"\"", "W/\"9b2c\""] {
            assert!(with(none).is_err(), "{none:?}");
        }
        assert!(version(&reply(200, "")).is_err());
    }
}
