//! `object_api.namespaces` of the configuration file: what this host's object API serves, and to whom (fleet contract §2.1).
use super::{ConfigError, Env, FleetFile, wrong};
use serde_json::Value;
use stado_resolver::api::object::{Access, Action, Namespace, Prefix};
use std::collections::BTreeMap;

const KEY: &str = "object_api.namespaces";

/// Reads them.
///
/// # Errors
/// A namespace without a token file, a policy that cannot be read, policies that overlap, and no namespace at all.
pub(crate) fn object_access(file: &FleetFile, env: &Env) -> Result<Access, ConfigError> {
    let Some(declared) = file.value(KEY).and_then(Value::as_object).filter(|declared| !declared.is_empty()) else {
        return wrong(format!(
            "{KEY} names no namespace, so the object API would serve nothing; declare one, as docs/stores.md shows"
        ));
    };
    let mut namespaces = BTreeMap::new();
    for (name, entry) in declared {
        let Some(token_file) = entry.get("token_file").and_then(Value::as_str).filter(|file| !file.is_empty()) else {
            return wrong(format!("{KEY}.{name}.token_file must name the owner-only file of its token"));
        };
        let policies = entry.get("prefix_policies").and_then(Value::as_array).into_iter().flatten();
        let prefixes = policies.map(|policy| prefix(name, policy)).collect::<Result<Vec<_>, _>>()?;
        if prefixes.is_empty() {
            return wrong(format!("{KEY}.{name}.prefix_policies must say which keys its token covers"));
        }
        namespaces.insert(name.clone(), Namespace { token_file: env.expand(token_file)?, prefixes });
    }
    Access::new(namespaces).map_err(ConfigError)
}

fn prefix(namespace: &str, policy: &Value) -> Result<Prefix, ConfigError> {
    let place = format!("{KEY}.{namespace}.prefix_policies");
    let Some(prefix) = policy.get("prefix").and_then(Value::as_str) else {
        return wrong(format!("{place}: each policy must have a prefix, a text"));
    };
    let words = policy.get("actions").and_then(Value::as_array).into_iter().flatten();
    let mut actions = Vec::new();
    for word in words {
        let action = word.as_str().unwrap_or_default().parse::<Action>();
        actions.push(action.map_err(|e| ConfigError(format!("{place}, prefix {prefix:?}: {e}")))?);
    }
    if actions.is_empty() {
        return wrong(format!("{place}, prefix {prefix:?}: actions must name what is allowed"));
    }
    Ok(Prefix { prefix: prefix.to_owned(), actions })
}
