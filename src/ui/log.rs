//! Log lines: fleet lines bare, mesh lines `key=value`, everything else `key=value` with its origin; JSON on request.
use crate::args::{LogArgs, LogFormat, LogLevel, LogRotate};
use crate::exit::Failure;
use std::fmt;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_appender::rolling::Rotation;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

const FLEET: &str = "stado::fleet";
const MESH: &str = "stado::mesh";
/// Old files that a log with a file name keeps.
const KEPT: u16 = 7;

/// Starts the process's log. The guard, when there is one, has to live as long as the process.
pub fn start(
    args: &LogArgs,
    default: LogLevel,
) -> Result<Option<tracing_appender::non_blocking::WorkerGuard>, Failure> {
    let format = Lines { json: args.log_format == Some(LogFormat::Json) };
    let builder =
        tracing_subscriber::fmt().with_env_filter(filter(args.log_level.unwrap_or(default))).event_format(format);
    let Some(path) = &args.log_file else {
        let _ = builder.with_writer(std::io::stderr).try_init();
        return Ok(None);
    };
    let cannot =
        |why: &dyn fmt::Display| Failure::config(format!("cannot write the log file {}: {why}", path.display()));
    let name = path.file_name().ok_or_else(|| cannot(&"it names no file"))?.to_string_lossy().into_owned();
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let rotation = match args.log_rotate.unwrap_or(LogRotate::Daily) {
        LogRotate::Never => Rotation::NEVER,
        LogRotate::Hourly => Rotation::HOURLY,
        LogRotate::Daily => Rotation::DAILY,
    };
    let mut files = tracing_appender::rolling::Builder::new().filename_prefix(name).rotation(rotation.clone());
    if rotation != Rotation::NEVER {
        files = files.max_log_files(args.log_keep.unwrap_or(KEPT).into());
    }
    let appender = files.build(parent.unwrap_or_else(|| std::path::Path::new("."))).map_err(|e| cannot(&e))?;
    let (writer, guard) = tracing_appender::non_blocking(appender);
    let _ = builder.with_writer(writer).try_init();
    Ok(Some(guard))
}

/// Our own lines at the level, libraries' warnings only.
fn filter(level: LogLevel) -> EnvFilter {
    let word = match level {
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        LogLevel::Info => "info",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    };
    EnvFilter::new(format!("error,stado={word},stado_fleet={word},stado_resolver={word}"))
}

struct Lines {
    json: bool,
}

impl<S, N> FormatEvent<S, N> for Lines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut facts = Facts::default();
        event.record(&mut facts);
        let meta = event.metadata();
        let time = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ");
        let line = if self.json {
            json(&time.to_string(), *meta.level(), meta.target(), &facts)
        } else {
            text(&time.to_string(), *meta.level(), meta.target(), &facts)
        };
        writeln!(writer, "{line}")
    }
}

/// The message and the fields of one event, in order.
#[derive(Default)]
struct Facts {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Visit for Facts {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        match field.name() {
            "message" => self.message = text,
            name => self.fields.push((name, text)),
        }
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => self.fields.push((name, value.to_owned())),
        }
    }
}

fn text(time: &str, level: Level, target: &str, facts: &Facts) -> String {
    if target == FLEET {
        return one_line(&facts.message);
    }
    let mut line = format!("time={time} level={level} msg={}", quoted(&facts.message));
    for (name, value) in &facts.fields {
        line.push_str(&format!(" {name}={}", quoted(value)));
    }
    if target != MESH {
        line.push_str(&format!(" from={}", quoted(target)));
    }
    line
}

fn json(time: &str, level: Level, target: &str, facts: &Facts) -> String {
    let mut object = serde_json::Map::new();
    let mut put = |key: &str, value: &str| object.insert(key.to_owned(), value.into());
    put("time", time);
    put("level", level.as_str());
    put("msg", &facts.message);
    put("target", target);
    for (name, value) in &facts.fields {
        put(name, value);
    }
    serde_json::Value::Object(object).to_string()
}

/// A value as it is when it is one plain word, else in quotes.
fn quoted(value: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '=' | '\\');
    if !value.is_empty() && value.chars().all(plain) { value.to_owned() } else { format!("{value:?}") }
}

/// A log line is one line, whatever a remote command wrote.
fn one_line(text: &str) -> String {
    let plain = |c: char| if c == '\n' || c == '\r' { ' ' } else { c };
    let text: String = text.trim_end().chars().map(plain).collect();
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(message: &str, fields: &[(&'static str, &str)]) -> Facts {
        Facts { message: message.into(), fields: fields.iter().map(|(n, v)| (*n, (*v).to_owned())).collect() }
    }

    #[test]
    fn mesh_lines_are_key_value() {
        let facts = facts("frontend_reused", &[("service", "test.echo"), ("frontend", "127.0.0.1:25005")]);
        assert_eq!(
            text("T", Level::INFO, MESH, &facts),
            "time=T level=INFO msg=frontend_reused service=test.echo frontend=127.0.0.1:25005"
        );
    }

    #[test]
    fn fleet_lines_are_bare_and_one_line() {
        let facts = facts("stado resolver loaded directory generation 7\nmore", &[]);
        assert_eq!(text("T", Level::INFO, FLEET, &facts), "stado resolver loaded directory generation 7 more");
    }

    #[test]
    fn values_with_spaces_are_quoted_and_other_lines_name_their_origin() {
        let facts = facts("api_error", &[("error", "no \"way\"")]);
        assert_eq!(
            text("T", Level::WARN, "stado_fleet::x", &facts),
            "time=T level=WARN msg=api_error error=\"no \\\"way\\\"\" from=stado_fleet::x"
        );
    }

    #[test]
    fn json_lines_are_objects() {
        let line = json("T", Level::INFO, MESH, &facts("listening", &[("socket", "/s")]));
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&value["msg"], &value["socket"], &value["level"]),
            (&"listening".into(), &"/s".into(), &"INFO".into())
        );
    }
}
