use crate::args::JsonArgs;
use crate::cmd::directory::Look;
use crate::config::Env;
use crate::exit::{Outcome, Verb};
use crate::ui;
use serde_json::{Value, json};
use stado_fleet::document::DirectoryService;
use stado_fleet::forwards::{Forwards, Marker};
use stado_fleet::name::LogicalName;

/// `route list`.
pub(crate) async fn list(args: JsonArgs, env: &Env) -> Verb {
    let look = Look::read(env, true).await?;
    let directory = look.directory()?;
    let dir = Forwards::new(&look.fleet.host.forwards_dir);
    if args.json {
        let services: Vec<Value> = directory.services.iter().map(|(name, service)| row(&dir, name, service)).collect();
        ui::json(&json!({"authority": {"target": directory.authority_target}, "services": services}))?;
        return Ok(Outcome::Done);
    }
    let mut text = String::new();
    for (name, service) in &directory.services {
        let marker = dir.read(name.as_str());
        let local = marker.map_or("-".to_owned(), |Marker { url, .. }| ui::clean::line(&url));
        text.push_str(&format!("{name}  active_host={}  local={local}\n", service.active_host));
        for (target, endpoint) in &service.endpoints {
            text.push_str(&format!("    from {target}: {endpoint}\n"));
        }
    }
    ui::print(&text)?;
    Ok(Outcome::Done)
}

fn row(dir: &Forwards, name: &LogicalName, service: &DirectoryService) -> Value {
    let endpoints: Vec<Value> =
        service.endpoints.iter().map(|(target, at)| json!({"target": target, "url": at.to_string()})).collect();
    let forward = dir
        .read(name.as_str())
        .map(|Marker { marker, url }| json!({"location": "local", "marker": marker, "url": ui::clean::line(&url)}));
    json!({"service": name, "active_host": service.active_host, "endpoints": endpoints, "local_forward": forward})
}
