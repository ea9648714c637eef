//! What there is to tell of one item, as labelled sentences. Pure.
use super::picture::{Picture, Row, Session, Wait, error_sentence, sentence};
use super::view::Item;
use crate::cmd::age;
use crate::cmd::resolver::{millis, rate};
use crate::cmd::status::Trouble;
use jiff::Timestamp;
use stado_fleet::fault::Hop;
use stado_fleet::wire::{Connection, ConnectionList};

/// Open connections, and ended ones, that a page names.
const NAMED: usize = 20;

/// A label, and what it says; a line without a label goes on.
pub(super) type Line = (&'static str, String);

/// The story of an item. `connections`: of its service, when they are known.
pub(super) fn story(
    item: Item<'_>,
    picture: &Picture,
    connections: Option<&ConnectionList>,
    now: Timestamp,
) -> Vec<Line> {
    match item {
        Item::Route(row) => route(row, picture, connections, now),
        Item::Wait(waiting) => wait(waiting, picture, connections, now),
        Item::Session(link) => session(link),
        Item::Trouble(what) => trouble(what, now),
    }
}

fn route(row: &Row, picture: &Picture, connections: Option<&ConnectionList>, now: Timestamp) -> Vec<Line> {
    let standing = &row.standing;
    let mut lines = vec![("state", with_age(row.state.word(), &standing.since, now))];
    let mut say = |label, text: String| {
        if !text.is_empty() {
            lines.push((label, text));
        }
    };
    say("why", row.why.clone());
    let no_address = "none now: nothing is bound for it".to_owned();
    say("address", if standing.address.is_empty() { no_address } else { standing.address.clone() });
    say("stands at", if standing.place.is_empty() { "nowhere now".to_owned() } else { standing.place.clone() });
    let from = if standing.from == "fleet" { "an adapter of the fleet" } else { "the mesh of this host" };
    say("from", format!("{from}, {}", standing.kind));
    say("way", way(row));
    say("now", now_counted(row));
    say("so far", counted(row));
    for (label, text) in history(row, now) {
        say(label, text);
    }
    let of_this = |wait: &&Wait| wait.route == standing.id;
    let waits = picture.waits.iter().filter(of_this).map(|wait| ("waits", waiting(wait, now)));
    lines.extend(labelled_once(waits));
    lines.extend(clients(row, connections));
    lines
}

/// Carrier, path and round trip, of a route to another host.
fn way(row: &Row) -> String {
    let Some(way) = &row.way else { return String::new() };
    let over = way.path.as_ref().map(|path| format!(" over the path {path}")).unwrap_or_default();
    let trip = way.rtt_us.map(|us| format!(", {} there and back", millis(us))).unwrap_or_default();
    match way.carrier.as_deref() {
        Some("local") => "it is on this host".to_owned(),
        Some(carrier) => format!("{carrier}{over}{trip}"),
        None if row.standing.host.is_empty() => String::new(),
        None => format!("no session to {} yet: nobody has asked for one", row.standing.host),
    }
}

fn now_counted(row: &Row) -> String {
    let open = format!("{} open", row.standing.traffic.active);
    let Some(rates) = row.rates else { return open };
    let what = if row.standing.traffic.requests > 0 { "requests" } else { "connections" };
    format!("{open}, {:.1} {what} a second, {} up, {} down", rates.new, bytes(rates.up), bytes(rates.down))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are not negative, and shown")]
fn bytes(a_second: f64) -> String {
    rate(a_second as u64)
}

fn counted(row: &Row) -> String {
    let traffic = &row.standing.traffic;
    let requests = match traffic.requests {
        0 => String::new(),
        requests => format!("{requests} requests, {} of them failed, ", traffic.failed),
    };
    format!(
        "{requests}{} connections, {} bytes up, {} bytes down",
        traffic.opened, traffic.bytes_up, traffic.bytes_down
    )
}

/// When it worked, when and where it failed, and who has to act.
fn history(row: &Row, now: Timestamp) -> Vec<Line> {
    let mut lines = Vec::new();
    let way = row.way.as_ref();
    if let Some(at) = way.and_then(|way| way.last_success_at.as_deref()) {
        lines.push(("worked", moment(at, now)));
    }
    match (way.and_then(|way| way.last_failure.as_ref()), &row.standing.last_error) {
        (Some(failure), _) => {
            lines.push(("failed", format!("{}: {}", moment(&failure.at, now), failure.sentence())));
            lines.push(("where", hop(&failure.hop).to_owned()));
            lines.push(("who acts", blame(&failure.blame).to_owned()));
        }
        (None, Some(error)) => {
            lines.push(("failed", format!("{}: {}", moment(&error.at, now), error_sentence(error))));
            lines.extend(error.hop.as_deref().map(|at| ("where", hop(at).to_owned())));
        }
        (None, None) => lines.push(("failed", "never, as far as this daemon knows".to_owned())),
    }
    let answers = way.map(|way| &way.answers);
    if let Some(at) = answers.and_then(|answers| answers.last_answered_at.as_deref()) {
        lines.push(("answered", moment(at, now)));
    }
    if let Some(at) = answers.and_then(|answers| answers.first_unanswered_at.as_deref()) {
        lines.push(("unanswered", format!("since {}", moment(at, now))));
    }
    lines
}

/// A hop, for people who do not know the word.
fn hop(code: &str) -> &'static str {
    let known = [Hop::Adapter, Hop::Session, Hop::Channel, Hop::Service].into_iter().find(|hop| hop.code() == code);
    match known {
        Some(Hop::Adapter) => "adapter: at the address on this host",
        Some(Hop::Session) => "session: on the SSH way to the other host",
        Some(Hop::Channel) => "channel: the session stands, and the other host opened nothing through it",
        Some(Hop::Service) => "service: at the service itself",
        None => "at a hop that this version does not know",
    }
}

fn blame(code: &str) -> &'static str {
    match code {
        "caller" => "whoever connects",
        "credentials" => "whoever may change keys and accounts",
        "this_host" => "this host",
        "remote" => "the other host",
        "service" => "whoever runs the service",
        "stado" => "nobody: this is a fault of Stado",
        _ => "not known",
    }
}

/// Who is connected and who was, as far as that is told.
fn clients(row: &Row, connections: Option<&ConnectionList>) -> Vec<Line> {
    let Some(list) = connections.filter(|list| list.service == row.standing.name) else { return Vec::new() };
    let of_this =
        |connection: &&Connection| connection.consumer.as_deref().unwrap_or_default() == row.standing.consumer;
    let open: Vec<&Connection> = list.open.iter().filter(of_this).collect();
    let ended: Vec<&Connection> = list.ended.iter().filter(of_this).collect();
    let mut lines: Vec<Line> =
        labelled_once(open.iter().take(NAMED).map(|connection| ("connected", connected(connection)))).collect();
    if open.len() > NAMED {
        lines.push(("", format!("and {} more", open.len() - NAMED)));
    }
    lines.extend(labelled_once(ended.iter().take(NAMED).map(|connection| ("ended", connected(connection)))));
    lines
}

/// `127.0.0.1:50412 since 2026-12-01T10:00:00Z, opening`.
fn connected(connection: &Connection) -> String {
    let Connection { client, since, outcome, reason, hop, .. } = connection;
    let hop = hop.as_ref().map(|hop| format!(" at the {hop}")).unwrap_or_default();
    let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let lasted = age::span(connection.duration_ms / 1000);
    let since = since.parse().map_or_else(|_| since.clone(), second);
    format!("{client} since {since} ({lasted}), {}{hop}{reason}", outcome.replace('_', " "))
}

fn wait(wait: &Wait, picture: &Picture, connections: Option<&ConnectionList>, now: Timestamp) -> Vec<Line> {
    let mut lines = vec![
        ("wait", waiting(wait, now)),
        ("client", wait.of.client.clone().unwrap_or_else(|| "not told".to_owned())),
        ("at", wait.of.bind.clone()),
    ];
    lines.extend(wait.of.request.clone().map(|request| ("asked", request)));
    if let Some(row) = picture.routes.iter().find(|row| row.standing.id == wait.route) {
        lines.push(("", String::new()));
        lines.push(("route", row.title.clone()));
        lines.extend(route(row, picture, connections, now));
    }
    lines
}

/// `since 2026-12-01T10:00:00Z (12s ago) for an answer from 127.0.0.1:5432 on hub, client 127.0.0.1:50412`.
fn waiting(wait: &Wait, now: Timestamp) -> String {
    let client = wait.of.client.as_ref().map(|client| format!(", client {client}")).unwrap_or_default();
    format!("since {} {}{client}", moment(&wait.of.since, now), for_what(wait))
}

/// `for an answer from 127.0.0.1:5432 on hub`.
pub(super) fn for_what(wait: &Wait) -> String {
    let what = if wait.of.phase == "answer" { "for an answer from" } else { "to reach" };
    format!("{what} {} on {}", wait.of.endpoint, wait.of.active_host)
}

fn session(session: &Session) -> Vec<Line> {
    let link = &session.link;
    let mut lines = vec![
        ("carrier", link.carrier.clone()),
        ("path", link.path.clone()),
        ("round trip", link.rtt_us.map_or_else(|| "not measured yet".to_owned(), millis)),
        ("streams", link.streams.to_string()),
    ];
    lines.extend(link.reason.clone().map(|reason| ("why so", reason)));
    lines.extend(labelled_once(session.routes.iter().map(|route| ("routes", route.clone()))));
    lines
}

fn trouble(trouble: &Trouble, now: Timestamp) -> Vec<Line> {
    let kind = if trouble.severity == "fail" { "to put right" } else { "worth knowing" };
    let mut lines = vec![("kind", kind.to_owned()), ("about", trouble.about.clone()), ("what", sentence(trouble))];
    lines.extend(trouble.since.as_deref().map(|since| ("since", moment(since, now))));
    lines
}

fn labelled_once(lines: impl Iterator<Item = Line>) -> impl Iterator<Item = Line> {
    lines.enumerate().map(|(at, (label, text))| (if at == 0 { label } else { "" }, text))
}

fn with_age(word: &str, since: &str, now: Timestamp) -> String {
    if since.is_empty() { word.to_owned() } else { format!("{word} since {}", moment(since, now)) }
}

/// `2026-12-01T10:00:00Z (3m ago)`.
fn moment(text: &str, now: Timestamp) -> String {
    match text.parse::<Timestamp>() {
        Ok(at) => format!("{} ({} ago)", second(at), age::span(seconds(at, now))),
        Err(_) => text.to_owned(),
    }
}

fn second(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Whole seconds from `at` to `now`.
pub(super) fn seconds(at: Timestamp, now: Timestamp) -> u64 {
    u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0)
}
