use super::*;
use proptest::prelude::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let enable = (ENABLE.to_owned(), "true".to_owned());
    let ours = pairs.iter().map(|(key, value)| (format!("{PREFIX}{key}"), (*value).to_owned()));
    ours.chain([enable]).collect()
}

fn only_fault(pairs: &[(&str, &str)]) -> LabelFault {
    let parsed = parse(&labels(pairs), "db");
    assert!(parsed.wishes.is_empty(), "{parsed:?}");
    parsed.faults.into_iter().next().unwrap()
}

const DB: [(&str, &str); 2] = [("name", "checkout.postgres"), ("container-port", "5432")];

#[test]
fn the_canonical_labels_are_one_service() {
    let all = [&DB[..], &[("kind", "tcp"), ("app-protocol", "postgres"), ("preferred-port", "5432")]].concat();
    let parsed = parse(&labels(&all), "db");
    let wish = Wish {
        name: "checkout.postgres".parse().unwrap(),
        container_port: 5432,
        kind: Kind::Tcp,
        app_protocol: "postgres".into(),
        preferred_port: 5432,
        http_host: None,
        follow_health: false,
        publish: false,
    };
    assert_eq!(parsed, Parsed { wishes: vec![wish], ..Parsed::default() });
}

#[test]
fn opting_in_is_the_word_true_in_any_case() {
    let enabled = |value: &str| enabled(&Labels::from([(ENABLE.into(), value.into())]));
    assert!(enabled("true") && enabled("TRUE") && enabled(" True "));
    assert!(!enabled("1") && !enabled("yes") && !enabled("") && !super::enabled(&Labels::new()));
}

#[test]
fn wrong_labels_are_named_in_the_contracts_words() {
    let reason = |pairs: &[(&str, &str)]| only_fault(pairs).reason;
    assert_eq!(reason(&[("container-port", "1")]), "io.devmesh.name is required when io.devmesh.enable=true");
    assert_eq!(reason(&[]), "io.devmesh.name is required when io.devmesh.enable=true");
    let wrong = |key: &'static str, value: &'static str| {
        let mut all: Vec<_> = DB.into_iter().filter(|(k, _)| *k != key).collect();
        all.push((key, value));
        only_fault(&all)
    };
    assert_eq!(wrong("container-port", "x").reason, r#"invalid io.devmesh.container-port="x""#);
    assert_eq!(wrong("container-port", "0").label, "io.devmesh.container-port");
    assert_eq!(wrong("preferred-port", "65536").reason, r#"invalid io.devmesh.preferred-port="65536""#);
    assert_eq!(wrong("kind", "udp").reason, r#"unsupported io.devmesh.kind="udp""#);
    assert!(wrong("name", "A_b").reason.starts_with(r#"service name "A_b" must match"#));
    assert!(wrong("follow-health", "maybe").reason.ends_with("write true or false"));
    assert_eq!(wrong("publish", "lap").reason, r#"invalid io.devmesh.publish="lap": write true or false"#);
}

#[test]
fn an_index_makes_one_service_more_and_a_wrong_one_takes_no_other_with_it() {
    let all = labels(&[
        ("name", "shop.web"),
        ("container-port", "80"),
        ("metrics.name", "shop.metrics"),
        ("metrics.container-port", "9090"),
        ("admin.name", "shop.admin"),
        ("admin.container-port", "none"),
    ]);
    let parsed = parse(&all, "web");
    let names: Vec<&str> = parsed.wishes.iter().map(|wish| wish.name.as_str()).collect();
    assert_eq!(names, ["shop.web", "shop.metrics"]);
    assert_eq!(parsed.faults.len(), 1);
    assert_eq!(parsed.faults[0].label, "io.devmesh.admin.container-port");
    assert_eq!(parsed.faults[0].service, "shop.admin");
}

#[test]
fn services_by_index_need_no_plain_one_and_share_its_health_label() {
    let all = labels(&[
        ("follow-health", "true"),
        ("a.name", "a"),
        ("a.container-port", "1"),
        ("b.name", "b"),
        ("b.container-port", "2"),
        ("b.follow-health", "false"),
    ]);
    let parsed = parse(&all, "c");
    assert!(parsed.faults.is_empty(), "{parsed:?}");
    assert_eq!(parsed.wishes.iter().map(|wish| wish.follow_health).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn a_name_twice_in_one_container_is_refused_once() {
    let all = labels(&[("name", "a"), ("container-port", "1"), ("x.name", "a"), ("x.container-port", "2")]);
    let parsed = parse(&all, "c");
    assert_eq!((parsed.wishes.len(), parsed.faults.len()), (1, 1));
    assert_eq!(parsed.faults[0].label, "io.devmesh.x.name");
}

#[test]
fn a_misspelt_label_is_told_and_refuses_nothing() {
    let parsed = parse(&labels(&[&DB[..], &[("prefered-port", "1"), ("a.b.name", "x")]].concat()), "c");
    assert_eq!((parsed.wishes.len(), parsed.faults.len()), (1, 0));
    assert_eq!(parsed.unknown, ["io.devmesh.a.b.name", "io.devmesh.prefered-port"]);
}

#[test]
fn a_hostname_template_is_filled_from_the_container() {
    let mut all = labels(&[
        ("name", "shop.api"),
        ("container-port", "80"),
        ("kind", "http"),
        ("http-host", "{service}-{project}.dev.test"),
    ]);
    all.insert("com.docker.compose.project".into(), "Shop_2".into());
    all.insert("com.docker.compose.service".into(), "api".into());
    let parsed = parse(&all, "c");
    assert_eq!(parsed.wishes[0].http_host.as_deref(), Some("api-shop-2.dev.test"));
}

#[test]
fn owner_keys_outlive_the_container() {
    let compose = Labels::from([
        ("com.docker.compose.project".to_owned(), "it".to_owned()),
        ("com.docker.compose.service".to_owned(), "db".to_owned()),
    ]);
    assert_eq!(owner_key(&compose, "it-db-1", 5432), "docker:it:db:5432");
    assert_eq!(owner_key(&Labels::new(), "pg", 5432), "docker:pg:5432");
    assert_eq!(owner_key(&Labels::new(), "", 5432), "docker:unknown:5432");
}

proptest! {
    #[test]
    fn no_label_set_is_too_strange(keys in proptest::collection::btree_map("(io\\.devmesh\\.)?[a-z.-]{0,20}", ".{0,20}", 0..12)) {
        let parsed = parse(&keys, "c");
        for wish in &parsed.wishes {
            prop_assert!(wish.container_port != 0);
        }
        for fault in &parsed.faults {
            prop_assert!(fault.label.starts_with(PREFIX) && !fault.reason.is_empty());
        }
    }
}

#[test]
fn a_list_tells_which_names_a_container_asks_for() {
    let all = labels(&[("name", " shop.web "), ("b.name", "shop.api"), ("container-port", "80"), ("c.port", "x")]);
    assert_eq!(asks_for(&all), ["shop.api".to_owned(), "shop.web".to_owned()].into());
    let mut off = all;
    off.insert(ENABLE.into(), "yes".into());
    assert!(asks_for(&off).is_empty());
}

#[test]
fn a_container_asks_to_be_published_for_one_service_or_for_all() {
    let asks = |pairs: &[(&str, &str)]| {
        let all = [&DB[..], &[("metrics.name", "shop.metrics"), ("metrics.container-port", "9090")], pairs].concat();
        parse(&labels(&all), "db").wishes.into_iter().map(|wish| wish.publish).collect::<Vec<_>>()
    };
    assert_eq!(asks(&[]), [false, false]);
    assert_eq!(asks(&[("publish", "True")]), [true, true]);
    assert_eq!(asks(&[("publish", "true"), ("metrics.publish", "false")]), [true, false]);
    assert_eq!(asks(&[("metrics.publish", "true")]), [false, true]);
}
