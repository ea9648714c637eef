//! `docs/status.md`, made from the rows. `STADO_WRITE_DOCS=1` writes it anew.
use super::{Group, Place, Situation, TABLE};
use std::collections::BTreeSet;
use std::fmt::Write;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/status.md");
const HEAD: &str = include_str!("head.md");

/// What no test can bring about.
pub const NOT_SHOWN: Group = Group { title: "Not shown by a test", shown: Err("each with its reason"), rows: &[] };

/// Situations that no test brings about, and why.
const UNSHOWN: [[&str; 6]; 5] = [
    [
        "An adapter's port is below 1024",
        "adapter",
        "could not bind 127.0.0.1:80: Permission denied",
        "the account may not bind it",
        "declare a port above 1023, or allow it (`net.ipv4.ip_unprivileged_port_start`)",
        "where the tests run anybody may bind any port",
    ],
    [
        "The disk is full while the daemon runs",
        "resolver",
        "what the resolver (pid …) has published is …s old, and it writes it every 15s while it can",
        "the published files cannot be renamed into place",
        "make room; nothing else is harmed meanwhile",
        "it is said after a minute, not within ten seconds; `a_full_disk_loses_no_old_content` shows the rest",
    ],
    [
        "The machine has slept",
        "session",
        "the SSH session to … was lost: …",
        "the session's peer forgot it meanwhile",
        "nothing: each session is asked once after a sleep and replaced with the next stream",
        "a test cannot put its machine to sleep; what follows is shown by `each_stage_is_a_hop_of_the_way`",
    ],
    [
        "A host's clock is years off",
        "registry",
        "the snapshot the resolver holds is …s old, past the …s max-stale window this target declares",
        "ages are told by this host's clock",
        "set the clock; no decision depends on it",
        "a test cannot set its machine's clock; the pure part is `a_clock_that_is_an_hour_off_is_said_and_decides_nothing`",
    ],
    [
        "macOS: Local Network privacy keeps the daemon from a host",
        "session",
        "connect to …: No route to host",
        "the system was not told to let the program use the local network",
        "allow it in System Settings, Privacy & Security",
        "the tests run on Linux",
    ],
];

fn page() -> String {
    let mut page = HEAD.to_owned();
    for group in TABLE {
        if let Ok(test) = group.shown {
            write!(page, "\n## {}\n\nShown by `{test}`.\n\n", group.title).unwrap();
            page.push_str(
                "| situation | hop | what is said | cause | next step | where |\n|---|---|---|---|---|---|\n",
            );
            group.rows.iter().for_each(|row| line(&mut page, row));
        }
    }
    write!(page, "\n## {}\n\n", NOT_SHOWN.title).unwrap();
    page.push_str(
        "| situation | hop | what is said | cause | next step | why there is no test |\n|---|---|---|---|---|---|\n",
    );
    for [broken, hop, sentence, cause, next, why] in UNSHOWN {
        writeln!(page, "| {broken} | {hop} | {} | {cause} | {next} | {why} |", quoted(sentence)).unwrap();
    }
    page
}

fn line(page: &mut String, row: &Situation) {
    let Situation { broken, hop, sentence, cause, next, places, .. } = row;
    let places: Vec<&str> = places.iter().map(|place| place.name()).collect();
    writeln!(page, "| {broken} | {hop} | {} | {cause} | {next} | {} |", quoted(sentence), places.join(", ")).unwrap();
}

/// Each form of the sentence as it is said.
fn quoted(sentence: &str) -> String {
    let forms: Vec<String> = sentence.split('|').map(|form| format!("“…{}…”", form.trim_matches('…').trim())).collect();
    forms.join(" or ").replace("……", "…")
}

#[test]
fn the_page_of_situations_is_current() {
    let page = page();
    if std::env::var_os("STADO_WRITE_DOCS").is_some() {
        std::fs::write(PAGE, &page).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    let differs = page.lines().zip(written.lines()).find(|(new, old)| new != old);
    assert!(page == written, "docs/status.md is out of date, first at {differs:?}; STADO_WRITE_DOCS=1 writes it anew");
}

#[test]
fn the_page_holds_more_than_sixty_situations_each_once_and_each_with_all_of_its_words() {
    let rows: Vec<&Situation> = TABLE.iter().flat_map(|group| group.rows).collect();
    assert!(rows.len() >= 60, "{}", rows.len());
    let ids: BTreeSet<&str> = rows.iter().map(|row| row.id).collect();
    assert_eq!(ids.len(), rows.len(), "a name twice");
    for row in rows {
        let Situation { id, broken, hop, sentence, cause, next, places } = row;
        for words in [id, broken, hop, sentence, cause, next] {
            assert!(!words.is_empty() && !words.contains('\n'), "{id}");
        }
        assert!(!places.is_empty() && sentence.len() > 8, "{id}");
        let refusal_alone = !places.contains(&Place::Refusal) || places.len() == 1;
        assert!(refusal_alone, "{id}: a refusal is all that there is");
    }
}
