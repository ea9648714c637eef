//! `object_api` of the configuration file: what this host's object API serves, to whom, and what it asks (fleet contract §2.1,
//! §2.5, §7.2).
use super::{Backend, ConfigError, Env, FleetFile, HostConfig, wrong};
use serde_json::{Map, Value};
use stado_fleet::store::object::Address;
use stado_fleet::vault::{Broker, BrokerConfig};
use stado_resolver::api::object::{Action, Config, Limits, Namespace, Prefix, Token, Verifying};
use stado_resolver::http::tls::PairFiles;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const KEY: &str = "object_api.namespaces";
/// The one consumer that may be the verifier (§7.2).
const VERIFIER: &str = "stado-object-api-verifier";

/// What a flag says instead of the file.
#[derive(Debug, Clone, Default)]
pub(crate) struct ObjectFlags {
    pub(crate) bind: Option<SocketAddr>,
    pub(crate) tls: Option<PairFiles>,
}

/// Whether the daemon is to serve the object API.
pub(crate) fn object_role(file: &FleetFile, env: &Env, host: &HostConfig) -> Option<Result<Config, String>> {
    match file.value("object_api.serve") {
        None | Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(object_config(file, env, host, ObjectFlags::default()).map_err(|e| e.0)),
        Some(_) => Some(Err("object_api.serve must be true or false".into())),
    }
}

/// Reads all of it.
///
/// # Errors
/// A store that is no directory of this host, no address, a namespace without a token, a policy that cannot be read, no
/// namespace at all, and a vault that is half configured.
pub(crate) fn object_config(
    file: &FleetFile,
    env: &Env,
    host: &HostConfig,
    flags: ObjectFlags,
) -> Result<Config, ConfigError> {
    if host.storage.backend != Backend::Local {
        return wrong(format!(
            "an object API serves a directory of this host, and storage.backend is {}; run it where that store is, or set \
             storage.backend to local",
            host.storage.backend.word()
        ));
    }
    let bind = match flags.bind {
        Some(bind) => bind,
        None => address(file, "object_api.bind")?.ok_or_else(|| {
            ConfigError("an object API needs the address it listens on: object_api.bind in the configuration".into())
        })?,
    };
    Ok(Config {
        bind,
        root: host.storage.local_path.clone(),
        writer: host.writer(),
        namespaces: namespaces(file, env)?,
        verifying: verifying(file, env, host)?,
        tls: match flags.tls {
            Some(pair) => Some(pair),
            None => pair(file, env, "object_api.tls")?,
        },
        trust_proxy: file.value("dashboard.trust_https_proxy") == Some(&Value::Bool(true)),
    })
}

/// An `IP:PORT` by its key.
pub(crate) fn address(file: &FleetFile, key: &str) -> Result<Option<SocketAddr>, ConfigError> {
    let Some(text) = file.text(key)? else { return Ok(None) };
    text.parse().map(Some).map_err(|_| ConfigError(format!("{key} is {text:?}, which is no IP:PORT")))
}

/// `cert_file` and `key_file` below a key: both or none.
pub(crate) fn pair(file: &FleetFile, env: &Env, key: &str) -> Result<Option<PairFiles>, ConfigError> {
    let (cert, private) = (file.text(&format!("{key}.cert_file"))?, file.text(&format!("{key}.key_file"))?);
    match (cert, private) {
        (None, None) => Ok(None),
        (Some(cert), Some(private)) => Ok(Some(PairFiles { cert: env.expand(&cert)?, key: env.expand(&private)? })),
        (Some(_), None) => wrong(format!("{key}.cert_file is set and {key}.key_file is not: TLS needs both")),
        (None, Some(_)) => wrong(format!("{key}.key_file is set and {key}.cert_file is not: TLS needs both")),
    }
}

fn namespaces(file: &FleetFile, env: &Env) -> Result<BTreeMap<String, Namespace>, ConfigError> {
    let given = match env.text("WC_OBJECT_API_NAMESPACES")? {
        Some(text) => {
            let read: Result<Map<String, Value>, _> = serde_json::from_str(&text);
            Some(read.map_err(|e| ConfigError(format!("WC_OBJECT_API_NAMESPACES is no JSON object: {e}")))?)
        }
        None => file.value(KEY).and_then(Value::as_object).cloned(),
    };
    let Some(declared) = given.filter(|declared| !declared.is_empty()) else {
        return wrong(format!(
            "{KEY} names no namespace, so the object API would serve nothing; declare one, as docs/stores.md shows"
        ));
    };
    let mut namespaces = BTreeMap::new();
    for (name, entry) in &declared {
        let policies = entry.get("prefix_policies").and_then(Value::as_array).into_iter().flatten();
        let prefixes = policies.map(|policy| prefix(name, policy)).collect::<Result<Vec<_>, _>>()?;
        if prefixes.is_empty() {
            return wrong(format!("{KEY}.{name}.prefix_policies must say which keys its token covers"));
        }
        namespaces.insert(name.clone(), Namespace { token: token(name, entry, env)?, prefixes });
    }
    Ok(namespaces)
}

/// A file, or an item of the vault: `<namespace>-object-api` unless it is named.
fn token(name: &str, entry: &Value, env: &Env) -> Result<Token, ConfigError> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("token_file"), text("item")) {
        (Some(file), None) => Ok(Token::File(env.expand(file)?)),
        (None, Some(item)) => Ok(Token::Vault { item: item.to_owned() }),
        (None, None) => Ok(Token::Vault { item: format!("{name}-object-api") }),
        (Some(_), Some(_)) => {
            wrong(format!("{KEY}.{name} has a token_file and an item of the vault; its token is in one of them"))
        }
    }
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

/// The vault, where one is named.
fn verifying(file: &FleetFile, env: &Env, host: &HostConfig) -> Result<Option<Verifying>, ConfigError> {
    let setting = |variable: &str, key: &str| match env.text(variable)? {
        Some(value) => Ok(Some(value)),
        None => file.text(key),
    };
    let Some(url) = setting("WC_OBJECT_SKARBIEC_URL", "object_api.skarbiec.url")? else { return Ok(None) };
    let consumer = setting("WC_OBJECT_SKARBIEC_CONSUMER", "object_api.skarbiec.consumer")?;
    if let Some(other) = consumer.filter(|consumer| consumer != VERIFIER) {
        return wrong(format!("object_api.skarbiec.consumer is {other:?}; the verifier must be {VERIFIER}"));
    }
    let Some(token_file) = setting("WC_OBJECT_SKARBIEC_TOKEN_FILE", "object_api.skarbiec.token_file")? else {
        return wrong(
            "object_api.skarbiec.url is set and object_api.skarbiec.token_file is not: name the verifier's grant file",
        );
    };
    let ca_file: Option<PathBuf> =
        file.text("object_api.skarbiec.ca_file")?.map(|text| env.expand(&text)).transpose()?;
    let config = BrokerConfig {
        address: Address::parse("Skarbiec URL", &url)
            .map_err(|e| ConfigError(format!("object_api.skarbiec.url: {e}")))?,
        consumer: VERIFIER.into(),
        token_file: env.expand(&token_file)?,
        ca_file,
    };
    let verifier = Arc::new(Broker::new(config, Arc::new(host.routes())));
    Ok(Some(Verifying { verifier, limits: limits(env)? }))
}

/// Bounds of §2.5.
fn limits(env: &Env) -> Result<Limits, ConfigError> {
    let number = |variable: &str| -> Result<Option<u32>, ConfigError> {
        let Some(text) = env.text(variable)? else { return Ok(None) };
        text.trim()
            .parse()
            .map(Some)
            .map_err(|_| ConfigError(format!("{variable} is {text:?}, which is no whole number")))
    };
    let seconds = |variable: &str| Ok::<_, ConfigError>(number(variable)?.map(|n| Duration::from_secs(n.into())));
    let default = Limits::default();
    Ok(Limits {
        attempts: number("WC_DASHBOARD_BOUNDARY_ATTEMPTS")?.unwrap_or(default.attempts).max(1),
        timeout: seconds("WC_DASHBOARD_BOUNDARY_TIMEOUT_SECONDS")?.unwrap_or(default.timeout),
        recheck: seconds("WC_DASHBOARD_BOUNDARY_RECHECK_SECONDS")?.unwrap_or(default.recheck),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(object_api: &Value, pairs: [(&str, &str); 2]) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".stado/config.json");
        std::fs::create_dir(dir.path().join(".stado")).unwrap();
        std::fs::write(&path, json!({ "object_api": object_api }).to_string()).unwrap();
        let [one, two] = pairs;
        let env = Env::of([("HOME", dir.path().to_str().unwrap()), one, two]);
        let host = HostConfig::read(&env, None).unwrap();
        object_config(&FleetFile::find(&env).unwrap(), &env, &host, ObjectFlags::default())
    }

    const NOTHING: [(&str, &str); 2] = [("UNUSED", ""), ("UNUSED2", "")];

    fn api() -> Value {
        let policies = json!([{"prefix": "", "actions": ["get"]}]);
        json!({
            "bind": "127.0.0.1:18765",
            "namespaces": {"probierz": {"item": "probierz-object-api", "prefix_policies": policies}},
            "skarbiec": {"url": "http://127.0.0.1:9", "consumer": VERIFIER, "token_file": "~/.stado/verifier"}
        })
    }

    #[test]
    fn a_namespace_has_its_token_in_the_vault_or_in_a_file() {
        let config = read(&api(), NOTHING).unwrap();
        assert_eq!(config.namespaces["probierz"].token, Token::Vault { item: "probierz-object-api".into() });
        assert_eq!(config.verifying.unwrap().limits, Limits::default());
        let mut changed = api();
        changed["namespaces"]["probierz"]["item"] = Value::Null;
        let config = read(&changed, NOTHING).unwrap();
        assert_eq!(config.namespaces["probierz"].token, Token::Vault { item: "probierz-object-api".into() });
        changed["namespaces"]["probierz"]["token_file"] = json!("~/x");
        assert!(
            matches!(&read(&changed, NOTHING).unwrap().namespaces["probierz"].token, Token::File(f) if f.ends_with("x"))
        );
        changed["namespaces"]["probierz"]["item"] = json!("x");
        assert!(read(&changed, NOTHING).unwrap_err().0.contains("its token is in one of them"));
    }

    #[test]
    fn the_environment_wins_and_bounds_come_from_it() {
        let namespaces = r#"{"notes": {"prefix_policies": [{"prefix": "a/", "actions": ["get", "list"]}]}}"#;
        let env = [("WC_OBJECT_API_NAMESPACES", namespaces), ("WC_DASHBOARD_BOUNDARY_RECHECK_SECONDS", "7")];
        let config = read(&api(), env).unwrap();
        assert_eq!(config.namespaces.keys().collect::<Vec<_>>(), ["notes"]);
        assert_eq!(config.verifying.unwrap().limits.recheck, Duration::from_secs(7));
        let bad = [("WC_DASHBOARD_BOUNDARY_ATTEMPTS", "many"), ("UNUSED", "")];
        assert!(read(&api(), bad).unwrap_err().0.contains("no whole number"));
    }

    #[test]
    fn half_a_vault_and_half_a_pair_are_named() {
        let error = |change: fn(&mut Value)| {
            let mut api = api();
            change(&mut api);
            read(&api, NOTHING).unwrap_err().0
        };
        assert!(
            error(|api| api["skarbiec"]["consumer"] = json!("me")).contains("the verifier must be stado-object-api")
        );
        assert!(error(|api| api["skarbiec"]["token_file"] = Value::Null).contains("name the verifier's grant file"));
        let far = error(|api| api["skarbiec"]["url"] = json!("http://vault.example"));
        assert!(far.starts_with("object_api.skarbiec.url: ") && far.contains("HTTPS origin"), "{far}");
        assert!(error(|api| api["tls"] = json!({"cert_file": "c"})).contains("TLS needs both"));
        assert!(error(|api| api["bind"] = Value::Null).contains("object_api.bind"));
        assert!(error(|api| api["namespaces"] = json!({})).contains("names no namespace"));
    }
}
