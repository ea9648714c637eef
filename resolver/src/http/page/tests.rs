use super::*;
use proptest::prelude::*;

fn text(problem: &Problem) -> String {
    String::from_utf8(render(problem, None).body.to_vec()).unwrap()
}

fn unavailable() -> Problem {
    Problem::Unavailable {
        service: "checkout.api".into(),
        reason: "its producer deregistered".into(),
        since: jiff::Timestamp::UNIX_EPOCH,
        hop: Hop::Service,
    }
}

fn every() -> Vec<Problem> {
    vec![
        Problem::UnknownHost {
            asked: "x.test".into(),
            known: vec!["a.test".into()],
            index: "http://stado.localhost:8088".into(),
        },
        unavailable(),
        Problem::BadGateway {
            service: "s".into(),
            address: "127.0.0.1:1".into(),
            cause: "refused".into(),
            hop: Hop::Service,
        },
        Problem::Loop { host: "x.test".into() },
        Problem::Bad { why: "two Host fields" },
        Problem::HeadTooLarge,
        Problem::Timeout,
        Problem::Misdirected { host: "x.test".into() },
        Problem::NoCertificate { host: "x.test".into() },
        Problem::TooMany { service: "s".into() },
        Problem::Version,
        Problem::NoPage { path: "/x".into() },
        Problem::ReadOnly,
        Problem::Foreign,
        Problem::TooManyReaders,
        Problem::ConnectRefused,
    ]
}

#[test]
fn the_text_form_begins_with_the_words_of_the_first_router() {
    let all = every();
    let firsts = all.iter().map(|problem| text(problem).lines().next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(firsts[0], "404 Not Found");
    assert_eq!(firsts[1], "503 Service Unavailable");
    assert_eq!(firsts[2], "502 Bad Gateway");
    assert_eq!(firsts[3], "508 Loop Detected");
    assert_eq!(firsts[4], "400 Bad Request");
    for (problem, first) in all.iter().zip(firsts) {
        let page = render(problem, None);
        assert!(first.len() > "400 ".len() && first.starts_with(&page.status.to_string()), "{first:?} has no words");
        assert!(page.body.ends_with(b"\n") && page.content_type == "text/plain; charset=utf-8");
        assert!(page.headers.contains(&("X-Content-Type-Options", "nosniff".to_owned())));
    }
}

#[test]
fn an_unknown_host_is_told_what_is_known_and_an_absent_service_since_when() {
    assert!(text(&every()[0]).contains("no service has the hostname x.test\nknown here: a.test\n"));
    assert!(text(&unavailable()).contains("its producer deregistered\nsince 1970-01-01T00:00:00Z\n"));
    let json: serde_json::Value =
        serde_json::from_slice(&render(&unavailable(), Some("application/json")).body).unwrap();
    assert_eq!(json["status"], 503);
    assert_eq!(json["error"]["code"], "unavailable");
    assert_eq!(json["error"]["since"], "1970-01-01T00:00:00Z");
}

#[test]
fn the_browser_form_allows_nothing_but_its_own_style() {
    for problem in every() {
        let page = render(&problem, Some("text/html"));
        let policy = page.headers.iter().find(|(name, _)| *name == "Content-Security-Policy").unwrap().1.clone();
        assert!(policy.starts_with("default-src 'none'; style-src 'nonce-"), "{policy}");
        let html = String::from_utf8(page.body.to_vec()).unwrap();
        let nonce = policy.split('\'').nth(3).unwrap().strip_prefix("nonce-").unwrap();
        assert!(html.contains(&format!("<style nonce=\"{nonce}\">")));
        assert!(!html.contains("<script") && !html.contains("src=") && !html.contains("href="), "{html}");
        assert!(html.contains("prefers-color-scheme: dark"));
    }
}

#[test]
fn no_form_repeats_markup_or_control_characters() {
    let evil = "<img src=x onerror='alert(1)'>\"&\u{1b}[31m\r\nSet-Cookie: a=b\u{202e}\u{7f}\u{85}".to_owned();
    let problems = [
        Problem::UnknownHost { asked: evil.clone(), known: vec![evil.clone()], index: String::new() },
        Problem::Unavailable {
            service: evil.clone(),
            reason: evil.clone(),
            since: jiff::Timestamp::UNIX_EPOCH,
            hop: Hop::Adapter,
        },
        Problem::BadGateway { service: evil.clone(), address: evil.clone(), cause: evil.clone(), hop: Hop::Session },
        Problem::Loop { host: evil.clone() },
        Problem::Misdirected { host: evil.clone() },
        Problem::NoCertificate { host: evil.clone() },
        Problem::TooMany { service: evil.clone() },
        Problem::NoPage { path: evil },
    ];
    for problem in &problems {
        for accept in ["text/plain", "text/html", "application/json"] {
            let page = render(problem, Some(accept));
            let body = String::from_utf8(page.body.to_vec()).unwrap();
            assert!(!body.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'), "{accept} {body:?}");
            assert!(accept != "text/html" || !body.contains("<img"), "{body}");
            assert!(page.headers.iter().all(|(_, value)| !value.contains(['\r', '\n'])));
        }
    }
}

proptest! {
    /// Whatever is asked for stands in the page as text: as many tags as in the page for nothing at all.
    #[test]
    fn a_page_has_the_same_markup_whatever_was_asked(asked in any::<String>()) {
        let html = |asked: &str| {
            let problem = Problem::UnknownHost { asked: asked.to_owned(), known: vec![asked.to_owned()], index: String::new() };
            String::from_utf8(render(&problem, Some("text/html")).body.to_vec()).unwrap()
        };
        let (plain, given) = (html("x"), html(&asked));
        for mark in ['<', '>', '"', '\''] {
            prop_assert_eq!(plain.matches(mark).count(), given.matches(mark).count(), "{}", mark);
        }
    }
}
