//! One stream: for whom it is, and what becomes of it.
use super::answer::PageFor;
use super::asked::{self, Asked};
use super::connection::Shared;
use super::exchange::{Count, Exchange, Failed};
use super::{answer, to_h1, to_h2, until_reset};
use crate::conn::Backend;
use crate::conn::ledger::{Entry, Refusal};
use crate::http::access::Done;
use crate::http::hostname;
use crate::http::own::{Own, OwnRequest};
use crate::http::page::Problem;
use crate::http::site::{Protocol, Site};
use crate::http::stats::InFlight;
use bytes::Bytes;
use h2::ext::Protocol as Onto;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{HeaderValue, Method, Request, header};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// Leads it to its end.
pub(super) async fn run(request: Request<RecvStream>, mut respond: SendResponse<Bytes>, shared: Arc<Shared>) {
    let started = Instant::now();
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts, ());
    let told = Told::of(&request, shared.ctx.observer.logs());
    let (count, site) = match route(&request, &shared) {
        Err(problem) => {
            let said = PageFor::of(&request).say(&mut respond, &problem).await;
            (Count::of(said), None)
        }
        Ok(Whose::Own(own, asked)) => {
            let method = request.method().clone();
            let answered = until_reset(&mut respond, own.answer(own_request(&request, asked))).await;
            let said = match answered {
                Some(answered) => answer::own(&mut respond, answered, &method).await,
                None => (0, 0),
            };
            (Count::of(said), None)
        }
        Ok(Whose::Site(site, asked)) => {
            let withdrawal = site.slot.withdrawal();
            let count = tokio::select! {
                biased;
                // The stream is reset with what carried it.
                () = withdrawal.withdrawn(), if site.consumer.is_some() => Count::default(),
                count = proxied(request, body, respond, &asked, &site, &shared) => count,
            };
            (count, Some(site))
        }
    };
    let done = Done {
        method: &told.method,
        host: &told.host,
        path: &told.path,
        protocol: "HTTP/2.0",
        status: count.status,
        bytes_in: count.bytes_in,
        bytes_out: count.bytes_out,
        started,
        peer: shared.ends.peer,
        referer: &told.referer,
        agent: &told.agent,
    };
    shared.ctx.observer.request(site.as_deref(), &done);
}

/// Who answers.
enum Whose {
    Own(Arc<dyn Own>, Asked),
    Site(Arc<Site>, Asked),
}

fn route(request: &Request<()>, shared: &Shared) -> Result<Whose, Problem> {
    let (ctx, onto) = (&shared.ctx, request.extensions().get::<Onto>());
    if request.method() == Method::CONNECT && onto.is_none() {
        return Err(Problem::ConnectRefused);
    }
    // Any other word would become an `Upgrade` of an HTTP/1 backend, and the word itself part of its head.
    if onto.is_some_and(|onto| !onto.as_str().eq_ignore_ascii_case("websocket")) {
        return Err(Problem::Bad { why: "an extended CONNECT is passed on for websocket alone" });
    }
    if request.headers().len() > ctx.limits.header_count {
        return Err(Problem::HeadTooLarge);
    }
    let asked = asked::read(request)?;
    if shared.ends.covered.as_ref().is_some_and(|names| !names.covers(&asked.host)) {
        return Err(Problem::Misdirected { host: asked.host });
    }
    if shared.truth.is_looped(request.headers()) {
        return Err(Problem::Loop { host: asked.host });
    }
    let ends = &shared.ends;
    let unknown = |asked: Asked| Err(ctx.unknown_host(&asked.host, ends.scheme, ends.local.port()));
    if hostname::is_reserved(&asked.host) {
        return match &ctx.own {
            Some(own) if asked.host == hostname::OWN => Ok(Whose::Own(Arc::clone(own), asked)),
            _ => unknown(asked),
        };
    }
    match ctx.routes.find(&asked.host) {
        Some(site) => Ok(Whose::Site(site, asked)),
        None => unknown(asked),
    }
}

fn own_request(request: &Request<()>, asked: Asked) -> OwnRequest {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let uri = request.uri();
    OwnRequest {
        method: request.method().to_string(),
        path: uri.path().to_owned(),
        query: uri.query().unwrap_or_default().to_owned(),
        host: asked.host,
        authority: asked.authority,
        headers: request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect(),
    }
}

async fn proxied(
    mut request: Request<()>,
    body: RecvStream,
    mut respond: SendResponse<Bytes>,
    asked: &Asked,
    site: &Site,
    shared: &Shared,
) -> Count {
    let ctx = &shared.ctx;
    let page = PageFor::of(&request);
    let ended = body.is_end_stream();
    let (_place, entry) = match admit(site, shared) {
        Ok(admitted) => admitted,
        Err(problem) => return Count::of(page.say(&mut respond, &problem).await),
    };
    shared.truth.rewrite(request.headers_mut(), &asked.authority);
    let upgrade = request.extensions().get::<Onto>().map(|onto| onto.as_str().to_owned());
    let count = Count::default();
    let malformed = &shared.malformed;
    let mut exchange = Exchange { site, ctx, request, asked, body, ended, respond, count, upgrade, entry, malformed };
    let result = match site.protocol {
        Protocol::H2c => to_h2::forward(&mut exchange).await,
        Protocol::Http1 | Protocol::Https => to_h1::forward(&mut exchange).await,
    };
    exchange.close(&result);
    let problem = match result {
        Ok(()) | Err(Failed::Broken(_)) => return exchange.count,
        Err(Failed::ClientLeft) => {
            if exchange.count.status == 0 && !shared.budget.spend(Instant::now()) {
                shared.enough.notify_one();
            }
            return exchange.count;
        }
        Err(Failed::Malformed) => {
            exchange.respond.send_reset(Reason::PROTOCOL_ERROR);
            return exchange.count;
        }
        Err(Failed::Reset(reason)) => {
            exchange.respond.send_reset(reason);
            return exchange.count;
        }
        Err(Failed::Ours(problem)) => problem,
        Err(Failed::Odd(cause) | Failed::Silent(cause)) => exchange.bad_gateway(&cause),
    };
    Count::of(page.say(&mut exchange.respond, &problem).await)
}

/// A place at the service and a line in the ledger.
fn admit(site: &Site, shared: &Shared) -> Result<(InFlight, Entry), Problem> {
    let ctx = &shared.ctx;
    if let Backend::None(reason) = &site.backend {
        site.slot.refuse(Refusal::NoBackend);
        return Err(Problem::Unavailable {
            service: site.service.to_string(),
            reason: reason.to_string(),
            since: site.since,
            hop: site.without_backend(),
        });
    }
    let place = site.stats.admit(ctx.limits.service_requests);
    let conn = &ctx.conn;
    let accepted = shared.accepted.lock().unwrap_or_else(PoisonError::into_inner).take();
    let from = (shared.ends.peer, accepted.unwrap_or_else(jiff::Timestamp::now));
    let open = || Entry::open_since(&conn.ledger, &site.slot, &site.frontend, &site.backend, from, usize::MAX);
    place.and_then(|place| Some((place, open()?))).ok_or_else(|| {
        site.slot.refuse(Refusal::Limit);
        Problem::TooMany { service: site.service.to_string() }
    })
}

/// What the access log says of a request; empty where there is none.
#[derive(Debug, Default)]
struct Told {
    method: String,
    host: String,
    path: String,
    referer: String,
    agent: String,
}

impl Told {
    fn of(request: &Request<()>, wanted: bool) -> Self {
        if !wanted {
            return Self::default();
        }
        let field = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or("").to_owned();
        let uri = request.uri();
        Self {
            method: request.method().to_string(),
            host: uri.authority().map_or_else(|| field(header::HOST), ToString::to_string),
            path: uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
            referer: field(header::REFERER),
            agent: field(header::USER_AGENT),
        }
    }
}
