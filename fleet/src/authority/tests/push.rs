//! The verb behind `registry push` (fleet contract §6.2).
use super::*;
use crate::edit::Overrides;
use crate::fault::Class;
use crate::store::local::version_of;
use crate::testing::empty;

fn request(document: &Document) -> PushRequest {
    PushRequest { bytes: document.bytes().into(), if_generation: None, overrides: Overrides::default() }
}

#[tokio::test]
async fn a_push_creates_then_replaces_and_its_receipt_says_which() {
    let scene = Scene::new([]).await;
    let source = Source::Store(Arc::clone(&scene.near));
    let created = push(&source, &scene.far, request(&document(1, 1))).await.unwrap();
    assert_eq!((created.state.as_str(), &created.replaced), ("pushed", &None));
    assert!(!serde_json::to_string(&created).unwrap().contains("replaced"));

    let mut next = request(&document(2, 1));
    next.if_generation = created.generation.clone();
    let replaced = push(&source, &scene.far, next).await.unwrap();
    assert_eq!(replaced.replaced, Some(created.generation.clone()));
    assert_eq!(replaced.expected_generation, created.generation);
}

#[tokio::test]
async fn a_push_from_the_workstation_runs_on_the_authority() {
    let scene = Scene::new([]).await;
    let receipt = push(&scene.remote(), &scene.far, request(&document(8, 6000))).await.unwrap();
    assert_eq!(receipt.location, "control:registry.json");
    assert_eq!(scene.held().await.0.bytes(), document(8, 6000).bytes());
    assert_eq!(scene.far.commands().len(), 3, "read, write, read back");
}

#[tokio::test]
async fn a_generation_that_is_not_there_is_a_conflict_with_a_receipt() {
    let scene = Scene::new([]).await;
    for (asked, source) in
        [("gone", scene.remote()), ("0", scene.remote()), ("gone", Source::Store(Arc::clone(&scene.near)))]
    {
        let mut conditional = request(&document(8, 6000));
        conditional.if_generation = Some(asked.parse().unwrap());
        let refused = push(&source, &scene.far, conditional).await.unwrap_err();
        assert_eq!(refused.error.class, Class::Moved);
        let receipt = refused.receipt.unwrap();
        assert_eq!(receipt.state, "conflict");
        let there = matches!(source, Source::Remote(_)).then(|| version_of(document(7, 5432).bytes()).unwrap());
        assert_eq!(receipt.actual_generation, there);
    }
    assert_eq!(scene.held().await.0.bytes(), document(7, 5432).bytes());
}

#[tokio::test]
async fn a_writer_that_comes_between_is_a_conflict() {
    let scene = Scene::new([Fault::Then(document(9, 7000))]).await;
    let refused = push(&scene.remote(), &scene.far, request(&document(8, 6000))).await.unwrap_err();
    assert_eq!(refused.error.class, Class::Moved);
    assert_eq!(refused.receipt.unwrap().actual_generation, version_of(document(9, 7000).bytes()).ok());
}

#[tokio::test]
async fn invalid_or_guarded_documents_are_refused_before_any_write() {
    let scene = Scene::new([]).await;
    let torn = PushRequest { bytes: b"{".as_slice().into(), ..request(&empty()) };
    for (request, class) in [
        (torn, Class::Config),
        (request(&Document::parse(br#"{"schema_version":1}"#.as_slice()).unwrap()), Class::Config),
        (request(&document(5, 5432)), Class::Refused),
        (request(&document(7, 9999)), Class::Refused),
        (
            PushRequest { overrides: Overrides { force: true, allow_empty_fleet: false }, ..request(&empty()) },
            Class::Refused,
        ),
    ] {
        let refused = push(&scene.remote(), &scene.far, request).await.unwrap_err();
        assert_eq!((refused.error.class, refused.receipt), (class, None), "{}", refused.error);
    }
    assert!(scene.far.commands().iter().all(|c| c.ends_with("resolver snapshot")));
    assert_eq!(scene.held().await.0.bytes(), document(7, 5432).bytes());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_pushes_on_one_generation_exactly_one_wins() {
    let scene = Arc::new(Scene::new([]).await);
    let held = scene.held().await.1;
    let pushes: Vec<_> = (0..20u16)
        .map(|n| {
            let (scene, held) = (Arc::clone(&scene), held.clone());
            tokio::spawn(async move {
                let mut conditional = request(&document(8, 6000 + n));
                conditional.if_generation = Some(held);
                push(&scene.remote(), &scene.far, conditional).await
            })
        })
        .collect();
    let mut won = 0;
    for push in pushes {
        match push.await.unwrap() {
            Ok(_) => won += 1,
            Err(refused) => assert_eq!(refused.error.class, Class::Moved, "{refused}"),
        }
    }
    assert_eq!(won, 1);
}
