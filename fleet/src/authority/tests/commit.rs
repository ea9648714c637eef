//! A write through the authority: whatever is cut, what is told is what happened (fleet contract §3.5).
use super::*;
use crate::fault::Class;
use crate::link::Stage;
use crate::name::StoreVersion;
use crate::store::local::version_of;

/// Commits generation 8 over the link, after these faults.
async fn write(faults: impl IntoIterator<Item = Fault>) -> (Scene, Result<Committed, RegistryError>) {
    let scene = Scene::new(faults).await;
    let (_, version) = scene.held().await;
    let result = commit(&scene.remote(), &scene.far, Some(&version), &document(8, 6000)).await;
    (scene, result)
}

fn seven() -> StoreVersion {
    version_of(document(7, 5432).bytes()).unwrap()
}

fn eight() -> StoreVersion {
    version_of(document(8, 6000).bytes()).unwrap()
}

#[tokio::test]
async fn a_write_goes_to_the_authority_and_is_read_back() {
    let (scene, result) = write([]).await;
    let committed = result.unwrap();
    assert_eq!((committed.version, committed.replaced), (eight(), Some(seven())));
    assert_eq!(scene.held().await.0.bytes(), document(8, 6000).bytes(), "the bytes that were sent");
    assert_eq!(
        scene.far.commands(),
        [
            format!(
                "'/opt/stado/bin/stado' registry push - --if-generation {} --force --allow-empty-fleet --json",
                seven()
            ),
            "'/opt/stado/bin/stado' resolver snapshot".into()
        ]
    );
}

#[tokio::test]
async fn a_moved_generation_is_told_with_what_is_there() {
    let (scene, result) = write([Fault::Before(document(9, 7000))]).await;
    let error = result.unwrap_err();
    let nine = version_of(document(9, 7000).bytes()).unwrap();
    assert_eq!((error.class, &error.found), (Class::Moved, &Some(nine.clone())));
    let start = format!(
        "registry write refused: it is conditional on generation {} and control:registry.json is at generation {nine}. \
         Another writer got there first, ",
        seven()
    );
    assert!(error.sentence.starts_with(&start), "{error}");
    assert!(
        error
            .sentence
            .ends_with("Exit 75 means exactly this and nothing else: the store is healthy and the document is valid.")
    );
    assert_eq!(scene.held().await.1, nine);
}

#[tokio::test]
async fn a_write_that_no_path_carried_is_not_a_write() {
    let causes = "no registry SSH connection path answered (primary: down; lan: down)";
    let (scene, result) = write([Fault::Link(Stage::Connect, Class::InfraDown, causes)]).await;
    let error = result.unwrap_err();
    assert_eq!(error.class, Class::InfraDown);
    assert_eq!(
        error.sentence,
        "registry write through authority control: no SSH connection path answered (primary: down; lan: down)"
    );
    assert_eq!(scene.held().await.1, seven());
}

#[tokio::test]
async fn a_refused_write_carries_the_authoritys_words() {
    let (_, result) = write([Fault::Say(Some(1), Vec::new(), "Error: registry upload refused: no\n")]).await;
    assert_eq!(
        result.unwrap_err(),
        RegistryError::new(
            Class::Refused,
            "registry authority control refused the write with exit 1: Error: registry upload refused: no"
        )
    );
    let (_, result) = write([Fault::Say(Some(69), Vec::new(), "store away")]).await;
    assert_eq!(result.unwrap_err().class, Class::InfraDown);
}

#[tokio::test]
async fn an_authority_that_could_not_confirm_its_swap_is_settled_by_reading_back() {
    let doubt =
        "Error: registry write of generation x at local:registry.json is unconfirmed: another generation read back";
    let (_, result) = write([Fault::Say(Some(1), Vec::new(), doubt)]).await;
    assert_eq!(result.unwrap_err().class, Class::InfraDown, "it still is at the old generation");
    let scene = Scene::new([Fault::Say(Some(1), Vec::new(), doubt)]).await;
    scene.far.store.swap(Expected::Version(seven()), document(8, 6000).bytes().to_vec()).await.unwrap();
    let committed = commit(&scene.remote(), &scene.far, Some(&seven()), &document(8, 6000)).await.unwrap();
    assert_eq!(committed.version, eight());
}

#[tokio::test]
async fn a_line_cut_before_the_swap_wrote_nothing() {
    let (scene, result) = write([Fault::CutBefore]).await;
    let error = result.unwrap_err();
    assert_eq!(error.class, Class::InfraDown);
    assert_eq!(
        error.sentence,
        format!(
            "registry write through authority control: the session was lost; nothing was written, the registry at \
             control:registry.json still is at generation {}",
            seven()
        )
    );
    assert_eq!(scene.held().await.1, seven());
    assert_eq!(scene.far.commands().len(), 2, "the write is not sent again");
}

#[tokio::test]
async fn a_line_cut_between_the_swap_and_its_answer_is_settled_by_reading_back() {
    for lost in [Fault::CutAfter, Fault::Chatter("{\"truncated\":")] {
        let (scene, result) = write([lost]).await;
        let committed = result.unwrap();
        assert_eq!((committed.version, committed.replaced), (eight(), Some(seven())));
        assert_eq!(scene.held().await.1, eight());
    }
}

#[tokio::test]
async fn an_answer_lost_among_other_writers_is_unconfirmed() {
    let (_, result) = write([Fault::CutBefore, Fault::Before(document(9, 7000))]).await;
    let error = result.unwrap_err();
    assert_eq!(error.class, Class::Unknown);
    assert!(error.sentence.starts_with("registry write at control:registry.json is unconfirmed: "), "{error}");
    assert!(error.sentence.contains("which is not what was sent"), "{error}");

    let (scene, result) = write([Fault::CutAfter, Fault::CutBefore, Fault::CutBefore]).await;
    let error = result.unwrap_err();
    assert!(
        error.sentence.contains("is unconfirmed: ") && error.sentence.contains("could not be read back: "),
        "{error}"
    );
    assert_eq!(scene.held().await.1, eight(), "it had been written, and nobody said that it had not");
}

#[tokio::test]
async fn a_write_that_reads_back_otherwise_is_unconfirmed_with_the_reason() {
    let say = |text: String| Fault::Say(Some(0), text.into_bytes(), "");
    let cases = [
        (
            Fault::Before(document(9, 7000)),
            "another generation read back (another write landed since, or the read came from a copy behind the store): ",
        ),
        (say(format!(r#"{{"store_version":"{}","document":[]}}"#, eight())), "something that is not JSON read back: "),
        (
            say(format!(r#"{{"store_version":"{}","document":{}}}"#, eight(), document(8, 1).value())),
            "a different document read back",
        ),
        (Fault::Link(Stage::Auth, Class::Auth, "refused"), "it could not be read back: "),
    ];
    for (read_back, why) in cases {
        let (_, result) = write([Fault::None, read_back]).await;
        let error = result.unwrap_err();
        let start = format!("registry write of generation {} at control:registry.json is unconfirmed: {why}", eight());
        assert!(error.sentence.starts_with(&start), "{error}\n{start}");
        assert_eq!(error.class, Class::Unknown);
    }
}

#[tokio::test]
async fn a_write_on_the_authority_itself_goes_to_its_store() {
    let scene = Scene::new([]).await;
    let source = Source::Store(Arc::new(scene.far.store.clone()));
    let committed = commit(&source, &scene.far, Some(&seven()), &document(8, 6000)).await.unwrap();
    assert_eq!(committed.location, "local:registry.json");
    let error = commit(&source, &scene.far, Some(&seven()), &document(9, 6000)).await.unwrap_err();
    assert_eq!(error.found, Some(eight()));
    assert!(scene.far.commands().is_empty());

    let empty = Source::Store(Arc::clone(&scene.near));
    let error = commit(&empty, &scene.far, Some(&seven()), &document(9, 6000)).await.unwrap_err();
    assert!(error.sentence.contains("and there is no document at local:registry.json"), "{error}");
    let created = commit(&empty, &scene.far, None, &document(1, 1)).await.unwrap();
    assert_eq!(created.replaced, None);
}
