use super::*;
use proptest::prelude::*;

/// What is passed on of `bytes` given in `pieces`, and how many bytes are the body's; `None` while it is not over.
fn passed(
    framing: Framing,
    form: Form,
    bytes: &[u8],
    cuts: &[usize],
) -> Result<(Vec<u8>, Option<usize>), &'static str> {
    let (mut body, mut out, mut used) = (Body::new(framing, form), Vec::new(), 0);
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        while used < cut && !body.is_done() {
            let run = body.read(&bytes[used..cut])?;
            assert!(run.len > 0, "no progress");
            if run.pass {
                out.extend_from_slice(&bytes[used..used + run.len]);
            }
            used += run.len;
            if let Some(tail) = body.finish() {
                out.extend_from_slice(&tail);
            }
        }
    }
    Ok((out, body.is_done().then_some(used)))
}

fn chunked(bytes: &str) -> Result<(String, Option<usize>), &'static str> {
    let (out, used) = passed(Framing::Chunked, Form::Framed, bytes.as_bytes(), &[])?;
    Ok((String::from_utf8(out).unwrap(), used))
}

#[test]
fn chunks_pass_as_they_are_and_end_where_they_end() {
    let body = "5\r\nhello\r\n00A;name=\"x\"\r\n0123456789\r\n0\r\n\r\n";
    assert_eq!(chunked(&format!("{body}GET / HTTP/1.1")), Ok((body.to_owned(), Some(body.len()))));
    assert_eq!(chunked("5\r\nhel"), Ok(("5\r\nhel".to_owned(), None)));
}

#[test]
fn trailers_pass_also_with_no_body_but_not_those_that_frame_or_route() {
    let body = "0\r\nX-Sum: 1\r\nContent-Length: 9\r\nHost: evil\r\nX-Forwarded-For: x\r\nX-More:  2 \r\n\r\n";
    let (text, used) = chunked(body).unwrap();
    assert_eq!((text.as_str(), used), ("0\r\nX-Sum: 1\r\nX-More: 2\r\n\r\n", Some(body.len())));
}

#[test]
fn malformed_chunks_are_refused() {
    for bad in [
        "\r\n",
        "g\r\n",
        " 5\r\n",
        "5 \r\n",
        "0x5\r\n",
        "+5\r\n",
        "-1\r\n",
        "5\n",
        "5\r5",
        "5;a\nb\r\n",
        "5;a\x00\r\n",
        "5\r\nhelloX",
        "5\r\nhello\rX",
        "5\r\nhello\n",
        "10000000000000000\r\n",
        "0\r\nbad\r\n\r\n",
        "0\r\nX : a\r\n\r\n",
        "0\r\nX: a\n\r\n",
        ";a\r\n",
    ] {
        assert!(chunked(bad).is_err(), "{bad:?}: {:?}", chunked(bad));
    }
    assert!(chunked(&format!("5;{}\r\n", "a".repeat(5000))).is_err());
    assert!(chunked(&format!("0\r\nX: {}\r\n\r\n", "a".repeat(20_000))).is_err());
}

#[test]
fn readers_without_chunks_get_the_data_alone() {
    let body = b"5\r\nhello\r\n1\r\n!\r\n0\r\nX: y\r\n\r\n";
    assert_eq!(passed(Framing::Chunked, Form::Data, body, &[]), Ok((b"hello!".to_vec(), Some(body.len()))));
}

#[test]
fn counted_bodies_end_at_their_count_and_others_at_the_end() {
    assert_eq!(passed(Framing::Length(3), Form::Framed, b"abcdef", &[]), Ok((b"abc".to_vec(), Some(3))));
    assert_eq!(passed(Framing::Close, Form::Framed, b"abc", &[]), Ok((b"abc".to_vec(), None)));
    for (framing, whole) in [(Framing::Close, true), (Framing::Length(1), false), (Framing::Chunked, false)] {
        assert_eq!(Body::new(framing, Form::Framed).source_ended(), whole, "{framing:?}");
    }
    for over in [Framing::None, Framing::Length(0)] {
        assert!(Body::new(over, Form::Framed).is_done());
    }
    let mut body = Body::new(Framing::Length(10), Form::Framed);
    body.counted(4);
    assert_eq!((body.left(), body.is_done()), (Some(6), false));
    body.counted(6);
    assert!(body.is_done());
}

fn wire() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => proptest::collection::vec(any::<u8>(), 1..40).prop_map(|data| {
            [format!("{:x}\r\n", data.len()).into_bytes(), data, b"\r\n".to_vec()].concat()
        }),
        1 => Just(b"0\r\n\r\n".to_vec()),
        1 => Just(b"0\r\nA: b\r\nHost: x\r\n\r\n".to_vec()),
        1 => Just(b"3;e=1\r\nabc\r\n".to_vec()),
        1 => Just(b"3\nabc\r\n".to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..6),
    ];
    proptest::collection::vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

proptest! {
    /// However chunks are split, the same bytes are passed on and the body ends at the same byte, or is refused.
    #[test]
    fn splitting_changes_nothing(
        bytes in wire(),
        form in prop_oneof![Just(Form::Framed), Just(Form::Data)],
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..9),
    ) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.sort_unstable();
        prop_assert_eq!(passed(Framing::Chunked, form, &bytes, &cuts), passed(Framing::Chunked, form, &bytes, &[]));
    }

    /// What was passed on is chunks again, with the same data.
    #[test]
    fn what_is_passed_on_reads_the_same(bytes in wire()) {
        if let Ok((framed, Some(_))) = passed(Framing::Chunked, Form::Framed, &bytes, &[]) {
            let data = passed(Framing::Chunked, Form::Data, &bytes, &[]).unwrap().0;
            let again = passed(Framing::Chunked, Form::Data, &framed, &[]);
            prop_assert_eq!(again, Ok((data, Some(framed.len()))));
        }
    }
}
