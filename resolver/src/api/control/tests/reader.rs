use super::*;
use proptest::prelude::*;

fn text(body: &str) -> String {
    register(body.as_bytes()).unwrap_err().to_string()
}

#[test]
fn incomplete_and_broken_bodies_have_the_first_daemons_sentences() {
    for (body, expected) in [
        ("", "EOF"),
        (" \n\t", "EOF"),
        ("{", "unexpected EOF"),
        (r#"{"name":"x"#, "unexpected EOF"),
        (r#"{"name":tr"#, "unexpected EOF"),
        ("nope", "invalid character 'o' in literal null (expecting 'u')"),
        ("hello", "invalid character 'h' looking for beginning of value"),
        ("{name:1}", "invalid character 'n' looking for beginning of object key string"),
        (r#"{"name" 1}"#, "invalid character '1' after object key"),
        (r#"{"name":"x" "kind":1}"#, "invalid character '\"' after object key:value pair"),
        (r#"{"name":"x",}"#, "invalid character '}' looking for beginning of object key string"),
        (r#"{"backend":[1 2]}"#, "invalid character '2' after array element"),
        ("{\"name\":\"a\nb\"}", r"invalid character '\n' in string literal"),
        (r#"{"name":"\x"}"#, "invalid character 'x' in string escape code"),
        (r#"{"name":"\u12g4"}"#, "invalid character 'g' in \\u hexadecimal character escape"),
        (r#"{"ttl_seconds":-}"#, "invalid character '}' in numeric literal"),
        (r#"{"ttl_seconds":1.}"#, "invalid character '}' after decimal point in numeric literal"),
        (r#"{"ttl_seconds":1e}"#, "invalid character '}' in exponent of numeric literal"),
        (r#"{"ttl_seconds":01}"#, "invalid character '1' after object key:value pair"),
        ("{'a':1}", r"invalid character '\'' looking for beginning of object key string"),
    ] {
        assert_eq!(text(body), expected, "{body}");
    }
    assert_eq!(text(&"[".repeat(10_001)), "exceeded max depth");
}

#[test]
fn unknown_fields_and_wrong_types_are_refused_in_the_order_of_the_text() {
    assert_eq!(text(r#"{"owner_key":"x"}"#), r#"json: unknown field "owner_key""#);
    assert_eq!(text(r#"{"backend":{"host":"h","weight":1}}"#), r#"json: unknown field "weight""#);
    assert_eq!(
        text(r#"{"name":1,"owner_key":2}"#),
        "json: cannot unmarshal number into Go struct field registerRequest.name of type string"
    );
    assert_eq!(
        text(r#"{"backend":{"port":"1"}}"#),
        "json: cannot unmarshal string into Go struct field registerRequest.backend.port of type int"
    );
    assert_eq!(
        text(r#"{"ttl_seconds":1.5}"#),
        "json: cannot unmarshal number 1.5 into Go struct field registerRequest.ttl_seconds of type int"
    );
    assert_eq!(text("[]"), "json: cannot unmarshal array into Go value of type api.registerRequest");
    assert_eq!(text("{\"owner_key\":1, !"), "invalid character '!' looking for beginning of object key string");
}

#[test]
fn the_first_value_counts_names_fold_case_and_null_changes_nothing() {
    let body =
        r#"{"NAME":"a","Backend":{"HOST":"\u0068\ud83d\ude00","pOrt":7},"tTl_ſeconds":9,"kind":null} trailing {"#;
    let request = register(body.as_bytes()).unwrap();
    assert_eq!((request.name.as_str(), request.backend.port, request.ttl_seconds), ("a", 7, 9));
    assert_eq!((request.backend.host.as_str(), request.kind.as_str()), ("h😀", ""));
    assert_eq!(register(b"null").unwrap(), RegisterRequest::default());
    let twice = register(br#"{"name":"a","backend":{"host":"h"},"name":"b","backend":{"port":1}}"#).unwrap();
    assert_eq!((twice.name.as_str(), twice.backend.host.as_str(), twice.backend.port), ("b", "h", 1));
    assert_eq!(register(br#"{"name":"\ud800x"}"#).unwrap().name, "\u{fffd}x");
}

#[test]
fn a_body_that_was_cut_at_the_limit_is_incomplete() {
    let mut body = br#"{"name":""#.to_vec();
    body.resize(1 << 20, b'a');
    assert_eq!(register(&body).unwrap_err().to_string(), "unexpected EOF");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn arbitrary_bytes_never_panic(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        crate::fuzz::api_body(&body);
    }

    #[test]
    fn almost_json_never_panics(body in r#"[ {}\[\]",:a-eu0-9.\-+\\"namekidpor_tls]{0,60}"#) {
        crate::fuzz::api_body(body.as_bytes());
    }

    #[test]
    fn what_the_client_writes_is_read_back(name in "\\PC{0,20}", host in "\\PC{0,20}", port in any::<i64>(), ttl in any::<i64>()) {
        let mut request = RegisterRequest { name, ttl_seconds: ttl, ..RegisterRequest::default() };
        (request.backend.host, request.backend.port) = (host, port);
        prop_assert_eq!(register(&serde_json::to_vec(&request).unwrap()).unwrap(), request);
    }
}
