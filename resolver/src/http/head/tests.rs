use super::*;
use crate::http::framing::Framing;
use crate::http::serve1::Scheme;
use httparse::EMPTY_HEADER;
use proptest::prelude::*;

const BOUNDS: Bounds = Bounds { bytes: 8192, fields: 100 };

fn truth() -> True {
    True::new("127.0.0.1:4000".parse().unwrap(), "127.0.0.1:8088".parse().unwrap(), Scheme::Http)
}

/// What is made of the first head in `bytes`: what is sent on, or why not.
fn sent(bytes: &[u8]) -> Result<String, Refused> {
    let hop = Hop::new();
    let at = Scan::default().next(bytes, BOUNDS)?.ok_or(Refused::Bad("not whole"))?;
    let mut room = [EMPTY_HEADER; FIELDS];
    let request = Request::read(&bytes[at], &mut room, &hop)?;
    let mut out = Vec::new();
    write_request(&request, &truth(), &hop, &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    Ok(text.replace(&String::from_utf8_lossy(hop.as_bytes()).into_owned(), "HOP"))
}

fn with(fields: &str) -> Result<String, Refused> {
    sent(format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}\r\n").as_bytes())
}

fn facts(bytes: &str) -> (Framing, bool, bool, bool) {
    let mut room = [EMPTY_HEADER; FIELDS];
    let request = Request::read(bytes.as_bytes(), &mut room, &Hop::new()).unwrap();
    (request.framing, request.persists, request.upgrade, request.expects)
}

#[test]
fn a_request_is_passed_on_with_its_own_host_path_and_fields() {
    let text =
        sent(b"GET /a/../b//c?x=1;y=2&z=%zz HTTP/1.1\r\nhost: A.Test:8088\r\nAccept-Encoding: br\r\nX-A:  b \r\n\r\n");
    let text = text.unwrap();
    let (line, rest) = text.split_once("\r\n").unwrap();
    assert_eq!(line, "GET /a/../b//c?x=1;y=2&z=%zz HTTP/1.1");
    for field in ["Host: A.Test:8088\r\n", "Accept-Encoding: br\r\n", "X-A: b\r\n"] {
        assert!(rest.contains(field), "{field:?} in {rest}");
    }
}

#[test]
fn what_is_true_about_the_client_replaces_what_it_claims() {
    let text = with(
        "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Proto: gopher\r\nX-Forwarded-Port: 1\r\n\
         X-Real-IP: 1.2.3.4\r\nForwarded: for=1.2.3.4\r\n",
    )
    .unwrap();
    assert!(!text.contains("1.2.3.4") && !text.contains("evil") && !text.contains("gopher"), "{text}");
    for field in [
        "X-Forwarded-For: 127.0.0.1\r\n",
        "X-Real-IP: 127.0.0.1\r\n",
        "X-Forwarded-Proto: http\r\n",
        "X-Forwarded-Port: 8088\r\n",
        "X-Forwarded-Host: a.test\r\n",
        "Forwarded: for=127.0.0.1;proto=http;host=\"a.test\"\r\n",
    ] {
        assert_eq!(text.matches(field).count(), 1, "{field:?} in {text}");
    }
}

#[test]
fn fields_for_one_hop_are_removed_with_what_connection_names() {
    let text = with(
        "Connection: keep-alive, X-One\r\nX-One: gone\r\nKeep-Alive: timeout=5\r\nProxy-Authorization: gone\r\n\
         Proxy-Connection: gone\r\nTE: gzip, trailers\r\nUpgrade: gone\r\nX-Two: kept\r\n",
    )
    .unwrap();
    assert!(!text.contains("gone") && !text.contains("Keep-Alive") && !text.contains("gzip"), "{text}");
    assert!(text.contains("X-Two: kept\r\n") && text.contains("TE: trailers\r\nConnection: TE\r\n"), "{text}");
    assert!(!with("TE: gzip\r\n").unwrap().contains("TE:"));
}

#[test]
fn connection_cannot_name_away_host_or_framing() {
    let text = with("Connection: host, content-length, x-forwarded-for\r\nContent-Length: 3\r\n").unwrap();
    assert!(text.contains("Host: a.test\r\n") && text.contains("Content-Length: 3\r\n"), "{text}");
    assert!(text.contains("X-Forwarded-For: 127.0.0.1\r\n"));
}

#[test]
fn an_upgrade_is_one_only_when_both_fields_say_so() {
    let text = with("Connection: Upgrade\r\nUpgrade: websocket\r\n").unwrap();
    assert!(text.contains("Upgrade: websocket\r\n") && text.contains("Connection: Upgrade\r\n"), "{text}");
    for not in ["Upgrade: websocket\r\n", "Connection: upgrade\r\n", "Connection: Upgrade\r\nUpgrade: h2c\r\n"] {
        assert!(!with(not).unwrap().to_lowercase().contains("upgrade"), "{not}");
    }
    assert!(!facts("GET / HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").2);
}

#[test]
fn the_targets_own_authority_beats_host() {
    let text = sent(b"GET http://B.test:81/p?q HTTP/1.1\r\nHost: a.test\r\n\r\n").unwrap();
    assert!(text.starts_with("GET /p?q HTTP/1.1\r\nHost: B.test:81\r\n") && !text.contains("a.test"), "{text}");
    let line = |target: &str, method: &str| {
        let text = sent(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).unwrap();
        text.split("\r\n").next().unwrap().to_owned()
    };
    assert_eq!(line("http://b", "GET"), "GET / HTTP/1.1");
    assert_eq!(line("HTTP://b?x", "GET"), "GET /?x HTTP/1.1");
    assert_eq!(line("http://b", "OPTIONS"), "OPTIONS * HTTP/1.1");
    assert_eq!(line("*", "OPTIONS"), "OPTIONS * HTTP/1.1");
}

#[test]
fn ambiguous_or_malformed_heads_are_refused() {
    let refused = [
        "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: 3\r\nContent-Length: 4\r\n",
        "Content-Length: 3, 4\r\n",
        "Content-Length: +3\r\n",
        "Content-Length: -0\r\n",
        "Content-Length: 0x3\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length:\r\n",
        "Content-Length: 3,\r\n",
        "Transfer-Encoding: gzip\r\n",
        "Transfer-Encoding: chunked, gzip\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: \"chunked\"\r\n",
        "Transfer-Encoding:\r\n",
        "Content-Length : 3\r\n",
        "Transfer-Encoding\t: chunked\r\n",
        "X: a\nY: b\r\n",
        "X: a\rY: b\r\n",
        "X: a\r\r\n",
        "X: a\x00b\r\n",
        "X: a\x7f\r\n",
        "X: a\r\n folded\r\n",
        ": nameless\r\n",
        "no colon\r\n",
        "X(: a\r\n",
        "Host: b.test\r\n",
        "host: a.test\r\n",
    ];
    for fields in refused {
        assert!(matches!(with(fields), Err(Refused::Bad(_))), "{fields:?}: {:?}", with(fields));
    }
    for head in [
        "GET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\r\nHost: a\r\n\r\n",
        "G@T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET https:// HTTP/1.0\r\n\r\n",
        "OPTIONS http://?x HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "\x16\x03\x01\x02",
    ] {
        assert!(matches!(sent(head.as_bytes()), Err(Refused::Bad(_))), "{head:?}: {:?}", sent(head.as_bytes()));
    }
    for head in ["GET / HTTP/2.0\r\nHost: a\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n", "GET / HTTP/1.2\r\nHost: a\r\n\r\n"] {
        assert_eq!(sent(head.as_bytes()), Err(Refused::Version), "{head:?}");
    }
}

#[test]
fn equal_lengths_are_one_length() {
    for fields in ["Content-Length: 3\r\n", "Content-Length: 3\r\nContent-Length: 3\r\n", "Content-Length: 3, 3\r\n"] {
        let text = with(fields).unwrap();
        assert_eq!(text.matches("Content-Length: 3\r\n").count(), 1, "{text}");
    }
    assert!(with("Transfer-Encoding: CHUNKED\r\n").unwrap().contains("Transfer-Encoding: chunked\r\n"));
}

#[test]
fn heads_are_bounded_in_bytes_and_fields() {
    let fields = |n: usize| with(&"a: b\r\n".repeat(n));
    assert!(fields(99).is_ok());
    assert_eq!(fields(101), Err(Refused::TooLarge));
    assert_eq!(with(&format!("X: {}\r\n", "a".repeat(9000))), Err(Refused::TooLarge));
    assert_eq!(Scan::default().next(&[b'a'; 8193], BOUNDS), Err(Refused::TooLarge));
}

#[test]
fn connections_persist_as_the_version_says() {
    let persists = |version: &str, field: &str| facts(&format!("GET / HTTP/{version}\r\nHost: a\r\n{field}\r\n")).1;
    assert!(persists("1.1", "") && !persists("1.1", "Connection: Close\r\n"));
    assert!(!persists("1.0", "") && persists("1.0", "Connection: keep-alive\r\n"));
    assert!(!persists("1.0", "Connection: keep-alive, close\r\n"));
}

#[test]
fn only_a_body_can_be_expected() {
    let expects = |head: &str| facts(head).3;
    assert!(expects("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"));
    assert!(!expects("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n"));
    assert!(!expects("POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"));
    assert!(with("Content-Length: 1\r\nExpect: 100-continue\r\n").unwrap().contains("Expect: 100-continue\r\n"));
}

#[test]
fn a_request_that_was_here_before_is_known() {
    let hop = Hop::new();
    let mark = String::from_utf8(hop.as_bytes().to_vec()).unwrap();
    let looped = |value: &str| {
        let head = format!("GET / HTTP/1.1\r\nHost: a\r\nCDN-Loop: {value}\r\n\r\n");
        let mut room = [EMPTY_HEADER; FIELDS];
        Request::read(head.as_bytes(), &mut room, &hop).unwrap().looped
    };
    assert!(looped(&mark) && looped(&format!("other, {mark}")) && !looped("other"));
    assert!(with("CDN-Loop: other\r\n").unwrap().contains("CDN-Loop: other, HOP\r\n"));
}

#[test]
fn hosts_are_compared_without_case_port_brackets_and_dot() {
    let normal = |authority: &str| {
        let mut host = String::new();
        normalise(authority.as_bytes(), &mut host).map(|()| host)
    };
    for (written, name) in [
        ("API.Test", "api.test"),
        ("api.test:8088", "api.test"),
        ("api.test.:8088", "api.test"),
        ("api.test.", "api.test"),
        ("[::1]:80", "::1"),
        ("[::1]", "::1"),
        ("a.test:", "a.test"),
        ("a_b.test", "a_b.test"),
    ] {
        assert_eq!(normal(written).as_deref(), Ok(name), "{written}");
    }
    for bad in ["", ".", ":80", "a b", "a/b", "a@b", "a:b", "a:1:2", "[::1", "[::1]x", "a\u{e9}", "a<b>", "a\"b"] {
        assert!(normal(bad).is_err(), "{bad}: {:?}", normal(bad));
    }
}

fn answered(head: &str, to_head: bool, toward: Toward) -> Result<(String, Framing, bool), &'static str> {
    let mut room = [EMPTY_HEADER; FIELDS];
    let response = Response::read(head.as_bytes(), to_head, &mut room)?;
    let mut out = Vec::new();
    write_response(&response, toward, &mut out);
    Ok((String::from_utf8(out).unwrap(), response.framing, response.persists))
}

const STAYS: Toward = Toward { http11: true, stays: true, switches: false };

#[test]
fn an_answer_keeps_its_status_and_fields_and_loses_the_hops() {
    let head = "HTTP/1.1 299 My Reason\r\nServer: x\r\nConnection: X-Hop\r\nX-Hop: gone\r\nKeep-Alive: gone\r\n\
                Proxy-Authenticate: gone\r\nUpgrade: gone\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\n";
    let (text, framing, persists) = answered(head, false, STAYS).unwrap();
    assert_eq!(
        text,
        "HTTP/1.1 299 My Reason\r\nServer: x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 5\r\n\r\n"
    );
    assert_eq!((framing, persists), (Framing::Length(5), true));
}

#[test]
fn an_answers_body_ends_where_its_head_says() {
    let framing = |head: &str, to_head| answered(&format!("HTTP/1.1 {head}\r\n\r\n"), to_head, STAYS).map(|a| a.1);
    assert_eq!(framing("200 OK", false), Ok(Framing::Close));
    assert_eq!(framing("200 OK\r\nTransfer-Encoding: chunked", false), Ok(Framing::Chunked));
    assert_eq!(framing("200 OK\r\nContent-Length: 7", true), Ok(Framing::None));
    assert_eq!(framing("204 No\r\nContent-Length: 7", false), Ok(Framing::None));
    assert_eq!(framing("304 Not\r\nTransfer-Encoding: chunked", false), Ok(Framing::None));
    for bad in [
        "200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked",
        "200 OK\r\nContent-Length: 1\r\nContent-Length: 2",
        "200 OK\r\nTransfer-Encoding: gzip",
        "20 OK",
        "2000 OK",
        "abc OK",
    ] {
        assert!(framing(bad, false).is_err(), "{bad}");
    }
    assert!(answered("HTTP/2 200\r\n\r\n", false, STAYS).is_err());
    assert!(answered("HTTP/1.1 200\r\n\r\n", false, STAYS).is_ok());
}

#[test]
fn an_answer_to_head_says_how_long_it_would_be() {
    let (text, ..) = answered("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", true, STAYS).unwrap();
    assert!(text.contains("Content-Length: 7\r\n"));
    let (text, ..) = answered("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true, STAYS).unwrap();
    assert!(text.contains("Transfer-Encoding: chunked\r\n"));
}

#[test]
fn clients_are_told_whether_the_connection_stays() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let old = Toward { http11: false, stays: false, switches: false };
    assert_eq!(answered(head, false, old).unwrap().0, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let kept = Toward { stays: true, ..old };
    assert!(answered(head, false, kept).unwrap().0.ends_with("Connection: keep-alive\r\n\r\n"));
    let switch = Toward { switches: true, ..STAYS };
    let (text, ..) = answered("HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", false, switch).unwrap();
    assert_eq!(text, "HTTP/1.1 101 S\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
}

/// Lines that heads are made of, good and bad.
fn head_bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => Just("Host: a.test"),
        1 => Just("Content-Length: 3"),
        1 => Just("Transfer-Encoding: chunked"),
        1 => Just("X: \u{e9}"),
        1 => Just("Connection: close, X"),
        1 => Just("Expect: 100-continue"),
        1 => Just("a"),
        1 => Just(""),
        1 => Just(" folded: x"),
    ];
    let end = prop_oneof![12 => Just("\r\n"), 1 => Just("\n"), 1 => Just("\r"), 1 => Just("\r\r\n")];
    let first =
        prop_oneof![8 => Just("GET / HTTP/1.1"), 1 => Just("POST http://b/ HTTP/1.0"), 1 => Just("x"), 1 => Just("")];
    let fields = proptest::collection::vec((line, end.clone()), 0..8);
    (first, end, fields, any::<bool>(), ".{0,8}").prop_map(|(first, end, fields, whole, rest)| {
        let mut text = format!("{first}{end}");
        for (line, end) in fields {
            text.push_str(line);
            text.push_str(end);
        }
        if whole {
            text.push_str("\r\n\r\n");
        }
        text.push_str(&rest);
        text.into_bytes()
    })
}

proptest! {
    /// However a head is split, it ends at the same byte or is refused for the same reason.
    #[test]
    fn splitting_changes_nothing(bytes in head_bytes(), cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6)) {
        let whole = Scan::default().next(&bytes, BOUNDS);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([bytes.len()]).collect();
        cuts.sort_unstable();
        let mut scan = Scan::default();
        let pieces = cuts.iter().map(|cut| scan.next(&bytes[..*cut], BOUNDS)).find(|found| !matches!(found, Ok(None)));
        prop_assert_eq!(pieces.unwrap_or(Ok(None)), whole);
    }

    /// Nothing that strangers send makes this panic, and what is sent on is read the same way by the next reader.
    #[test]
    fn what_is_sent_on_is_one_request(bytes in prop_oneof![head_bytes(), proptest::collection::vec(any::<u8>(), 0..200)]) {
        if let Ok(text) = sent(&bytes) {
            let again = Scan::default().next(text.as_bytes(), BOUNDS).unwrap().unwrap();
            prop_assert_eq!(again, 0..text.len());
            prop_assert!(!text.replace("\r\n", "").contains(['\r', '\n']));
            let mut room = [EMPTY_HEADER; FIELDS];
            let read = Request::read(text.as_bytes(), &mut room, &Hop::new());
            prop_assert!(read.is_ok(), "{:?} of {:?}", read, text);
        }
    }
}
