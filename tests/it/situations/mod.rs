//! The table of `docs/status.md`: broken situations, each produced here, and what is said of it wherever somebody would
//! look. The page is made from the rows, so that it can name nothing that is not shown.
mod adapters;
mod containers;
mod daemon;
mod engine;
mod mesh;
mod page;
mod registry;
mod routes;
mod said;
mod ssh;

use crate::support::PATIENCE;
use said::Said;
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Where somebody would look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// `stado resolver status`; of a mesh's service, `stado service inspect`.
    Status,
    /// The same with `--json`, `--format json`.
    Json,
    /// `stado service directory connect`; of a mesh's service, `stado service resolve`.
    Connect,
    /// The HTTP page of the service's hostname, and its JSON form.
    Page,
    /// What the command that was refused said, or the daemon's own last words.
    Refusal,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Json => "JSON",
            Self::Connect => "connect",
            Self::Page => "page",
            Self::Refusal => "refusal",
        }
    }
}

/// Everywhere.
const ALL: &[Place] = &[Place::Status, Place::Json, Place::Connect, Place::Page];
/// No page: the service is not reached by a hostname, or nobody is there to serve one, or the request waits.
const NO_PAGE: &[Place] = &[Place::Status, Place::Json, Place::Connect];
/// It concerns the host, not one service.
const HOST: &[Place] = &[Place::Status, Place::Json];
/// Nothing runs or is stored that could tell later.
const REFUSAL: &[Place] = &[Place::Refusal];

/// One row.
#[derive(Debug)]
pub struct Situation {
    /// Short, unique; also the service's name where there is one.
    id: &'static str,
    /// What is broken.
    broken: &'static str,
    /// Where on the way: `adapter`, `session`, `channel`, `service`; or `resolver` and `registry`, on which all ways depend.
    hop: &'static str,
    /// What is said; `…` stands for what differs.
    sentence: &'static str,
    /// What is behind it.
    cause: &'static str,
    /// What to do.
    next: &'static str,
    /// Where it is said.
    places: &'static [Place],
}

/// Rows that one test shows, or none can.
struct Group {
    title: &'static str,
    /// The test, or why there is none.
    shown: Result<&'static str, &'static str>,
    rows: &'static [Situation],
}

/// All of them, in the order of the page.
const TABLE: [&Group; 9] = [
    &adapters::PORTS,
    &routes::SESSIONS,
    &routes::CHANNELS,
    &routes::SERVICES,
    &daemon::PUBLISHERS,
    &registry::AUTHORITY,
    &mesh::MESH,
    &containers::CONTAINERS,
    &page::NOT_SHOWN,
];

/// A test's rows, checked off. What is wrong is collected, so that one run tells all of it.
struct Book {
    rows: Vec<&'static Situation>,
    left: RefCell<BTreeSet<&'static str>>,
    wrong: RefCell<Vec<String>>,
}

/// Within this long everybody says it.
const LIMIT: Duration = Duration::from_secs(10);

impl Book {
    fn of(groups: &[&'static Group]) -> Self {
        let rows: Vec<_> = groups.iter().flat_map(|group| group.rows).collect();
        Self { left: RefCell::new(rows.iter().map(|row| row.id).collect()), rows, wrong: RefCell::default() }
    }

    /// A row by its name.
    fn row(&self, id: &str) -> &'static Situation {
        self.rows.iter().find(|row| row.id == id).unwrap_or_else(|| panic!("no row {id}"))
    }

    /// Checks what was said, once.
    fn check(&self, id: &str, said: &Said) {
        self.note(id, &said.judge(self.row(id)));
    }

    /// Asks until every place of the row says its sentence and names its hop, or the time is over.
    fn watch(&self, id: &str, mut ask: impl FnMut(&'static Situation) -> Said) {
        let row = self.row(id);
        let end = Instant::now() + LIMIT;
        loop {
            let wrong = ask(row).judge(row);
            if wrong.is_empty() || Instant::now() > end {
                return self.note(id, &wrong);
            }
            sleep(Duration::from_millis(20));
        }
    }

    fn note(&self, id: &str, wrong: &[String]) {
        self.left.borrow_mut().remove(id);
        if !wrong.is_empty() {
            self.wrong.borrow_mut().push(format!("== {id}\n{}", wrong.join("\n")));
        }
    }

    /// Every row was shown, and nothing was wrong.
    fn close(self) {
        let (left, wrong) = (self.left.into_inner(), self.wrong.into_inner());
        assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), self.rows.len(), wrong.join("\n"));
        assert!(left.is_empty(), "never shown: {left:?}");
    }
}

/// The page of a hostname of the router, as JSON.
fn page(router: u16, host: &str) -> Option<Value> {
    let mut stream = TcpStream::connect(("127.0.0.1", router)).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head =
        format!("GET / HTTP/1.1\r\nHost: {host}.localhost\r\nAccept: application/json\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    serde_json::from_str(text.split_once("\r\n\r\n")?.1).ok()
}
