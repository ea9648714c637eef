//! What the fuzz target `http_request` runs: the way of a request's bytes from the client's socket to the backend's, without
//! the sockets.
use super::framing::{Body, Form};
use super::head::{Bounds, FIELDS, Hop, Refused, Request, Scan, True, normalise, write_request};
use super::serve1::Scheme;
use httparse::EMPTY_HEADER;

const BOUNDS: Bounds = Bounds { bytes: 16 << 10, fields: FIELDS };

/// What one request is made of.
#[derive(Debug, PartialEq, Eq)]
struct Passed {
    head: Vec<u8>,
    body: Vec<u8>,
    whole: bool,
}

/// Panics when a promise is broken: a refused request has no bytes for the backend, a split changes nothing, and the next
/// reader finds the same request in what is passed on. Tells in words what it made of the bytes.
pub(crate) fn request(bytes: &[u8]) -> String {
    let hop = Hop::new();
    let whole = pass(bytes, &hop, |_| bytes.len());
    // As if the bytes came one by one, and in two halves.
    assert_eq!(pass(bytes, &hop, |at| at + 1), whole, "byte by byte");
    assert_eq!(
        pass(bytes, &hop, |at| if at < bytes.len() / 2 { bytes.len() / 2 } else { bytes.len() }),
        whole,
        "halves"
    );
    match whole {
        Err(Refused::Bad(why)) => why.to_owned(),
        Err(other) => format!("{other:?}"),
        Ok(None) => "more".to_owned(),
        Ok(Some(passed)) => {
            let sent = [passed.head.as_slice(), &passed.body].concat();
            let again = pass(&sent, &Hop::new(), |_| sent.len());
            let again = again.ok().flatten();
            assert!(again.is_some(), "what is passed on is no request: {}", sent.escape_ascii());
            assert_eq!(again.map(|again| (again.body, again.whole)), Some((passed.body, passed.whole)));
            let line = passed.head.split(|byte| *byte == b' ').next().unwrap_or_default();
            format!("{} {}", line.escape_ascii(), passed.whole)
        }
    }
}

/// `next` says how many bytes have come after so many were there.
fn pass(bytes: &[u8], hop: &Hop, next: impl Fn(usize) -> usize) -> Result<Option<Passed>, Refused> {
    let (mut scan, mut come) = (Scan::default(), 0);
    let head = loop {
        match scan.next(bytes.get(..come).unwrap_or_default(), BOUNDS)? {
            Some(head) => break head,
            None if come == bytes.len() => return Ok(None),
            None => come = next(come).clamp(come + 1, bytes.len()),
        }
    };
    let mut used = head.end;
    let mut room = [EMPTY_HEADER; FIELDS];
    let request = Request::read(bytes.get(head).unwrap_or_default(), &mut room, hop)?;
    let mut host = String::new();
    normalise(request.authority, &mut host).map_err(Refused::Bad)?;
    let loopback = std::net::SocketAddr::from(([127, 0, 0, 1], 80));
    let mut out = Vec::new();
    write_request(&request, &True::new(loopback, loopback, Scheme::Http), hop, &mut out);
    let (mut body, mut data) = (Body::new(request.framing, Form::Framed), Vec::new());
    while !body.is_done() {
        let piece = bytes.get(used..come).unwrap_or_default();
        if piece.is_empty() {
            if come == bytes.len() {
                break;
            }
            come = next(come).clamp(come + 1, bytes.len());
            continue;
        }
        let run = body.read(piece).map_err(Refused::Bad)?;
        if run.pass {
            data.extend_from_slice(piece.get(..run.len).unwrap_or_default());
        }
        used += run.len;
        if let Some(tail) = body.finish() {
            data.extend_from_slice(&tail);
        }
    }
    Ok(Some(Passed { head: out, body: data, whole: body.is_done() }))
}
