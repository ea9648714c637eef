//! What verbs read, and what they say about it (fleet contract §3.2, §3.4).
use super::*;
use crate::fault::Class;
use crate::link::Stage;
use crate::name::TargetName;
use crate::store::{StoreFuture, Stored};
use jiff::{SignedDuration, Timestamp};

/// A store that other hosts share, over a local one.
#[derive(Debug)]
struct Shared(Arc<dyn RegistryStore>);

impl RegistryStore for Shared {
    fn location(&self) -> String {
        "stado://probierz/registry.json".into()
    }
    fn read(&self) -> StoreFuture<'_, Result<Option<Stored>, crate::store::StoreError>> {
        self.0.read()
    }
    fn swap(&self, expected: Expected, bytes: Vec<u8>) -> StoreFuture<'_, Result<Swap, crate::store::StoreError>> {
        self.0.swap(expected, bytes)
    }
}

fn down() -> Fault {
    Fault::Link(Stage::Auth, Class::Auth, "no registry SSH connection path answered (primary: down)")
}

async fn read(
    scene: &Scene,
    me: &TargetName,
    store: Arc<dyn RegistryStore>,
    copy_may_answer: bool,
) -> Result<Answer, RegistryError> {
    let reading =
        Reading { me: Some(me), store, last_good: &scene.last_good, exec: &scene.far, copy_may_answer, patience: None };
    read_for_verbs(reading, Timestamp::now() + SignedDuration::from_secs(100)).await
}

fn me() -> TargetName {
    "desk".parse().unwrap()
}

#[tokio::test]
async fn the_authority_answers_and_is_recorded() {
    let scene = Scene::new([]).await;
    scene.far.store.swap(Expected::Version(scene.held().await.1), document(8, 1).bytes().to_vec()).await.unwrap();
    let answer = read(&scene, &me(), Arc::clone(&scene.near), true).await.unwrap();
    assert_eq!((answer.origin, answer.notices), (Origin::Authority, Vec::new()));
    let copy = scene.last_good.read().unwrap().unwrap();
    assert_eq!(copy.snapshot.store_version, answer.snapshot.store_version);
    assert!(copy.snapshot.valid.document.same_as(&document(8, 1)));
}

#[tokio::test]
async fn in_an_outage_the_copy_answers_for_reading_verbs_only() {
    let scene = Scene::new([down(), down()]).await;
    let answer = read(&scene, &me(), Arc::clone(&scene.near), true).await.unwrap();
    assert_eq!(answer.origin, Origin::LastGood);
    let [notice] = answer.notices.as_slice() else { panic!("{:?}", answer.notices) };
    assert!(notice.starts_with("reading the last-known-good registry copy from 1"), "{notice}");
    assert!(
        notice.ends_with(
            ", generation old) because the authority did not answer: no registry authority SSH connection path answered \
             (primary: down)"
        ),
        "{notice}"
    );
    let error = read(&scene, &me(), Arc::clone(&scene.near), false).await.unwrap_err();
    assert_eq!(error.sentence, "no registry authority SSH connection path answered (primary: down)");
}

#[tokio::test]
async fn a_shared_store_is_read_before_the_copy_and_that_is_said() {
    let scene = Scene::new([down(), down()]).await;
    let store: Arc<dyn RegistryStore> = Arc::new(Shared(Arc::new(scene.far.store.clone())));
    let said = "stado: the registry authority's snapshot could not be read (no registry authority SSH connection path \
                answered (primary: down)); reading the registry store at stado://probierz/registry.json instead";
    let answer = read(&scene, &me(), store, true).await.unwrap();
    assert_eq!((answer.origin, answer.notices), (Origin::Store, vec![said.to_owned()]));

    let empty: Arc<dyn RegistryStore> = Arc::new(Shared(Arc::clone(&scene.near)));
    let answer = read(&scene, &me(), empty, true).await.unwrap();
    assert_eq!((answer.origin, answer.notices.len()), (Origin::LastGood, 2));
    assert!(answer.notices[1].ends_with("no registry document at stado://probierz/registry.json"));
}

#[tokio::test]
async fn the_authority_itself_reads_its_store_and_never_a_copy() {
    let scene = Scene::new([]).await;
    let control: TargetName = "control".parse().unwrap();
    let answer = read(&scene, &control, Arc::new(scene.far.store.clone()), true).await.unwrap();
    assert_eq!(answer.origin, Origin::Store);
    assert!(scene.far.commands().is_empty());
    assert_eq!(scene.last_good.read().unwrap().unwrap().snapshot.store_version.as_str(), "old", "nothing is recorded");

    std::fs::write(scene.home.path().join("far/registry.json"), "torn").unwrap();
    let error = read(&scene, &control, Arc::new(scene.far.store.clone()), true).await.unwrap_err();
    assert!(error.sentence.starts_with("invalid registry document at local:registry.json"), "{error}");
}

#[tokio::test]
async fn a_corrupt_copy_is_said_and_never_founds_a_second_fleet() {
    let scene = Scene::new([]).await;
    std::fs::write(scene.last_good.path(), "torn").unwrap();
    let error = read(&scene, &me(), Arc::clone(&scene.near), true).await.unwrap_err();
    assert!(error.sentence.contains("is not used") && error.sentence.contains("registry pull --from"), "{error}");
    scene.near.swap(Expected::Absent, document(1, 1).bytes().to_vec()).await.unwrap();
    let answer = read(&scene, &me(), Arc::clone(&scene.near), true).await.unwrap();
    assert_eq!(answer.origin, Origin::Store);
    assert!(answer.notices[0].contains("is not used") && answer.notices[0].contains("kept as"), "{:?}", answer.notices);
}

#[tokio::test]
async fn an_authority_that_goes_back_answers_but_is_not_recorded() {
    let scene = Scene::new([]).await;
    scene.far.store.swap(Expected::Version(scene.held().await.1), document(5, 1).bytes().to_vec()).await.unwrap();
    let answer = read(&scene, &me(), Arc::clone(&scene.near), true).await.unwrap();
    assert_eq!(answer.origin, Origin::Authority);
    assert!(
        answer.notices[0].ends_with("service directory rollback rejected: generation 5 < 7"),
        "{:?}",
        answer.notices
    );
}

#[tokio::test]
async fn a_first_copy_names_the_authority_from_then_on() {
    let mut scene = Scene::new([]).await;
    scene.last_good = LastGood::new(scene.home.path().join("new"));
    let destination: crate::name::SshDestination = "ops@127.0.0.2:22".parse().unwrap();
    let now = Timestamp::now();
    for command in ["stado", "/opt/../stado"] {
        let error = first_copy(destination.clone(), command, &scene.far, &scene.last_good, now).await.unwrap_err();
        assert_eq!(error.class, Class::Usage);
    }
    assert!(matches!(scene.remote(), Source::Store(_)));
    first_copy(destination, "/opt/stado/bin/stado", &scene.far, &scene.last_good, now).await.unwrap();
    assert_eq!(scene.remote().location(), "control:registry.json");
}
