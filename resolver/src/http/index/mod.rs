//! The index at `http://stado.localhost:<port>/`: what is served on this machine, where each service stands now, since when,
//! and its last error.
//!
//! [`rows`] collects, [`draw`] makes the page that needs no script, [`picture`] the fleet in it, [`story`] the page of one route,
//! [`feed`] sends what changes to the script that is served beside it. Nothing here changes anything; [`guard`] refuses requests that another site's page made (design, rule 7).
mod draw;
mod feed;
mod guard;
mod picture;
mod row;
mod rows;
mod story;
#[cfg(test)]
mod tests;

pub use rows::{FleetView, Source};

use super::own::{Own, OwnAnswer, OwnBody, OwnRequest, OwnResponse};
use super::page::{self, Form, Problem};
use crate::conn::ledger::Ledger;
use crate::mesh::Mesh;
use bytes::Bytes;
use feed::Feeds;
use std::sync::Arc;

const SCRIPT: &str = include_str!("app.js");
const STYLE: &str = include_str!("app.css");
const ICON: &str = include_str!("icon.svg");

/// What the page may do: its own script, its own style, its own event stream, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The site of our own host. It holds the mesh weakly: an open event stream keeps no daemon alive.
#[derive(Debug)]
pub struct Index {
    source: Arc<Source>,
    feeds: Feeds,
}

impl Index {
    /// Over the services of `mesh` and the adapters of `fleet`, with connections counted in `ledger`.
    pub fn new(mesh: &Arc<Mesh>, ledger: Ledger, fleet: Option<FleetView>) -> Self {
        Self { source: Arc::new(Source::new(mesh, ledger, fleet)), feeds: Feeds::default() }
    }

    fn respond(&self, request: &OwnRequest) -> OwnResponse {
        if let Some(problem) = guard::refuse(request) {
            return refused(&problem, request);
        }
        match request.path.as_str() {
            "/" => self.page(request),
            "/services.json" => full(200, "application/json", self.json()),
            "/events" => self.events(request),
            "/story" => self.story(request),
            "/fleet.svg" => full(200, "image/svg+xml", self.picture()),
            "/app.js" => full(200, "text/javascript; charset=utf-8", SCRIPT.into()),
            "/app.css" => full(200, "text/css; charset=utf-8", STYLE.into()),
            "/icon.svg" | "/favicon.ico" => full(200, "image/svg+xml", ICON.into()),
            path => refused(&Problem::NoPage { path: path.to_owned() }, request),
        }
    }

    fn page(&self, request: &OwnRequest) -> OwnResponse {
        let form = page::choose(request.header("accept"));
        let body = match form {
            Form::Html => draw::page(&self.source.rows(), &self.picture()),
            Form::Json => self.json(),
            Form::Text => draw::text(&self.source.rows()),
        };
        full(200, form.content_type(), body)
    }

    fn picture(&self) -> String {
        picture::svg(self.source.scene().as_ref(), &self.source.rows())
    }

    fn story(&self, request: &OwnRequest) -> OwnResponse {
        let form = page::choose(request.header("accept"));
        match story::asked(&request.query).and_then(|id| self.source.story(&id)) {
            Some(story) => full(200, form.content_type(), story.told(form, jiff::Timestamp::now())),
            None => {
                let text = "404 Not Found\n\nno such service is known now; all are listed at /\n";
                full(404, Form::Text.content_type(), text.into())
            }
        }
    }

    fn json(&self) -> String {
        format!("{}\n", serde_json::json!({ "services": self.source.rows() }))
    }

    fn events(&self, request: &OwnRequest) -> OwnResponse {
        if request.method == "HEAD" {
            return full(200, feed::TYPE, String::new());
        }
        match self.feeds.open(Arc::clone(&self.source)) {
            Some(stream) => answer(200, feed::TYPE, OwnBody::Stream(stream)),
            None => refused(&Problem::TooManyReaders, request),
        }
    }
}

impl Own for Index {
    fn answer(&self, request: OwnRequest) -> OwnAnswer<'_> {
        Box::pin(std::future::ready(self.respond(&request)))
    }
}

fn full(status: u16, content_type: &str, body: String) -> OwnResponse {
    answer(status, content_type, OwnBody::Full(Bytes::from(body)))
}

fn answer(status: u16, content_type: &str, body: OwnBody) -> OwnResponse {
    let mut headers = page::common();
    headers.push(("Content-Security-Policy", POLICY.to_owned()));
    respond(status, content_type, headers, body)
}

/// A page of the family that the whole router answers with, in the form that the client prefers.
fn refused(problem: &Problem, request: &OwnRequest) -> OwnResponse {
    let page = page::render(problem, request.header("accept"));
    respond(page.status, page.content_type, page.headers, OwnBody::Full(page.body))
}

fn respond(status: u16, content_type: &str, mut headers: Vec<(&'static str, String)>, body: OwnBody) -> OwnResponse {
    headers.extend([
        ("Content-Type", content_type.to_owned()),
        ("Cross-Origin-Resource-Policy", "same-origin".to_owned()),
        ("X-Frame-Options", "DENY".to_owned()),
    ]);
    OwnResponse { status, headers, body }
}
