//! Reading a snapshot over the link (fleet contract §3.2).
use super::*;
use crate::fault::Class;
use crate::link::Stage;
use std::time::Duration;

const DOWN: &str = "no registry SSH connection path answered (primary: connect to 127.0.0.2:22: refused)";

async fn failure(faults: impl IntoIterator<Item = Fault>) -> (RegistryError, usize) {
    let scene = Scene::new(faults).await;
    let error = fetch(&scene.remote(), &scene.far).await.unwrap_err();
    (error, scene.far.commands().len())
}

#[tokio::test]
async fn the_authority_is_the_one_the_copy_names() {
    let scene = Scene::new([]).await;
    let copy = scene.last_good.read().unwrap();
    let near = || Arc::clone(&scene.near);
    let me = |name: &str| name.parse().unwrap();
    assert_eq!(scene.remote().location(), "control:registry.json");
    assert!(matches!(locate(copy.as_ref(), None, near()), Source::Remote(_)));
    assert!(matches!(locate(copy.as_ref(), Some(&me("control")), near()), Source::Store(_)));
    assert!(matches!(locate(None, Some(&me("desk")), near()), Source::Store(_)));

    let mut moved = document(8, 1).value().clone();
    moved["service_directory"]["authority"]["target"] = "desk".into();
    let moved = snapshot_of(Document::from_value(moved), "x");
    assert!(matches!(next_source(&moved, &me("desk"), near()), Source::Store(_)));
    let Source::Remote(next) = next_source(&moved, &me("control"), near()) else { panic!() };
    assert_eq!((next.target.as_str(), next.paths.len()), ("desk", 1));
}

#[tokio::test]
async fn a_snapshot_carries_the_document_and_its_version() {
    let scene = Scene::new([]).await;
    let read = fetch(&scene.remote(), &scene.far).await.unwrap().unwrap();
    let (held, version) = scene.held().await;
    assert_eq!(read.store_version, version);
    assert!(read.valid.document.same_as(&held));
    assert!(std::str::from_utf8(read.valid.document.bytes()).unwrap().contains("1.50"), "numbers keep their text");
    assert_eq!(scene.far.commands(), ["'/opt/stado/bin/stado' resolver snapshot"]);

    let again = fetch_since(&scene.remote(), &scene.far, Some(&read)).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&again.valid, &read.valid), "an unchanged registry is not parsed again");
    let since = format!("'/opt/stado/bin/stado' resolver snapshot --if-newer-than {version}");
    assert_eq!(scene.far.commands().pop(), Some(since), "and no document moves");
    let line = snapshot_line(&scene.far.store, Some(&version)).await.unwrap();
    assert_eq!(line, format!(r#"{{"store_version":"{version}","unchanged":true}}"#));

    scene.far.store.swap(Expected::Version(version), document(8, 1).bytes().to_vec()).await.unwrap();
    let newer = fetch_since(&scene.remote(), &scene.far, Some(&read)).await.unwrap().unwrap();
    assert!(newer.valid.document.same_as(&document(8, 1)));
}

#[tokio::test]
async fn an_older_authority_that_refuses_the_flag_sends_the_document_whole() {
    let scene = Scene::new([]).await;
    let mut source = scene.remote();
    // What is remembered of an authority is kept by its name and command.
    let Source::Remote(authority) = &mut source else { panic!() };
    authority.command = "/opt/old/bin/stado".into();
    let whole = |store: &str| format!(r#"{{"store_version":"{store}","document":{}}}"#, document(7, 5432).value());
    let said = |status, text: &str| Fault::Say(Some(status), text.as_bytes().to_vec(), "unexpected argument");
    scene.far.expect([said(0, &whole("a")), said(2, ""), said(0, &whole("a")), said(0, &whole("a"))]);
    let read = fetch(&source, &scene.far).await.unwrap().unwrap();
    for _ in 0..2 {
        let again = fetch_since(&source, &scene.far, Some(&read)).await.unwrap().unwrap();
        assert!(Arc::ptr_eq(&again.valid, &read.valid));
    }
    let commands: Vec<_> = scene.far.commands().iter().map(|c| c.contains("--if-newer-than")).collect();
    assert_eq!(commands, [false, true, false, false], "it is asked once, then not for a while");

    // A claim about another version than the one that was asked is no answer.
    let Source::Remote(authority) = &mut source else { panic!() };
    authority.command = "/opt/other/bin/stado".into();
    for lie in [r#"{"store_version":"b","unchanged":true}"#, r#"{"store_version":"a"}"#] {
        scene.far.expect([said(0, lie)]);
        let error = fetch_since(&source, &scene.far, Some(&read)).await.unwrap_err();
        assert_eq!(error.sentence, "invalid registry authority response: missing field `document`");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_changes_while_it_is_read_gives_whole_versions() {
    let scene = Arc::new(Scene::new([]).await);
    let port = |generation: u64| 5432 + u16::try_from(generation).unwrap();
    let writer = tokio::spawn({
        let scene = Arc::clone(&scene);
        async move {
            for generation in 8..60 {
                let held = scene.held().await.1;
                let bytes = document(generation, port(generation)).bytes().to_vec();
                let swap = scene.far.store.swap(Expected::Version(held), bytes).await.unwrap();
                assert!(matches!(swap, Swap::Applied(_)), "{swap:?}");
            }
        }
    });
    let (mut newest, mut versions) = (0, 0);
    while !writer.is_finished() {
        let read = fetch(&scene.remote(), &scene.far).await.unwrap().unwrap();
        let generation = read.valid.document.generation().unwrap().0;
        if generation > 7 {
            let written = document(generation, port(generation));
            assert!(read.valid.document.same_as(&written), "one version, whole");
            assert_eq!(
                read.store_version,
                crate::store::local::version_of(written.bytes()).unwrap(),
                "and its own name"
            );
        }
        assert!(generation >= newest, "{newest} went back to {generation}");
        versions += u32::from(generation > newest);
        newest = generation;
    }
    writer.await.unwrap();
    assert!(versions > 1, "the registry changed while it was read");
}

#[tokio::test]
async fn a_login_scripts_chatter_is_skipped() {
    let scene = Scene::new([Fault::Chatter("Last login: today\n{tips}\n")]).await;
    assert!(fetch(&scene.remote(), &scene.far).await.unwrap().is_some());
}

#[tokio::test]
async fn a_dead_session_is_tried_once_more_and_both_causes_are_said() {
    // Fleet contract §8, failure 9.
    let scene = Scene::new([Fault::CutBefore]).await;
    assert!(fetch(&scene.remote(), &scene.far).await.unwrap().is_some());

    let down = || Fault::Link(Stage::Connect, Class::InfraDown, DOWN);
    let (error, tries) = failure([down(), down()]).await;
    assert_eq!((error.class, tries), (Class::InfraDown, 2));
    let first = "no registry authority SSH connection path answered (primary: connect to 127.0.0.2:22: refused)";
    assert_eq!(error.sentence, format!("{first}; second authority read on a fresh SSH session failed: {first}"));
    let (error, _) = failure([Fault::CutBefore, Fault::CutBefore]).await;
    assert!(error.sentence.starts_with("registry authority SSH failed: the session was lost; second"), "{error}");
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again() {
    let refused = Fault::Link(Stage::Auth, Class::Auth, "no registry SSH connection path answered (primary: refused)");
    let (error, tries) = failure([refused]).await;
    assert_eq!((error.class, tries), (Class::Auth, 1));
    assert_eq!(error.sentence, "no registry authority SSH connection path answered (primary: refused)");
}

#[tokio::test(start_paused = true)]
async fn a_silent_authority_ends_after_sixty_seconds() {
    let scene = Scene::new([Fault::Hang]).await;
    let source = scene.remote();
    let before = tokio::time::Instant::now();
    let error = fetch(&source, &scene.far).await.unwrap_err();
    assert!((60..=62).contains(&before.elapsed().as_secs()), "{:?}", before.elapsed());
    assert!(before.elapsed() < Duration::from_secs(90));
    assert_eq!(error.class, Class::Timeout);
    assert_eq!(error.sentence, "authority command on ops@127.0.0.2:22 gave no complete answer within 60s");
    assert_eq!(scene.far.commands().len(), 1);

    let late = "command on ops@127.0.0.2:22 gave no complete answer within 60s";
    let (error, tries) = failure([Fault::Link(Stage::Exec, Class::Timeout, late)]).await;
    assert_eq!((error.sentence, tries), (format!("authority {late}"), 1));
}

#[tokio::test]
async fn an_answer_that_is_none_is_refused_by_its_kind() {
    let say = |status, stdout: &str, stderr| Fault::Say(status, stdout.as_bytes().to_vec(), stderr);
    let cases = [
        (say(Some(127), "", "sh: stado: not found\n"), "registry authority exited with 127: sh: stado: not found"),
        (say(None, "", "killed"), "registry authority exited with no exit status: killed"),
        (
            say(Some(0), "{\"store_version\":\"a\",\"docum", ""),
            "invalid registry authority response: EOF while parsing",
        ),
        (
            say(Some(0), "hello", ""),
            "invalid registry authority response: no JSON object in 5 bytes beginning \"hello\"",
        ),
        (
            say(Some(0), r#"{"store_version":"a","document":{},"extra":1}"#, ""),
            "invalid registry authority response: unknown field `extra`",
        ),
        (
            say(Some(0), r#"{"store_version":"a","document":{"schema_version":2,"targets":[],"coordinators":[]}}"#, ""),
            "registry.service_directory is required",
        ),
        (
            say(Some(0), r#"{"store_version":"a","document":{"schema_version":2,"targets":"x"}}"#, ""),
            "invalid registry document at control:registry.json: registry.targets: must be an array",
        ),
        (
            Fault::Link(Stage::Limit, Class::Refused, "the command answered more than 67108864 bytes"),
            "registry authority snapshot exceeds 64 MiB",
        ),
    ];
    for (fault, sentence) in cases {
        let (error, tries) = failure([fault]).await;
        assert!(error.sentence.starts_with(sentence), "{error} / {sentence}");
        assert_eq!(tries, 1, "{sentence}");
    }
}

#[tokio::test]
async fn an_authority_without_a_path_is_named_as_such() {
    let scene = Scene::new([]).await;
    let Source::Remote(mut authority) = scene.remote() else { panic!() };
    authority.paths.clear();
    let error = fetch(&Source::Remote(authority), &scene.far).await.unwrap_err();
    assert_eq!(error.sentence, "registry authority has no SSH connection path");
}

#[tokio::test]
async fn a_store_without_a_registry_is_none_and_one_that_is_no_json_is_said() {
    let scene = Scene::new([]).await;
    let source = Source::Store(Arc::clone(&scene.near));
    assert!(fetch(&source, &scene.far).await.unwrap().is_none());
    let error = snapshot_line(scene.near.as_ref(), None).await.unwrap_err();
    assert_eq!(error.sentence, "no registry document at local:registry.json");
    std::fs::write(scene.home.path().join("near/registry.json"), "[").unwrap();
    let error = fetch(&source, &scene.far).await.unwrap_err();
    assert!(error.sentence.starts_with("invalid registry document at local:registry.json: "), "{error}");
}
