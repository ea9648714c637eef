//! `service env`: stable addresses as variables, for a shell, a `.env` file or Compose.
use super::daemon;
use super::variables;
use crate::args::{EnvArgs, EnvFormat};
use crate::client::{Api, Error};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use stado_fleet::wire::Standing;
use std::collections::BTreeMap;

/// Prints the variables of the named services, or of all that have an address. An address is stable, so that it is told also
/// while nothing stands behind it.
pub(crate) async fn env(args: EnvArgs, env: &Env) -> Verb {
    let rows = rows(&daemon::api(&args.daemon, env)?).await?;
    let mut skipped = Vec::new();
    let chosen = choose(&rows, &args.names, args.consumer.as_deref(), &mut skipped)?;
    skipped.into_iter().for_each(ui::note);
    let variables = variables(&chosen, args.host.as_deref())?;
    ui::print(&render(&variables, args.format))?;
    Ok(Outcome::Done)
}

/// Services and adapters; a daemon of the first version knows services only.
async fn rows(api: &Api) -> Result<Vec<Standing>, Failure> {
    match api.overview().await {
        Ok(overview) => Ok(overview.services),
        Err(Error::Api { status: 404 | 405, .. }) => {
            let row = |service: stado_fleet::wire::Service| Standing {
                address: service.frontend.endpoint(),
                name: service.name,
                from: "mesh".into(),
                ..Standing::default()
            };
            Ok(api.list().await?.into_iter().map(row).collect())
        }
        Err(error) => Err(error.into()),
    }
}

/// One row a name: the mesh's own, else the only adapter. What was not asked for by name and cannot be told is skipped, with a
/// sentence.
fn choose<'r>(
    rows: &'r [Standing],
    names: &[String],
    consumer: Option<&str>,
    skipped: &mut Vec<String>,
) -> Result<Vec<&'r Standing>, Failure> {
    let mut by_name: BTreeMap<&str, Vec<&Standing>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.from == "mesh" || consumer.is_none_or(|asked| asked == row.consumer)) {
        by_name.entry(&row.name).or_default().push(row);
    }
    if names.is_empty() {
        let one = |(name, rows): (&&str, &Vec<&'r Standing>)| {
            single(name, rows).map_err(|why| skipped.push(why.message)).ok()
        };
        return Ok(by_name.iter().filter_map(one).collect());
    }
    let named = names.iter().map(|name| match by_name.get(name.as_str()) {
        Some(rows) => single(name, rows),
        None => {
            Err(Failure::not_found(format!("service {name} is not known here; `stado service list` lists what is")))
        }
    });
    named.collect()
}

fn single<'r>(name: &str, rows: &[&'r Standing]) -> Result<&'r Standing, Failure> {
    let mesh = rows.iter().find(|row| row.from == "mesh");
    let row = match (mesh, rows) {
        (Some(row), _) | (None, [row]) => *row,
        _ => {
            let consumers: Vec<&str> = rows.iter().map(|row| row.consumer.as_str()).collect();
            let all = consumers.join(", ");
            return Err(Failure::usage(format!("{name} has an adapter for each of {all}: choose one with --consumer")));
        }
    };
    if row.address.is_empty() {
        let why = if row.reason.is_empty() { "no address" } else { &row.reason };
        return Err(Failure::here(format!("service {name} has no address now: {why}")).until_it_ends());
    }
    Ok(row)
}

/// Two services that would have the same variables are refused, rather than one of them told.
fn variables(rows: &[&Standing], host: Option<&str>) -> Result<Vec<(String, String)>, Failure> {
    let mut owners: BTreeMap<String, &str> = BTreeMap::new();
    for row in rows {
        if let Some(other) = owners.insert(variables::prefix(&row.name), &row.name)
            && other != row.name
        {
            let sentence = format!("{other} and {} have the same variables: name one of them", row.name);
            return Err(Failure::usage(sentence));
        }
    }
    Ok(rows.iter().flat_map(|row| variables::all(&row.name, &row.address, host)).collect())
}

fn render(variables: &[(String, String)], format: EnvFormat) -> String {
    let line = |(name, value): &(String, String)| match format {
        EnvFormat::Shell => format!("export {name}={}\n", quoted(value)),
        EnvFormat::Fish => format!("set -gx {name} {}\n", quoted(value)),
        EnvFormat::Dotenv => format!("{name}={value}\n"),
        EnvFormat::Compose => format!("  {name}: {value:?}\n"),
        EnvFormat::Json => String::new(),
    };
    let lines: String = variables.iter().map(line).collect();
    match format {
        EnvFormat::Compose if lines.is_empty() => "environment: {}\n".to_owned(),
        EnvFormat::Compose => format!("environment:\n{lines}"),
        EnvFormat::Json => {
            let object = variables.iter().map(|(name, value)| (name.clone(), value.clone().into()));
            format!("{:#}\n", serde_json::Value::Object(object.collect()))
        }
        EnvFormat::Shell | EnvFormat::Fish | EnvFormat::Dotenv => lines,
    }
}

/// A value as it is when no shell reads anything into it, else in single quotes.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '/' | '-' | '_');
    if value.chars().all(plain) && !value.is_empty() {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, from: &str, consumer: &str, address: &str) -> Standing {
        let [name, from, consumer, address] = [name, from, consumer, address].map(str::to_owned);
        Standing { name, from, consumer, address, ..Standing::default() }
    }

    fn told(rows: &[Standing], names: &[&str], consumer: Option<&str>, format: EnvFormat) -> Result<String, Failure> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let chosen = choose(rows, &names, consumer, &mut Vec::new())?;
        Ok(render(&variables(&chosen, None)?, format))
    }

    #[test]
    fn every_format_says_the_same() {
        let rows = [row("db", "mesh", "", "127.0.0.1:15000")];
        let told = |format| told(&rows, &["db"], None, format).unwrap();
        assert_eq!(
            told(EnvFormat::Shell),
            "export DB_ADDR=127.0.0.1:15000\nexport DB_HOST=127.0.0.1\nexport DB_PORT=15000\n"
        );
        assert!(told(EnvFormat::Fish).starts_with("set -gx DB_ADDR 127.0.0.1:15000\n"));
        assert!(told(EnvFormat::Dotenv).starts_with("DB_ADDR=127.0.0.1:15000\n"));
        assert!(told(EnvFormat::Compose).starts_with("environment:\n  DB_ADDR: \"127.0.0.1:15000\"\n"));
        let json: serde_json::Value = serde_json::from_str(&told(EnvFormat::Json)).unwrap();
        assert_eq!(json["DB_PORT"], "15000");
    }

    #[test]
    fn a_service_of_the_mesh_wins_and_adapters_are_chosen_by_consumer() {
        let rows = [
            row("db", "mesh", "", "127.0.0.1:1"),
            row("db", "fleet", "shop", "127.0.0.1:2"),
            row("orders", "fleet", "shop", "127.0.0.1:3"),
            row("orders", "fleet", "billing", "127.0.0.1:4"),
        ];
        let dotenv = |names: &[&str], consumer| told(&rows, names, consumer, EnvFormat::Dotenv);
        assert!(dotenv(&["db"], None).unwrap().starts_with("DB_ADDR=127.0.0.1:1\n"));
        let error = dotenv(&["orders"], None).unwrap_err().message;
        assert_eq!(error, "orders has an adapter for each of shop, billing: choose one with --consumer");
        assert!(dotenv(&["orders"], Some("billing")).unwrap().starts_with("ORDERS_ADDR=127.0.0.1:4\n"));
        assert!(!dotenv(&[], None).unwrap().contains("ORDERS"), "what is not clear is skipped when all are told");
        assert!(dotenv(&["nothing"], None).is_err());
    }

    #[test]
    fn two_services_never_share_a_variable() {
        let rows = [row("a.b", "mesh", "", "127.0.0.1:1"), row("a-b", "mesh", "", "127.0.0.1:2")];
        let error = told(&rows, &[], None, EnvFormat::Shell).unwrap_err().message;
        assert!(error.contains("have the same variables"), "{error}");
    }

    #[test]
    fn a_value_is_nothing_but_a_value() {
        assert_eq!(quoted("http://*.x:1"), "'http://*.x:1'");
        assert_eq!(quoted("a'b"), "'a'\\''b'");
    }
}
