use crate::args::DirectoryResolveArgs;
use crate::cmd::fleet::Fleet;
use crate::cmd::provenance::provenance;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use serde_json::json;
use stado_fleet::directory::Directory;
use stado_fleet::name::LogicalName;
use std::sync::Arc;

/// `resolver resolve`: generation and capabilities of one service for one consumer; never where it is.
pub(crate) async fn resolve(args: DirectoryResolveArgs, env: &Env) -> Verb {
    let name = logical(&args.service)?;
    let fleet = Fleet::open(env)?;
    let answer = fleet.read(true).await?;
    let registry = &answer.snapshot.valid.registry;
    let host = match fleet.me(registry)?.or_else(|| registry.targets.keys().next().cloned()) {
        Some(host) => host,
        None => return Err(Failure::not_found("the registry declares no target")),
    };
    let directory = Directory::build(Arc::clone(registry), host);
    let route = directory.resolve(name.as_str(), &args.consumer)?;
    let generation = directory.generation().map(|g| g.0);
    let uri = format!("stado://service/{name}");
    if args.json {
        ui::json(
            &json!({"service": uri, "generation": generation, "capabilities": route.capabilities, "registry": provenance(&answer)}),
        )?;
    } else {
        let generation = generation.map_or("-".to_owned(), |g| g.to_string());
        ui::line(format_args!("{uri} generation={generation} capabilities={}", route.capabilities.join(",")))?;
    }
    Ok(Outcome::Done)
}

fn logical(text: &str) -> Result<LogicalName, Failure> {
    let name = text.strip_prefix("stado://service/").unwrap_or(text);
    name.parse().map_err(|_| Failure::usage("SERVICE must be one logical name or stado://service/<name>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_named_in_two_ways_and_no_third() {
        assert_eq!(logical("brama").unwrap().as_str(), "brama");
        assert_eq!(logical("stado://service/brama").unwrap().as_str(), "brama");
        for bad in ["a/b", "", "stado://service/", "http://x", "A"] {
            assert_eq!(logical(bad).unwrap_err().class, stado_fleet::fault::Class::Usage, "{bad:?}");
        }
    }
}
