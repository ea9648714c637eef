//! The fleet as a picture: this host with its routes on the left, the hosts they lead to on the right. Made here, so that it is
//! there without a script; each route is a link to its story. Pure.
use super::super::page::{escape, shown};
use super::row::Row;
use std::collections::BTreeMap;

/// Routes that are drawn; the table has all of them.
const ROUTES: usize = 40;
/// Hosts that are drawn.
const HOSTS: usize = 40;
/// Height of a line, and where the boxes stand.
const LINE: usize = 26;
const TOP: usize = 46;
const LEFT: (usize, usize) = (8, 352);
const RIGHT: (usize, usize) = (560, 232);
const WIDTH: usize = 800;
/// Characters of a name that have room.
const NAME: usize = 38;

/// What is drawn.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Scene {
    /// This host.
    pub(super) here: String,
    /// The other hosts of the registry.
    pub(super) others: Vec<String>,
    /// Directory generation, and how it stands.
    pub(super) note: String,
}

/// The picture; empty when there is no fleet.
pub(super) fn svg(scene: Option<&Scene>, rows: &[Row]) -> String {
    let Some(scene) = scene else { return String::new() };
    let mut routes: Vec<&Row> = rows.iter().filter(|row| row.from == "fleet").collect();
    let all = routes.len();
    // What does not work is drawn in any case.
    routes.sort_by_key(|row| row.state == "ready");
    routes.truncate(ROUTES);
    routes.sort_by(|a, b| (&a.host, &a.name, &a.consumer).cmp(&(&b.host, &b.name, &b.consumer)));
    let hosts = hosts(scene, &routes);
    let height = TOP + LINE * routes.len().max(2 * hosts.len()).max(2) + 18;
    let title = format!("{}: {all} routes, {} other hosts. {}", scene.here, scene.others.len(), scene.note);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"picture\" viewBox=\"0 0 {WIDTH} {height}\" role=\"group\" \
         aria-label=\"{title}\">\n{}",
        boxed(LEFT, 8, height - 16, &scene.here, &scene.note),
        title = text(&title, 200),
    );
    let places: BTreeMap<&str, usize> = hosts.iter().enumerate().map(|(n, host)| (*host, host_at(n))).collect();
    for host in &hosts {
        let at = places.get(host).copied().unwrap_or(TOP);
        let led = routes.iter().filter(|row| row.host == **host).count();
        let note = if led == 0 { "no route from here".to_owned() } else { format!("{led} from here") };
        out.push_str(&boxed(RIGHT, at - 20, 40, host, &note));
    }
    for (n, row) in routes.iter().enumerate() {
        out.push_str(&route(row, TOP + n * LINE + LINE / 2, places.get(row.host.as_str()).copied()));
    }
    if all > routes.len() {
        let more = all - routes.len();
        out.push_str(&format!(
            "<text class=\"soft\" x=\"{}\" y=\"{}\">and {more} more in the table</text>\n",
            LEFT.0 + 12,
            height - 14
        ));
    }
    out.push_str("</svg>\n");
    out
}

/// Hosts with routes first, then the others, as many as there is room for.
fn hosts<'a>(scene: &'a Scene, routes: &[&'a Row]) -> Vec<&'a str> {
    let mut hosts: Vec<&str> = routes.iter().map(|row| row.host.as_str()).filter(|host| !host.is_empty()).collect();
    hosts.dedup();
    let known = hosts.clone();
    hosts.extend(scene.others.iter().map(String::as_str).filter(|host| !known.contains(host)));
    hosts.truncate(HOSTS);
    hosts
}

/// The middle of a host's box.
fn host_at(n: usize) -> usize {
    TOP + n * 2 * LINE + LINE
}

fn boxed((x, width): (usize, usize), y: usize, height: usize, name: &str, note: &str) -> String {
    let (inside, first) = (x + 12, y + 17);
    format!(
        "<rect class=\"box\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"8\"/>\n\
         <text class=\"host\" x=\"{inside}\" y=\"{first}\">{}</text>\n\
         <text class=\"soft\" x=\"{inside}\" y=\"{}\">{}</text>\n",
        text(name, NAME),
        first + 15,
        text(note, NAME),
    )
}

/// A line of text that is a link, and the line to its host.
fn route(row: &Row, y: usize, to: Option<usize>) -> String {
    let name = if row.consumer.is_empty() { row.name.clone() } else { format!("{} for {}", row.name, row.consumer) };
    let (start, end) = (LEFT.0 + LEFT.1, RIGHT.0);
    let way = match to {
        Some(at) => {
            let middle = (start + end) / 2;
            format!("<path class=\"way\" d=\"M{start} {y} C{middle} {y} {middle} {at} {end} {at}\"/>")
        }
        None if row.state == "ready" => {
            format!("<text class=\"soft\" x=\"{}\" y=\"{}\">here</text>", start + 12, y + 4)
        }
        None => String::new(),
    };
    let why = if row.reason.is_empty() { String::new() } else { format!(": {}", row.reason) };
    format!(
        "<a href=\"{}\" class=\"{}\"><title>{}</title>{way}<circle cx=\"{}\" cy=\"{y}\" r=\"4\"/>\
         <text x=\"{}\" y=\"{}\">{}</text></a>\n",
        story(row),
        escape(&row.state),
        text(&format!("{name}, {}{why}", row.state), 300),
        LEFT.0 + 16,
        LEFT.0 + 28,
        y + 4,
        text(&name, NAME),
    )
}

/// Where the story of a row is told.
pub(super) fn story(row: &Row) -> String {
    format!("/story?id={}", encoded(&row.id))
}

/// A text as a value in a query.
fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'/');
    text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
}

fn text(text: &str, most: usize) -> String {
    let mut cut: String = text.chars().take(most).collect();
    if text.chars().nth(most).is_some() {
        cut.push('…');
    }
    escape(&shown(&cut))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, host: &str, state: &str) -> Row {
        Row {
            id: format!("fleet/{name}/shop"),
            name: name.into(),
            consumer: "shop".into(),
            from: "fleet".into(),
            host: host.into(),
            state: state.into(),
            ..Row::default()
        }
    }

    fn scene() -> Scene {
        Scene { here: "desk".into(), others: vec!["hub".into(), "gpu".into()], note: "generation 7".into() }
    }

    #[test]
    fn every_route_is_a_link_to_its_story_and_a_line_to_its_host() {
        let drawn = svg(Some(&scene()), &[row("orders", "hub", "ready"), row("local", "", "ready")]);
        assert!(drawn.contains("<a href=\"/story?id=fleet/orders/shop\" class=\"ready\">"), "{drawn}");
        assert_eq!((drawn.matches("class=\"way\"").count(), drawn.matches(">here<").count()), (1, 1), "{drawn}");
        assert!(drawn.contains(">hub</text>") && drawn.contains(">gpu</text>") && drawn.contains("no route from here"));
        assert!(!drawn.contains("style") && !drawn.contains("<script"), "{drawn}");
        assert_eq!(svg(None, &[]), "");
    }

    #[test]
    fn what_does_not_work_is_drawn_also_where_there_are_many() {
        let mut rows: Vec<Row> = (0..1000).map(|n| row(&format!("s{n:04}"), "hub", "ready")).collect();
        rows.push(row("zz-broken", "hub", "unserved"));
        let drawn = svg(Some(&scene()), &rows);
        assert!(drawn.contains("zz-broken") && drawn.contains("and 961 more in the table"), "{drawn}");
        assert!(drawn.len() < 40_000);
    }

    #[test]
    fn what_others_wrote_is_text() {
        let evil = "\"><script>alert(1)</script>";
        let mut row = row(evil, evil, evil);
        (row.reason, row.id) = (evil.into(), evil.into());
        let drawn = svg(Some(&Scene { here: evil.into(), others: vec![evil.into()], note: evil.into() }), &[row]);
        assert!(!drawn.contains("<script") && drawn.contains("/story?id=%22%3E%3Cscript%3E"), "{drawn}");
    }
}
