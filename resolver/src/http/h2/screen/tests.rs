use super::*;
use proptest::prelude::*;
use tokio::io::AsyncReadExt;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request on stream 1 whose head is `head` and whose trailers are `trailers`, read in pieces of `size`.
fn flagged(head: &[u8], trailers: &[Vec<u8>], size: usize) -> bool {
    let malformed = Malformed::default();
    let mut screen = Screen::new(malformed.clone());
    let bytes = [vec![0; PREFACE], frame(4, 0, 0, &[]), frame(HEADERS, 4, 1, head), frame(0, 0, 1, b"body")].concat();
    [bytes, trailers.concat()].concat().chunks(size).for_each(|piece| screen.see(piece));
    assert_ne!(screen.at, At::Lost);
    malformed.take(1)
}

const GET: &[u8] = &[0x82, 0x84, 0x86];

#[test]
fn a_pseudo_field_among_trailers_is_seen_however_it_is_written() {
    let path = [&[0u8, 5][..], b":path", &[1, b'/']].concat();
    // `:path` in the code of Appendix B.
    let coded = [0x00u8, 0x84, 0xb9, 0x58, 0xd3, 0x3f, 0x01, b'/'];
    let entered = [GET, &[0x44, 2], b"/x"].concat();
    for (head, trailers) in [
        (GET, frame(HEADERS, 5, 1, &path)),
        (GET, frame(HEADERS, 5, 1, &coded)),
        (GET, frame(HEADERS, 5, 1, &[0x84])),
        (GET, frame(HEADERS, 5, 1, &[0x04, 1, b'/'])),
        (&entered[..], frame(HEADERS, 5, 1, &[0xbe])),
        (&entered[..], frame(HEADERS, 5, 1, &[0x0f, 0x2f, 1, b'/'])),
        (
            GET,
            [frame(HEADERS, 1, 1, &[]), frame(CONTINUATION, 0, 1, &path[..3]), frame(CONTINUATION, 4, 1, &path[3..])]
                .concat(),
        ),
        (GET, frame(HEADERS, 5 | PADDED | PRIORITY, 1, &[&[2u8, 0, 0, 0, 0, 9][..], &path[..], &[0, 0]].concat())),
    ] {
        for size in [1, 7, 4096] {
            assert!(flagged(head, std::slice::from_ref(&trailers), size), "{trailers:?}");
        }
    }
}

#[test]
fn trailers_of_other_fields_are_let_pass() {
    let plain = [&[0u8, 1, b'x'][..], &[5], b":path"].concat();
    let entered = [GET, &[0x40, 1, b'x', 1, b'y']].concat();
    for (head, trailers) in [(GET, frame(HEADERS, 5, 1, &plain)), (&entered[..], frame(HEADERS, 5, 1, &[0xbe]))] {
        assert!(!flagged(head, std::slice::from_ref(&trailers), 3), "{trailers:?}");
    }
    // The head of another request is no trailer.
    assert!(!flagged(GET, &[frame(HEADERS, 5, 3, GET)], 4096));
}

/// What the engine's own client sends for these requests: a name, a value, and whether it stands in the trailers.
async fn sent(requests: &[Vec<(String, String, bool)>]) -> Vec<u8> {
    let (near, mut far) = tokio::io::duplex(16 << 20);
    let (client, connection) = h2::client::handshake(near).await.unwrap();
    let driving = tokio::spawn(connection);
    let mut client = client.ready().await.unwrap();
    // What is dropped is never sent.
    let mut kept = Vec::new();
    for fields in requests {
        let mut request = http::Request::post("http://a.test/path");
        let mut trailers = http::HeaderMap::new();
        for (name, value, late) in fields {
            if *late {
                trailers.append(http::HeaderName::try_from(name).unwrap(), value.parse().unwrap());
            } else {
                request = request.header(name, value);
            }
        }
        let (response, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
        body.send_trailers(trailers).unwrap();
        kept.push((response, body));
        client = client.ready().await.unwrap();
    }
    drop(client);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    driving.abort();
    let _ = driving.await;
    let mut bytes = Vec::new();
    far.read_to_end(&mut bytes).await.unwrap();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whatever a client sends that speaks HTTP/2, the table is followed to the end and nothing is flagged.
    #[test]
    fn what_a_client_sends_is_followed_and_never_flagged(
        requests in proptest::collection::vec(
            proptest::collection::vec(("[a-z]{1,3}-[a-z0-9-]{1,60}", "[ -~]{0,300}", any::<bool>()), 0..12), 1..40),
        size in 1usize..5000,
    ) {
        let requests: Vec<Vec<_>> = requests.into_iter()
            .map(|all| all.into_iter().map(|(name, value, late)| (name, value.trim().to_owned(), late)).collect())
            .collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let bytes = runtime.block_on(sent(&requests));
        let malformed = Malformed::default();
        let mut screen = Screen::new(malformed.clone());
        bytes.chunks(size).for_each(|piece| screen.see(piece));
        prop_assert_ne!(screen.at, At::Lost);
        prop_assert!(malformed.all().is_empty());
        prop_assert_eq!(screen.newest as usize, requests.len() * 2 - 1);
    }

    /// Nothing that strangers send makes it panic.
    #[test]
    fn any_bytes_are_looked_at(bytes in proptest::collection::vec(any::<u8>(), 0..400), size in 1usize..50) {
        let mut screen = Screen::new(Malformed::default());
        screen.see(&[0; PREFACE]);
        bytes.chunks(size).for_each(|piece| screen.see(piece));
        let _ = Fields::default().read(&bytes, true);
        huffman::measure(&bytes);
    }
}
