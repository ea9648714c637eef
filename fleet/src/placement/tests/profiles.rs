use crate::document::Document;
use crate::fixture::example;
use crate::placement::{Profile, active_host};
use serde_json::json;
use std::time::Duration;

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_profile_is_found_by_all_of_its_services_in_any_order() {
    let document = example("typical");
    let profile = Profile::of_services(&document, &words(&["skarbiec", "brama"])).unwrap();
    assert_eq!((profile.name.as_str(), profile.stop_order), ("gateway", words(&["brama", "skarbiec"])));
    assert_eq!(profile.hosts["gpu-box"].work_root.as_deref(), Some("/srv/work"));
    assert_eq!(profile.hosts["control-host"].probes[0].within, Duration::from_secs(60));
    assert!(profile.state[0].required && !profile.state[0].tree && !profile.state[0].work);
    assert_eq!(
        Profile::of_services(&document, &words(&["orders", "x"])).unwrap_err().to_string(),
        "no placement profile matches services orders, x"
    );
    assert_eq!(
        Profile::of_services(&document, &words(&["brama"])).unwrap_err().to_string(),
        "no placement profile matches services brama; profile \"gateway\" moves brama, skarbiec together: name all of them"
    );
    assert_eq!(Profile::with_service(&document, "skarbiec").unwrap().name, "gateway");
    assert!(Profile::with_service(&document, "orders").is_err());
    assert_eq!(Profile::named(&document, "gateway").unwrap().services.len(), 2);
    assert_eq!(
        Profile::named(&document, "gateway").unwrap().host("x").unwrap_err().sentence,
        "placement profile \"gateway\" has no host \"x\"; it may run on control-host, gpu-box"
    );
}

#[test]
fn the_active_host_is_one_or_the_reason_why_not() {
    let mut value = example("typical").value().clone();
    let active = |value: &serde_json::Value| {
        let document = Document::from_value(value.clone());
        let profile = Profile::named(&document, "gateway").unwrap();
        active_host(&document, &profile).map_err(|e| e.sentence)
    };
    assert_eq!(active(&value), Ok("control-host".into()));
    value["service_directory"]["services"]["brama"]["active_host"] = json!("gpu-box");
    assert_eq!(
        active(&value),
        Err("placement profile \"gateway\" is active on multiple hosts: control-host, gpu-box".into())
    );
    // Services that the directory does not have are where their units are.
    value["service_directory"]["services"] = json!({});
    assert_eq!(active(&value), Ok("control-host".into()));
    value["targets"][0]["services"] = json!([]);
    assert_eq!(active(&value), Err("placement profile \"gateway\" is active on no host".into()));
}
