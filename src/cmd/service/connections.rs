use super::{daemon, known};
use crate::args::ConnectionsArgs;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, Rows};
use stado_fleet::wire::{Connection, ConnectionCounters};

const COLUMNS: [&str; 9] =
    ["client", "consumer", "since", "duration", "bytes_up", "bytes_down", "outcome", "blame", "reason"];

/// `service connections`: who is connected to one service, who was, and what was refused.
pub(crate) async fn connections(args: ConnectionsArgs, env: &Env) -> Verb {
    let api = daemon::api(&args.daemon, env)?;
    let list = known(&api, &args.name, api.connections(&args.name).await).await?;
    if args.json {
        let value = serde_json::to_value(&list).map_err(|e| Failure::here(format!("cannot render the answer: {e}")))?;
        ui::json(&value)?;
        return Ok(Outcome::Done);
    }
    let mut rows = Rows::new(&COLUMNS);
    for connection in list.open.into_iter().chain(list.ended) {
        rows = rows.with(cells(connection));
    }
    ui::print(&ui::render(&rows, &args.output)?)?;
    ui::note(summary(&args.name, &list.counters));
    Ok(Outcome::Done)
}

fn cells(connection: Connection) -> [String; 9] {
    [
        connection.client,
        connection.consumer.unwrap_or_default(),
        connection.since,
        duration(connection.duration_ms),
        connection.bytes_up.to_string(),
        connection.bytes_down.to_string(),
        connection.outcome,
        connection.blame.unwrap_or_default(),
        connection.reason.unwrap_or_default(),
    ]
}

/// `12ms`, `3.4s`, `2m05s`, `1h02m`.
fn duration(ms: u64) -> String {
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}.{}s", ms / 1000, ms % 1000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1000),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

fn summary(name: &str, counters: &ConnectionCounters) -> String {
    let refused = &counters.refused;
    format!(
        "{name}: {} open, {} opened, refused {} (no backend {}, limit {}, unreachable {}, loop {}), no longer allowed {}, {} bytes up, {} bytes down",
        counters.active,
        counters.opened,
        refused.no_backend + refused.limit + refused.unreachable + refused.looped,
        refused.no_backend,
        refused.limit,
        refused.unreachable,
        refused.looped,
        counters.withdrawn,
        counters.bytes_up,
        counters.bytes_down,
    )
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_are_as_long_as_they_need_to_be() {
        let shown = [12, 3450, 125_000, 3_725_000].map(duration);
        assert_eq!(shown, ["12ms", "3.4s", "2m05s", "1h02m"]);
    }
}
