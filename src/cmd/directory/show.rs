use super::look::Look;
use crate::args::JsonArgs;
use crate::cmd::observations::{Observations, fact};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use jiff::Timestamp;
use serde_json::Value;
use stado_fleet::name::ConsumerId;

/// `service directory show`.
pub(crate) async fn show(args: JsonArgs, env: &Env) -> Verb {
    let look = Look::read(env, true).await?;
    let block = look.block()?;
    if args.json {
        ui::json(&Value::Object(block.clone()))?;
        return Ok(Outcome::Done);
    }
    if !block.get("services").is_some_and(Value::is_object) {
        return Err(Failure::config("service_directory carries no services map"));
    }
    ui::print(&text(&look)?)?;
    Ok(Outcome::Done)
}

fn text(look: &Look) -> Result<String, Failure> {
    let observations = Observations::read(&look.fleet.host.stado_home);
    let now = Timestamp::now();
    let mut text = String::new();
    for (name, service) in &look.directory()?.services {
        text.push_str(&format!("{name}  active_host={}\n", service.active_host));
        for (target, endpoint) in &service.endpoints {
            let observed = observations.text(&fact(name.as_str(), target.as_str()), now);
            text.push_str(&format!("    from {target}: {endpoint}  [observed {observed}]\n"));
        }
        let consumers: Vec<&str> = service.consumers.keys().map(ConsumerId::as_str).collect();
        text.push_str(&format!("    consumers: {}\n", consumers.join(", ")));
    }
    Ok(text)
}
