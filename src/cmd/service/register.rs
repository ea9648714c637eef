use super::daemon;
use crate::args::RegisterArgs;
use crate::client::{self, Kind, RegistrationOptions, State};
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::{self, Rows};
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

const COLUMNS: [&str; 4] = ["name", "endpoint", "registration_id", "expires_at"];

/// `register`: keeps a manual registration until interrupted, or with `--once` makes it and leaves.
pub(crate) async fn register(args: RegisterArgs, env: &Env) -> Verb {
    let options = options(&args, env)?;
    if args.once { once(&args, options, env).await } else { keep(&args, options).await }
}

fn options(args: &RegisterArgs, env: &Env) -> Result<RegistrationOptions, Failure> {
    let kind = match args.kind.as_str() {
        "" | "tcp" => Kind::Tcp,
        "http" => Kind::Http,
        other => return Err(Failure::usage(format!("kind {other:?} is not supported; use tcp or http"))),
    };
    if !(3..=3600).contains(&args.ttl) {
        return Err(Failure::usage("ttl_seconds must be between 3 and 3600"));
    }
    let options = RegistrationOptions {
        kind,
        app_protocol: Some(args.app_protocol.clone()).filter(|text| !text.is_empty()),
        http_host: Some(args.http_host.clone()).filter(|text| !text.is_empty()),
        preferred_port: u16::try_from(args.preferred_port).ok().filter(|port| *port > 0),
        ttl: Some(Duration::from_secs(args.ttl.unsigned_abs())),
        manual: true,
        socket: Some(daemon::socket(&args.daemon, env)),
        ..RegistrationOptions::new(args.name.clone(), args.backend.clone())
    };
    match options.request() {
        Err(error) if address(&args.backend).is_none() => Err(Failure::usage(format!(
            "{error}: --backend is where the service listens now, host:port on loopback, such as --backend {}",
            corrected(&args.backend).as_deref().unwrap_or("127.0.0.1:3000")
        ))),
        _ => Ok(options),
    }
}

/// The text, when it can be sent as a backend.
fn address(text: &str) -> Option<&str> {
    RegistrationOptions::new("any", text).request().is_ok().then_some(text)
}

/// What was probably meant: a port alone, a URL, an IPv6 address without brackets.
fn corrected(text: &str) -> Option<String> {
    let bare = text.trim().rsplit("://").next()?.split('/').next()?;
    let port = bare.strip_prefix(':').unwrap_or(bare);
    let bracketed = bare.rsplit_once(':').map(|(host, port)| format!("[{host}]:{port}"));
    let tries = [Some(bare.to_owned()), Some(format!("127.0.0.1:{port}")), bracketed];
    tries.into_iter().flatten().find(|text| address(text).is_some())
}

async fn once(args: &RegisterArgs, options: RegistrationOptions, env: &Env) -> Verb {
    let response = daemon::api(&args.daemon, env)?.register(&options.request()?, None).await?;
    let endpoint = response.frontend.endpoint();
    let name = if response.name.is_empty() { args.name.clone() } else { response.name };
    let rows = Rows::new(&COLUMNS).with([name, endpoint, response.registration_id, response.expires_at]);
    ui::print(&ui::render(&rows, &args.output)?)?;
    Ok(Outcome::Done)
}

async fn keep(args: &RegisterArgs, options: RegistrationOptions) -> Verb {
    let cannot = |e: std::io::Error| Failure::here(format!("cannot listen for signals: {e}"));
    let mut interrupt = signal(SignalKind::interrupt()).map_err(cannot)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(cannot)?;
    let handle = client::register(options).await?;
    let info = handle.info();
    let expires = info.expires_at.map(|at| at.to_string()).unwrap_or_default();
    let rows = Rows::new(&COLUMNS).with([info.name, info.endpoint, info.registration_id, expires]);
    ui::print(&ui::render(&rows, &args.output)?)?;
    tell_until_stopped(&handle, &mut interrupt, &mut terminate).await;
    handle.close().await;
    Ok(Outcome::Done)
}

/// Says on standard error when the registration is in trouble and when it is well again, until a signal comes.
pub(super) async fn tell_until_stopped(handle: &client::Handle, interrupt: &mut Signal, terminate: &mut Signal) {
    let mut changes = handle.changes();
    loop {
        tokio::select! {
            _ = interrupt.recv() => return,
            _ = terminate.recv() => return,
            changed = changes.changed() => {
                if changed.is_err() {
                    return;
                }
                let state = changes.borrow_and_update().clone();
                tell(handle, &state);
            }
        }
    }
}

fn tell(handle: &client::Handle, state: &State) {
    match state {
        State::Registered => ui::note(format_args!("registered again at {}", handle.endpoint())),
        State::Retrying { error, since } => ui::note(format_args!("not renewed since {since}, trying on: {error}")),
        State::Conflict { error, since } => ui::note(format_args!("name taken since {since}, trying on: {error}")),
        State::Closed => {}
    }
}

#[cfg(test)]
mod tests {
    use super::corrected;

    #[test]
    fn a_backend_that_is_nearly_one_is_written_as_it_has_to_be() {
        for (given, meant) in [
            ("3000", Some("127.0.0.1:3000")),
            (":3000", Some("127.0.0.1:3000")),
            ("http://localhost:3000/", Some("localhost:3000")),
            ("::1:80", Some("[::1]:80")),
            ("localhost", None),
            ("127.0.0.1:70000", None),
        ] {
            assert_eq!(corrected(given).as_deref(), meant, "{given}");
        }
    }
}
