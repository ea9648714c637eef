use super::look::Look;
use crate::args::JsonArgs;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};

/// `service directory profiles`: the raw array, or a few lines each.
pub(crate) async fn profiles(args: JsonArgs, env: &Env) -> Verb {
    let look = Look::read(env, true).await?;
    let none = json!([]);
    let profiles = look.answer.snapshot.valid.document.section("placement_profiles").unwrap_or(&none);
    if args.json {
        ui::json(profiles)?;
    } else {
        let lines: Vec<String> = profiles.as_array().into_iter().flatten().map(profile).collect();
        ui::print(&lines.concat())?;
    }
    Ok(Outcome::Done)
}

fn profile(profile: &Value) -> String {
    let name = profile.get("name").and_then(Value::as_str).unwrap_or("-");
    let mut text = format!(
        "{name}  services={} start={} stop={}\n",
        words(profile.get("services")),
        words(profile.get("start_order")),
        words(profile.get("stop_order"))
    );
    for (host, details) in profile.get("hosts").and_then(Value::as_object).into_iter().flatten() {
        let units: Vec<&str> = details
            .get("units")
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(|(unit, _)| unit.as_str())
            .collect();
        text.push_str(&format!("    on {host}: {}\n", units.join(", ")));
    }
    let required = |state: &&Value| state.get("required").and_then(Value::as_bool).unwrap_or(false);
    let states = profile.get("state").and_then(Value::as_array).into_iter().flatten().filter(required);
    let paths: Vec<&str> = states.filter_map(|state| state.get("path")?.as_str()).collect();
    text.push_str(&format!("    required state: {}\n", paths.join(", ")));
    text
}

fn words(list: Option<&Value>) -> String {
    let list: Vec<&str> = list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    list.join(",")
}
