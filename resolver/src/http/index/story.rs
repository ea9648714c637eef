//! The story of one route: what a client connects to, where that leads, how it went, who waits. Made from the same rows as the
//! index; pure but for the ledger that it is read from.
use super::super::page::{Form, escape, shown};
use super::row::Row;
use jiff::Timestamp;
use serde::Serialize;
use stado_fleet::ledger::{Wait, wait_sentence};
use stado_fleet::wire::{Connection, ConnectionList};

/// Ended connections that are told.
const ENDED: usize = 20;

/// What is known of one route.
#[derive(Debug, Serialize)]
pub(super) struct Story {
    pub(super) route: Row,
    /// Names of the declared paths to its host, in the order in which they are tried.
    pub(super) paths: Vec<String>,
    pub(super) waits: Vec<Wait>,
    pub(super) connections: ConnectionList,
}

/// The id that a query asks for.
pub(super) fn asked(query: &str) -> Option<String> {
    let value = query.split('&').find_map(|pair| pair.strip_prefix("id="))?;
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

impl Story {
    /// In the form that was asked for.
    pub(super) fn told(&self, form: Form, now: Timestamp) -> String {
        match form {
            Form::Json => serde_json::to_string(self).map(|text| text + "\n").unwrap_or_default(),
            Form::Text => self.lines(now).into_iter().map(|line| shown(&line) + "\n").collect(),
            Form::Html => self.html(now),
        }
    }

    fn title(&self) -> String {
        match self.route.consumer.as_str() {
            "" => self.route.name.clone(),
            consumer => format!("{} for {consumer}", self.route.name),
        }
    }

    /// The way in sentences, in the order in which a connection goes it.
    fn lines(&self, now: Timestamp) -> Vec<String> {
        let row = &self.route;
        let since = if row.since.is_empty() { String::new() } else { format!(" since {}", row.since) };
        let mut lines = vec![format!("{} is {}{since}", self.title(), row.state)];
        if !row.reason.is_empty() {
            lines.push(format!("because: {}", row.reason));
        }
        lines.push(match row.address.as_str() {
            "" => "a client has nothing to connect to now".to_owned(),
            address => format!("a client connects to {address}, on this machine"),
        });
        lines.push(match (row.from.as_str(), row.host.as_str(), row.place.as_str()) {
            (_, _, "") => "nothing stands behind it now".to_owned(),
            ("fleet", "", place) => format!("the directory places it here, at {place}"),
            ("fleet", _, place) => {
                format!("the directory places it on {place}, reached over {}", self.paths.join(", then "))
            }
            (_, _, place) => format!("its producer listens at {place}"),
        });
        let counters = &self.connections.counters;
        let refused = &counters.refused;
        lines.push(format!(
            "{} open, {} carried, refused: {} without a backend, {} over the limit, {} unreachable, {} in a loop",
            counters.active, counters.opened, refused.no_backend, refused.limit, refused.unreachable, refused.looped
        ));
        if let Some(error) = &row.last_error {
            lines.push(format!("last error at {}: {}", error.at, error.cause));
        }
        lines.extend(self.waits.iter().map(|wait| wait_sentence(wait, now)));
        lines
    }

    fn html(&self, now: Timestamp) -> String {
        let title = escape(&shown(&self.title()));
        let steps: String =
            self.lines(now).iter().skip(1).map(|line| format!("<li>{}</li>\n", escape(&shown(line)))).collect();
        let state = escape(&self.route.state);
        let rows: String =
            self.connections.open.iter().chain(self.connections.ended.iter().take(ENDED)).map(line).collect();
        let table = if rows.is_empty() {
            "<p class=\"soft\">Nobody was connected yet.</p>\n".to_owned()
        } else {
            format!(
                "<table>\n<caption>Connections, the open ones first</caption>\n<thead><tr><th scope=\"col\">Client</th>\
                 <th scope=\"col\">Outcome</th><th scope=\"col\">Since</th><th scope=\"col\">Lasted</th><th scope=\"col\">Up</th>\
                 <th scope=\"col\">Down</th><th scope=\"col\">Why</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
            )
        };
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}: Stado</title>\n\
             <link rel=\"icon\" href=\"/icon.svg\">\n<link rel=\"stylesheet\" href=\"/app.css\">\n</head>\n<body>\n\
             <header>\n<h1><img src=\"/icon.svg\" alt=\"\" width=\"28\" height=\"28\">{title}</h1>\n\
             <p class=\"{state}\"><span class=\"state\">{state}</span></p>\n<p><a href=\"/\">All services</a></p>\n</header>\n\
             <main>\n<ol class=\"steps\">\n{steps}</ol>\n{table}</main>\n</body>\n</html>\n"
        )
    }
}

fn line(connection: &Connection) -> String {
    let of = |text: &str| escape(&shown(text));
    let why = connection.reason.as_deref().unwrap_or_default();
    let Connection { duration_ms, bytes_up, bytes_down, .. } = connection;
    format!(
        "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{duration_ms} ms</td><td>{bytes_up}</td><td>{bytes_down}</td>\
         <td class=\"error\">{}</td></tr>\n",
        of(&connection.client),
        of(&connection.outcome),
        of(&connection.since),
        of(why)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story() -> Story {
        let route = Row {
            name: "orders".into(),
            consumer: "shop".into(),
            from: "fleet".into(),
            state: "ready".into(),
            address: "127.0.0.1:15500".into(),
            place: "hub (127.0.0.1:5432)".into(),
            host: "hub".into(),
            ..Row::default()
        };
        let wait = Wait { service: "orders".into(), since: "2026-12-01T09:59:00Z".into(), ..Wait::default() };
        let connection = Connection { client: "<b>".into(), outcome: "open".into(), ..Connection::default() };
        let connections = ConnectionList { open: vec![connection], ..ConnectionList::default() };
        Story { route, paths: vec!["primary".into(), "vpn".into()], waits: vec![wait], connections }
    }

    #[test]
    fn the_way_is_told_in_the_order_in_which_a_connection_goes_it() {
        let now = "2026-12-01T10:00:00Z".parse().unwrap();
        let text = story().told(Form::Text, now);
        assert!(
            text.starts_with("orders for shop is ready\na client connects to 127.0.0.1:15500, on this machine\n"),
            "{text}"
        );
        assert!(text.contains("places it on hub (127.0.0.1:5432), reached over primary, then vpn"), "{text}");
        assert!(text.contains("has waited 60s"), "{text}");
        let html = story().told(Form::Html, now);
        assert!(
            html.contains("<code>&lt;b&gt;</code>") && !html.contains("<b>") && html.contains("has waited 60s"),
            "{html}"
        );
        let json: serde_json::Value = serde_json::from_str(&story().told(Form::Json, now)).unwrap();
        assert_eq!(json["route"]["host"], "hub");
    }

    #[test]
    fn an_id_is_read_as_it_was_written() {
        assert_eq!(asked("x=1&id=fleet/a%20b"), Some("fleet/a b".into()));
        assert_eq!((asked(""), asked("id=%zz"), asked("id=%ff")), (None, None, None));
    }
}
