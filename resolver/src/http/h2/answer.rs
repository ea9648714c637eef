//! Answers of our own on a stream.
use super::super::head::is_grpc;
use super::super::own::{OwnBody, OwnResponse};
use super::super::page::{Page, Problem, grpc, render};
use bytes::Bytes;
use h2::server::SendResponse;
use http::header::{self, HeaderMap};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use std::time::Duration;

/// How long a client may leave an answer of ours unread.
const UNREAD: Duration = Duration::from_secs(30);

/// What a page of ours about a request depends on.
pub(super) struct PageFor {
    method: Method,
    accept: Option<String>,
    grpc: bool,
}

impl PageFor {
    pub(super) fn of(request: &Request<()>) -> Self {
        let text = |name| request.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let grpc = request.headers().get(header::CONTENT_TYPE).is_some_and(|kind| is_grpc(kind.as_bytes()));
        Self { method: request.method().clone(), accept: text(header::ACCEPT).map(str::to_owned), grpc }
    }

    /// Answers with the page for `problem`; returns its status and the length of its body. What the client still sends is
    /// nobody's: its stream ends behind the answer.
    pub(super) async fn say(&self, respond: &mut SendResponse<Bytes>, problem: &Problem) -> (u16, u64) {
        let mut said = render(problem, self.accept.as_deref());
        if self.grpc {
            said.headers.extend(grpc(problem));
        }
        page(respond, said, &self.method).await
    }
}

/// Answers with `page`; a HEAD gets its fields alone.
async fn page(respond: &mut SendResponse<Bytes>, page: Page, method: &Method) -> (u16, u64) {
    let (status, body) = (page.status, page.body.clone());
    let bodyless = method == Method::HEAD || body.is_empty();
    // A client that is gone needs no answer.
    if let Ok(mut stream) = respond.send_response(head(&page), bodyless)
        && !bodyless
    {
        let _ = super::body::send(&mut stream, body.clone(), true, UNREAD).await;
    }
    (status, if bodyless { 0 } else { body.len() as u64 })
}

fn head(page: &Page) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let fields = response.headers_mut();
    put(fields, &page.headers);
    fields.insert(header::CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    fields.insert(header::CONTENT_LENGTH, page.body.len().into());
    response
}

/// Answers for our own host; a stream of pieces goes on until its maker or the client ends it.
pub(super) async fn own(respond: &mut SendResponse<Bytes>, answer: OwnResponse, method: &Method) -> (u16, u64) {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    put(response.headers_mut(), &answer.headers);
    let (status, is_head) = (answer.status, method == Method::HEAD);
    match answer.body {
        OwnBody::Full(body) => {
            response.headers_mut().insert(header::CONTENT_LENGTH, body.len().into());
            let length = body.len() as u64;
            let bodyless = is_head || body.is_empty();
            if let Ok(mut stream) = respond.send_response(response, bodyless)
                && !bodyless
            {
                let _ = super::body::send(&mut stream, body, true, UNREAD).await;
            }
            (status, length)
        }
        OwnBody::Stream(mut pieces) => {
            let Ok(mut stream) = respond.send_response(response, is_head) else { return (status, 0) };
            let mut sent = 0;
            if is_head {
                return (status, 0);
            }
            loop {
                match super::body::unless_left(&mut stream, pieces.recv()).await {
                    Ok(Some(piece)) => {
                        sent += piece.len() as u64;
                        if super::body::send(&mut stream, piece, false, UNREAD).await.is_err() {
                            break;
                        }
                    }
                    Ok(None) => {
                        let _ = super::body::send(&mut stream, Bytes::new(), true, UNREAD).await;
                        break;
                    }
                    Err(_) => break,
                }
            }
            (status, sent)
        }
    }
}

fn put(fields: &mut HeaderMap, all: &[(&'static str, String)]) {
    for (name, value) in all {
        if let (Ok(name), Ok(value)) = (header::HeaderName::try_from(*name), HeaderValue::try_from(value)) {
            fields.append(name, value);
        }
    }
}
