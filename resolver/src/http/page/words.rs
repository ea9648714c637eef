//! What each problem is called, what happened and what to do next: the same facts in every form.
use super::Problem;
use super::shown::shown;
use serde_json::{Map, Value};
use stado_fleet::fault::Hop;

/// The facts of one page. Everything in it that somebody else wrote went through [`shown`].
pub(super) struct Words {
    pub(super) status: u16,
    /// The stable word of the JSON form.
    code: &'static str,
    /// What happened, in one sentence.
    pub(super) sentence: String,
    /// Facts with names, in order: `service`, `since`, ….
    pub(super) facts: Vec<(&'static str, String)>,
    /// Hostnames worth offering.
    pub(super) known: Vec<String>,
    /// What to do next, if anything can be said.
    pub(super) next: Option<String>,
    pub(super) headers: Vec<(&'static str, String)>,
}

impl Words {
    pub(super) fn of(problem: &Problem) -> Self {
        match problem {
            Problem::UnknownHost { asked, known, index } => unknown(asked, known, index),
            Problem::Unavailable { service, reason, since, hop } => {
                let facts = vec![
                    ("service", shown(service)),
                    ("reason", shown(reason)),
                    ("since", second(*since)),
                    ("hop", hop.code().to_owned()),
                ];
                let sentence = format!("service {} is known and has no backend now: {}", shown(service), shown(reason));
                Self::new(503, "unavailable", sentence)
                    .facts(facts)
                    .next(match hop {
                        Hop::Service => "the address stays: it answers again as soon as a producer of the service is back",
                        _ => "the address stays: it answers again as soon as the directory gives it a way",
                    })
                    .retry()
            }
            Problem::BadGateway { service, address, cause, hop } => {
                let (service, address, cause) = (shown(service), shown(address), shown(cause));
                Self::new(502, "bad_gateway", format!("service {service} was not reached at {address}: {cause}"))
                    .facts(vec![
                        ("service", service),
                        ("address", address),
                        ("cause", cause),
                        ("hop", hop.code().to_owned()),
                    ])
                    .next(match hop {
                        Hop::Service => "the process behind that address is down, still starting, or listens elsewhere",
                        _ => "the way to its host is what failed: `stado resolver status` says more",
                    })
            }
            Problem::Loop { host } => Self::new(
                508,
                "loop",
                format!("the request for {} came back to this router, so it would go in circles", shown(host)),
            )
            .facts(vec![("host", shown(host))])
            .next("the service must be registered with the address that its own process listens on"),
            Problem::Bad { why } => Self::new(400, "bad_request", format!("the request was not passed on: {why}")),
            Problem::HeadTooLarge => {
                Self::new(431, "head_too_large", "the request's head is larger than this router passes on".to_owned())
                    .next(
                        "clear this site's cookies, or raise http.head_bytes or http.header_count in the configuration",
                    )
            }
            Problem::Timeout => Self::new(408, "timeout", "the request's head did not arrive in time".to_owned()),
            Problem::Misdirected { host } => Self::new(
                421,
                "misdirected",
                format!("the certificate of this connection does not cover {}", shown(host)),
            )
            .facts(vec![("host", shown(host))])
            .next("open a connection of its own for that name"),
            Problem::NoCertificate { host } => Self::new(
                421,
                "no_certificate",
                format!("this is the port of HTTPS, and no certificate here is for {}", shown(host)),
            )
            .facts(vec![("host", shown(host))])
            .next("ask for it in plain HTTP on the router's other port, or give it a certificate"),
            Problem::TooMany { service } => Self::new(
                503,
                "too_many_requests",
                format!("service {} has as many requests at a time as it may have", shown(service)),
            )
            .facts(vec![("service", shown(service))])
            .next("try again, or raise http.service_requests in the configuration")
            .retry(),
            Problem::Version => Self::new(
                505,
                "version",
                "the request is in a version of HTTP that this router does not speak here: it speaks HTTP/1.0 and HTTP/1.1"
                    .to_owned(),
            ),
            Problem::ConnectRefused => {
                Self::new(405, "connect_refused", "this router opens no tunnels: CONNECT is refused".to_owned())
                    .header("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
            }
            Problem::NoPage { path } => Self::new(404, "no_page", format!("there is no page {}", shown(path)))
                .facts(vec![("path", shown(path))])
                .next("the services of this machine are listed at /"),
            Problem::ReadOnly => Self::new(405, "read_only", "nothing is changed here".to_owned())
                .next("stado service has the verbs that change something")
                .header("Allow", "GET, HEAD"),
            Problem::Foreign => {
                Self::new(403, "foreign", "this is only for its own page and for programs of this machine".to_owned())
            }
            Problem::TooManyReaders => {
                Self::new(503, "too_many_readers", "as many as can be are told of changes already".to_owned())
                    .header("Retry-After", "5")
            }
        }
    }

    fn new(status: u16, code: &'static str, sentence: String) -> Self {
        Self { status, code, sentence, facts: Vec::new(), known: Vec::new(), next: None, headers: Vec::new() }
    }

    fn facts(mut self, facts: Vec<(&'static str, String)>) -> Self {
        self.facts = facts;
        self
    }

    fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }

    fn retry(self) -> Self {
        self.header("Retry-After", "1")
    }

    fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// `404 Not Found`: the first line of the text form, which scripts of the first router read.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.status, reason_phrase(self.status))
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n\n{}\n", self.title(), self.sentence);
        for (name, value) in self.facts.iter().filter(|(name, _)| matches!(*name, "since" | "hop")) {
            text.push_str(&format!("{name} {value}\n"));
        }
        if !self.known.is_empty() {
            text.push_str(&format!("known here: {}\n", self.known.join(", ")));
        }
        if let Some(next) = &self.next {
            text.push_str(&format!("{next}\n"));
        }
        text
    }

    pub(super) fn json(&self) -> String {
        let mut error = Map::new();
        error.insert("code".into(), self.code.into());
        error.insert("message".into(), self.sentence.clone().into());
        for (name, value) in &self.facts {
            error.insert((*name).into(), value.clone().into());
        }
        if self.code == "unknown_host" {
            error.insert("known".into(), self.known.clone().into());
        }
        if let Some(next) = &self.next {
            error.insert("next".into(), next.clone().into());
        }
        let mut root = Map::new();
        root.insert("status".into(), self.status.into());
        root.insert("error".into(), Value::Object(error));
        format!("{}\n", Value::Object(root))
    }
}

fn unknown(asked: &str, known: &[String], index: &str) -> Words {
    let asked = shown(asked);
    let sentence = match asked.as_str() {
        "" => "the request names no host, and services are found by hostname".to_owned(),
        asked => format!("no service has the hostname {asked}"),
    };
    let mut words = Words::new(404, "unknown_host", sentence).facts(vec![("asked", asked)]);
    words.known = known.iter().map(|host| shown(host)).collect();
    words.next(format!("all that is served here is listed at {index}/"))
}

/// A moment in whole seconds.
fn second(at: jiff::Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The usual words of a status that answers of ours have.
pub(in crate::http) fn reason_phrase(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        421 => "Misdirected Request",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        508 => "Loop Detected",
        _ => "",
    }
}
