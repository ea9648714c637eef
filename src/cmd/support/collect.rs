//! Gathers. What cannot be had is in the bundle as the sentence why not. Keys, tokens, the vault and known hosts are never read.
use crate::args::{BundleArgs, DaemonArgs, DoctorArgs, OverviewArgs, RowsArgs, Stado};
use crate::cmd::service::api as daemon_api;
use crate::cmd::{doctor, status};
use crate::config::{Env, HostConfig};
use crate::exit::Failure;
use clap::CommandFactory;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Largest file that is taken, and the part of a log that is: its end.
const LARGEST: u64 = 4 << 20;
const LOG_END: u64 = 1 << 20;

/// One file of the bundle.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub(super) name: String,
    pub(super) content: Content,
}

/// What it holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Content {
    Json(Value),
    Text(String),
}

/// What was gathered, and what was left alone.
#[derive(Debug, Default)]
pub(super) struct Collected {
    pub(super) pieces: Vec<Piece>,
    /// Files with secrets that exist here and were not read.
    pub(super) left: Vec<String>,
}

/// Everything.
pub(super) async fn collect(args: &BundleArgs, env: &Env, now: Timestamp) -> Collected {
    let mut pieces = vec![json_piece("about.json", about(now))];
    pieces.push(json_piece("status.json", value(status::report(&overview(args), env).await)));
    pieces.push(json_piece("doctor.json", value(doctor::report(&checks(args), env).await)));
    pieces.extend(daemon(&args.daemon, env).await);
    pieces.extend(files(env).iter().filter_map(|(name, path)| file(name, path)));
    pieces.extend(args.log.iter().enumerate().map(|(n, path)| log(n, path)));
    Collected { pieces, left: left(env) }
}

fn json_piece(name: &str, content: Value) -> Piece {
    Piece { name: name.to_owned(), content: Content::Json(content) }
}

fn overview(args: &BundleArgs) -> OverviewArgs {
    OverviewArgs { json: true, all: true, daemon: args.daemon.clone() }
}

fn checks(args: &BundleArgs) -> DoctorArgs {
    DoctorArgs { rows: RowsArgs { daemon: args.daemon.clone(), ..RowsArgs::default() }, ..DoctorArgs::default() }
}

fn value(told: Result<impl Serialize, Failure>) -> Value {
    let told = told.map_err(|failure| failure.message);
    told.and_then(|told| serde_json::to_value(told).map_err(|e| e.to_string()))
        .unwrap_or_else(|why| json!({"error": why}))
}

/// The program and the machine.
fn about(now: Timestamp) -> Value {
    let command = Stado::command();
    let system = std::process::Command::new("uname").arg("-srm").output();
    let system = system.map(|said| String::from_utf8_lossy(&said.stdout).trim().to_owned()).unwrap_or_default();
    json!({
        "generated_at": now.to_string(),
        "version": command.get_long_version().unwrap_or_default(),
        "system": system,
        "cpus": std::thread::available_parallelism().map_or(0, usize::from),
    })
}

/// What the daemon says of every service, of containers and of certificates.
async fn daemon(args: &DaemonArgs, env: &Env) -> Vec<Piece> {
    let api = match daemon_api(args, env) {
        Ok(api) => api,
        Err(failure) => return vec![json_piece("daemon/error.json", json!({"error": failure.message}))],
    };
    let (overview, refused, certificates) = tokio::join!(api.overview(), api.refused(), api.certificates());
    let answer = |told: Result<Value, crate::client::Error>| told.unwrap_or_else(|e| json!({"error": e.to_string()}));
    let to_value = |value: serde_json::Result<Value>| value.unwrap_or_default();
    vec![
        json_piece("daemon/overview.json", answer(overview.map(|told| to_value(serde_json::to_value(told))))),
        json_piece("daemon/refused.json", answer(refused.map(|told| to_value(serde_json::to_value(told))))),
        json_piece("daemon/certificates.json", answer(certificates.map(|told| to_value(serde_json::to_value(told))))),
    ]
}

/// Files of this account that hold settings or state.
fn files(env: &Env) -> Vec<(String, PathBuf)> {
    let mut all = Vec::new();
    if let Ok(host) = HostConfig::read(env, None) {
        let home = |name: &str| (format!("stado/{name}"), host.stado_home.join(name));
        all.extend(["config.json", "adapter-ports.json", "observations.json"].map(home));
        let published = [&host.published.state, &host.published.waiting, &host.published.answers];
        let named = |path: &PathBuf| Some((format!("stado/{}", path.file_name()?.to_string_lossy()), path.clone()));
        all.extend(published.into_iter().filter_map(named));
        all.extend(listed(&host.stado_home.join("cache"), "stado/cache"));
        all.extend(listed(&host.forwards_dir, "stado/forwards"));
    } else if let Ok(home) = env.home() {
        // Settings that cannot be read are what is asked about.
        all.push(("stado/config.json".to_owned(), home.join(".stado/config.json")));
    }
    if let Ok(dir) = env.config_dir() {
        let mesh = |name: &str| (format!("devmesh/{name}"), dir.join("devmesh").join(name));
        all.extend(["config.json", "state.json", "hostnames.json"].map(mesh));
    }
    all.extend(env.path("DEVMESH_CONFIG").map(|path| ("devmesh/DEVMESH_CONFIG.json".to_owned(), path)));
    all
}

/// The files of a folder, by name; a bounded number.
fn listed(dir: &Path, under: &str) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let mut all: Vec<_> = files.map(|f| (format!("{under}/{}", f.file_name().to_string_lossy()), f.path())).collect();
    all.sort();
    all.truncate(200);
    all
}

/// A file as it is; `None` when there is none.
fn file(name: &str, path: &Path) -> Option<Piece> {
    let content = match read(path, LARGEST, false) {
        Ok(text) => serde_json::from_str(&text).map_or(Content::Text(text), Content::Json),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => Content::Text(format!("not read: {error}\n")),
    };
    Some(Piece { name: name.to_owned(), content })
}

fn log(n: usize, path: &Path) -> Piece {
    let text = read(path, LOG_END, true).unwrap_or_else(|error| format!("{}: not read: {error}\n", path.display()));
    Piece { name: format!("logs/{}.log", n + 1), content: Content::Text(text) }
}

/// At most `most` bytes: of the file's end, or else the file must have no more.
fn read(path: &Path, most: u64, end: bool) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    if length > most && !end {
        return Err(std::io::Error::other(format!("it has {length} bytes, more than {most}")));
    }
    file.seek(SeekFrom::Start(length.saturating_sub(most)))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What has secrets in it and is here.
fn left(env: &Env) -> Vec<String> {
    let Ok(home) = env.home() else { return Vec::new() };
    let known = [".stado/resolver-ssh-key", ".stado/gate", ".stado/vault", ".stado/vault.json", ".stado/tls", ".ssh"];
    known.into_iter().filter(|name| home.join(name).exists()).map(|name| format!("~/{name}")).collect()
}
