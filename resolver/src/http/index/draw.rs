//! The index without a script: a table that a browser, a screen reader or a terminal can read as it is.
use super::super::page::{escape, shown};
use super::picture::story;
use super::row::Row;

/// The page. The script takes over the same table and keeps it true. `picture`: the fleet, or nothing.
pub(super) fn page(rows: &[Row], picture: &str) -> String {
    let lines: String = rows.iter().map(line).collect();
    let none = "<tr class=\"none\"><td colspan=\"7\">No service yet. Register one in a terminal:<br>\
                <code>stado service register --name web --kind http --backend 127.0.0.1:3000</code></td></tr>\n";
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>Stado: services of this machine</title>\n\
         <link rel=\"icon\" href=\"/icon.svg\">\n<link rel=\"stylesheet\" href=\"/app.css\">\n\
         <script src=\"/app.js\" defer></script>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#services\">Skip to the services</a>\n\
         <header>\n<h1><img src=\"/icon.svg\" alt=\"\" width=\"28\" height=\"28\">Stado</h1>\n\
         <p id=\"summary\" role=\"status\">{summary}</p>\n\
         <label id=\"search\" hidden>Find <input id=\"filter\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\" \
         placeholder=\"name, address, reason\"><kbd>/</kbd></label>\n\
         <p id=\"live\" hidden></p>\n</header>\n<main id=\"services\" tabindex=\"-1\">\n{fleet}<table>\n\
         <caption>Services of this machine and where each stands now</caption>\n\
         <thead><tr><th scope=\"col\">Service</th><th scope=\"col\">State</th><th scope=\"col\">Address</th>\
         <th scope=\"col\">Stands at</th><th scope=\"col\">Since</th><th scope=\"col\">Traffic</th>\
         <th scope=\"col\">Last error</th></tr></thead>\n<tbody id=\"rows\">\n{lines}{none}</tbody>\n</table>\n</main>\n\
         <footer>The address of a service stays; what stands behind it may move. \
         <a href=\"/services.json\">The same as JSON</a></footer>\n</body>\n</html>\n",
        summary = escape(&summary(rows)),
        none = if rows.is_empty() { none } else { "" },
        fleet = if picture.is_empty() {
            String::new()
        } else {
            format!("<figure>\n{picture}<figcaption>Each route leads to its story</figcaption>\n</figure>\n")
        },
    )
}

fn line(row: &Row) -> String {
    let of = |text: &str| escape(&shown(text));
    let badge = if row.from == "fleet" { "<span class=\"tag\">fleet</span>" } else { "" };
    let consumer = if row.consumer.is_empty() {
        String::new()
    } else {
        format!("<span class=\"soft\">for {}</span>", of(&row.consumer))
    };
    let reason =
        if row.reason.is_empty() { String::new() } else { format!("<span class=\"why\">{}</span>", of(&row.reason)) };
    let error = row.last_error.as_ref().map(|error| format!("{}<br>{}", time(&error.at), of(&error.cause)));
    format!(
        "<tr class=\"{state}\"><th scope=\"row\"><a href=\"{story}\">{name}</a>{badge}{consumer}</th>\
         <td><span class=\"state\">{state}</span>{reason}</td><td>{address}</td><td><code>{place}</code></td>\
         <td>{since}</td><td>{traffic}</td><td class=\"error\">{error}</td></tr>\n",
        story = story(row),
        state = of(&row.state),
        name = of(&row.name),
        address = address(&row.address),
        place = of(&row.place),
        since = time(&row.since),
        traffic = escape(&traffic(row)),
        error = error.unwrap_or_default(),
    )
}

/// A link where a browser can follow it: a wildcard is no address.
fn address(address: &str) -> String {
    let text = escape(&shown(address));
    let link = (address.starts_with("http://") || address.starts_with("https://")) && !address.contains('*');
    if link { format!("<a href=\"{text}\">{text}</a>") } else { format!("<code>{text}</code>") }
}

fn time(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let text = escape(&shown(text));
    format!("<time datetime=\"{text}\">{text}</time>")
}

fn traffic(row: &Row) -> String {
    match row.kind.as_str() {
        "http" if row.traffic.requests > 0 => counted(row.traffic.requests, "request"),
        _ if row.traffic.opened > 0 => counted(row.traffic.opened, "connection"),
        _ => String::new(),
    }
}

fn counted(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// `3 services: 2 ready, 1 unavailable`
pub(super) fn summary(rows: &[Row]) -> String {
    let of = |state: &str| rows.iter().filter(|row| row.state == state).count();
    let all = rows.len();
    let mut text = format!("{all} {}", if all == 1 { "service" } else { "services" });
    let states: Vec<String> = ["ready", "unavailable", "unserved"]
        .into_iter()
        .filter(|state| of(state) > 0)
        .map(|state| format!("{} {state}", of(state)))
        .collect();
    if !states.is_empty() {
        text.push_str(&format!(": {}", states.join(", ")));
    }
    text
}

/// The same for a terminal.
pub(super) fn text(rows: &[Row]) -> String {
    let mut text = format!("{}\n", summary(rows));
    for row in rows {
        let name = if row.consumer.is_empty() { row.name.clone() } else { format!("{}/{}", row.name, row.consumer) };
        let what = if row.reason.is_empty() { &row.place } else { &row.reason };
        text.push_str(&format!("{}  {}  {}  {}\n", shown(&name), row.state, shown(&row.address), shown(what)));
    }
    text
}
