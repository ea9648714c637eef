//! The boundary over a vault that does as it is told.
use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::Instant;

/// What the vault says of one item.
#[derive(Debug, Clone)]
enum Says {
    Token(u8),
    /// A token, after so many seconds.
    Late(u64, u8),
    Refuses,
    /// Nothing, ever.
    Hangs,
}

#[derive(Debug, Default)]
struct Vault {
    items: Mutex<BTreeMap<String, Says>>,
    /// Whether the list hangs.
    lists_hang: Mutex<bool>,
    asked: AtomicUsize,
}

impl Vault {
    fn of(items: &[(&str, Says)]) -> Arc<Self> {
        let vault = Self::default();
        items.iter().for_each(|(item, says)| vault.says(item, says.clone()));
        Arc::new(vault)
    }
    fn says(&self, item: &str, says: Says) {
        self.items.lock().unwrap().insert(item.to_owned(), says);
    }
    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Verifier for Vault {
    fn token<'a>(&'a self, item: &'a str) -> verifier::Asking<'a, Digest256> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let says = self.items.lock().unwrap().get(item).cloned();
        Box::pin(async move {
            match says {
                Some(Says::Token(n)) => Ok([n; 32]),
                Some(Says::Late(seconds, n)) => {
                    tokio::time::sleep(Duration::from_secs(seconds)).await;
                    Ok([n; 32])
                }
                Some(Says::Hangs) => std::future::pending().await,
                Some(Says::Refuses) | None => Err("Skarbiec returned HTTP 500: x".to_owned()),
            }
        })
    }
    fn items(&self) -> verifier::Asking<'_, BTreeSet<String>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let (hang, items) = (*self.lists_hang.lock().unwrap(), self.items.lock().unwrap().keys().cloned().collect());
        Box::pin(async move { if hang { std::future::pending().await } else { Ok(items) } })
    }
    fn place(&self) -> String {
        "Skarbiec http://127.0.0.1:1".into()
    }
}

/// Namespaces `a` and `b` with the items `item-a` and `item-b`.
fn boundary(vault: &Arc<Vault>) -> Boundary {
    let items = ["a", "b"].map(|name| (name.to_owned(), format!("item-{name}")));
    Boundary::new(items.into(), Verifying { verifier: vault.clone(), limits: Limits::default() }).unwrap()
}

fn two() -> Arc<Vault> {
    Vault::of(&[("item-a", Says::Token(1)), ("item-b", Says::Token(2))])
}

/// The answer, and how long it took.
async fn timed(boundary: &Boundary, namespace: &str) -> (Result<Digest256, String>, Duration) {
    let began = Instant::now();
    (boundary.token(namespace).await, began.elapsed())
}

#[tokio::test(start_paused = true)]
async fn each_request_asks_for_the_token_of_now() {
    let vault = two();
    let boundary = boundary(&vault);
    assert_eq!(boundary.token("a").await, Ok([1; 32]));
    vault.says("item-a", Says::Token(9));
    assert_eq!(boundary.token("a").await, Ok([9; 32]));
    assert!(boundary.is_open() && boundary.closed().borrow().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_vault_that_hangs_holds_nobody_and_no_other_namespace() {
    let vault = two();
    let boundary = boundary(&vault);
    boundary.token("a").await.unwrap();
    vault.says("item-a", Says::Hangs);
    let (first, took) = timed(&boundary, "a").await;
    let line = first.unwrap_err();
    assert!(
        line.starts_with("czekam: POST /v1/items/read item-a; gdzie: Skarbiec http://127.0.0.1:1; rodzaj: vault; od: "),
        "{line}"
    );
    assert_eq!(took, PATIENCE);
    let asked = vault.asked();
    for _ in 0..100 {
        let (next, took) = timed(&boundary, "a").await;
        assert_eq!((next.unwrap_err(), took), (line.clone(), Duration::ZERO), "at once, with the open line");
    }
    assert_eq!(vault.asked(), asked, "and nobody asks beside the one that waits");
    assert_eq!(timed(&boundary, "b").await, (Ok([2; 32]), Duration::ZERO), "unharmed");
    assert_eq!(boundary.closed().borrow().keys().collect::<Vec<_>>(), ["a"]);
    assert!(!boundary.is_open());

    // The one question ends at its bound; then there is a cool-down without traffic, and then one more question.
    tokio::time::sleep(Duration::from_secs(90)).await;
    vault.says("item-a", Says::Token(3));
    let asked = vault.asked();
    let (closed, took) = timed(&boundary, "a").await;
    let line = closed.unwrap_err();
    assert!(line.starts_with("blad czekania: POST /v1/items/read item-a; ") && line.contains("no answer within 90s"));
    assert_eq!((took, vault.asked()), (Duration::ZERO, asked));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(boundary.token("a").await, Ok([3; 32]));
    assert!(boundary.is_open() && boundary.closed().borrow().is_empty());
}

#[tokio::test(start_paused = true)]
async fn requests_that_come_together_ask_once_and_a_slow_answer_opens_again() {
    let vault = two();
    let boundary = Arc::new(boundary(&vault));
    boundary.token("b").await.unwrap();
    let asked = vault.asked();
    vault.says("item-a", Says::Late(10, 7));
    let many: Vec<_> = (0..50)
        .map(|_| {
            let boundary = boundary.clone();
            tokio::spawn(async move { timed(&boundary, "a").await })
        })
        .collect();
    for one in many {
        let (answer, took) = one.await.unwrap();
        assert!(answer.unwrap_err().starts_with("czekam: ") && took == PATIENCE);
    }
    assert_eq!(vault.asked(), asked + 1);
    assert!(!boundary.is_open());
    tokio::time::sleep(Duration::from_secs(9)).await;
    assert!(boundary.is_open() && boundary.closed().borrow().is_empty(), "as soon as the vault has answered");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_of_the_vault_closes_one_namespace_for_the_cool_down() {
    let vault = two();
    let boundary = boundary(&vault);
    boundary.token("a").await.unwrap();
    vault.says("item-a", Says::Refuses);
    let line = boundary.token("a").await.unwrap_err();
    assert!(line.contains("przyczyna: Skarbiec returned HTTP 500: x; id: "), "{line}");
    vault.says("item-a", Says::Token(1));
    assert_eq!(boundary.token("a").await.unwrap_err(), line, "no traffic in the cool-down");
    assert_eq!(boundary.token("b").await, Ok([2; 32]));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(boundary.token("a").await, Ok([1; 32]));
}

#[tokio::test(start_paused = true)]
async fn the_verifier_must_see_exactly_what_is_mapped_and_tokens_must_differ() {
    let vault = two();
    vault.says("item-c", Says::Token(3));
    vault.items.lock().unwrap().remove("item-b");
    let mismatch = "object verifier grant item set mismatch (missing=[item-b], unexpected=[item-c])";
    assert!(boundary(&vault).token("a").await.unwrap_err().contains(mismatch));
    let vault = Vault::of(&[("item-a", Says::Token(1)), ("item-b", Says::Token(1))]);
    let refused = boundary(&vault).token("a").await.unwrap_err();
    assert!(refused.contains("hold the same token; give each its own"), "{refused}");
    // One that becomes the same later is seen too.
    let vault = two();
    let boundary = boundary(&vault);
    boundary.token("b").await.unwrap();
    vault.says("item-a", Says::Token(2));
    assert!(boundary.token("a").await.unwrap_err().contains("item-a and item-b hold the same token"));
    let twice = [("a".to_owned(), "x".to_owned()), ("b".to_owned(), "x".to_owned())];
    let verifying = Verifying { verifier: vault, limits: Limits::default() };
    assert!(Boundary::new(twice.into(), verifying).unwrap_err().contains("each needs its own"));
}

#[tokio::test(start_paused = true)]
async fn a_slow_or_failing_start_is_tried_three_times_and_then_again_by_requests() {
    // Fleet contract §8, failure 18.
    let vault = two();
    *vault.lists_hang.lock().unwrap() = true;
    let boundary = boundary(&vault);
    boundary.begin();
    let (closed, took) = timed(&boundary, "a").await;
    assert!(closed.unwrap_err().starts_with("czekam: validation of the object verifier; "));
    assert_eq!(took, PATIENCE);
    assert_eq!(boundary.closed().borrow().len(), 2);
    tokio::time::sleep(Duration::from_secs(200)).await;
    *vault.lists_hang.lock().unwrap() = false;
    assert_eq!(vault.asked(), 3, "attempts, each with its bound");
    // The third attempt hangs on until its bound: 3 × 90 s and two pauses.
    tokio::time::sleep(Duration::from_secs(73)).await;
    let (closed, took) = timed(&boundary, "a").await;
    assert!(closed.unwrap_err().starts_with("blad czekania: validation of the object verifier; "));
    assert_eq!((took, vault.asked()), (Duration::ZERO, 3));
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(boundary.token("a").await, Ok([1; 32]), "no restart was needed");
    assert!(boundary.is_open());
}

#[tokio::test(start_paused = true)]
async fn an_item_that_hangs_at_the_start_does_not_stop_the_validation() {
    let vault = two();
    vault.says("item-a", Says::Hangs);
    let boundary = boundary(&vault);
    boundary.begin();
    let (b, took) = timed(&boundary, "b").await;
    assert_eq!((b, took), (Ok([2; 32]), ITEM));
    assert!(boundary.token("a").await.unwrap_err().starts_with("czekam: "));
}
