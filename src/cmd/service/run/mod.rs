//! `service run NAME -- CMD …`: the program is given a port, registered while something listens there, and unregistered
//! when nothing does. The listener is followed, not the first process: a wrapper may start the real one and end.
mod child;
mod heirs;
mod listening;
mod needs;

use super::daemon;
use crate::args::RunArgs;
use crate::client::{self, Handle, RegistrationOptions};
use crate::config::{Env, parse_duration};
use crate::exit::{Failure, Outcome, Verb};
use crate::ui;
use child::{Child, Ended, Signals};
use stado_resolver::mesh::names;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::time::Instant;

/// How often the listener is looked for.
const LOOK: Duration = Duration::from_millis(250);
/// Time between attempts to register.
const RETRY: Duration = Duration::from_secs(1);
/// Looks without a listener before it counts as gone: a program that reloads itself closes it for a moment.
const MISSES: u32 = 3;

/// A program that does not listen by then is told about.
const SOON: Duration = Duration::from_secs(5);

/// Runs the program to its end and passes its exit code on.
pub(crate) async fn run(args: RunArgs, env: &Env) -> Verb {
    for name in std::iter::once(&args.name).chain(&args.with) {
        // A program that runs under a name that no daemon takes would never be reached.
        names::service_name(name).map_err(|refusal| Failure::usage(refusal.to_string()))?;
    }
    let patience =
        parse_duration(&args.wait).ok_or_else(|| Failure::usage(format!("invalid --wait duration {:?}", args.wait)))?;
    let mut variables = needs::addresses(&daemon::api(&args.daemon, env)?, &args.with, patience).await?;
    let port = listening::free_port().map_err(|e| Failure::here(format!("no free loopback port: {e}")))?;
    variables.push((args.port_env.clone(), port.to_string()));
    let signals = Signals::listen()?;
    heirs::adopt();
    let child = Child::start(&args.command, &variables)?;
    let options = RegistrationOptions {
        app_protocol: Some(args.app_protocol.clone()).filter(|text| !text.is_empty()),
        preferred_port: u16::try_from(args.preferred_port).ok().filter(|port| *port > 0),
        socket: Some(daemon::socket(&args.daemon, env)),
        ..RegistrationOptions::new(args.name.clone(), "")
    };
    let mut follow = Follow {
        options,
        port,
        registered: None,
        listened: false,
        misses: 0,
        variable: args.port_env.clone(),
        started: Instant::now(),
        said_waiting: false,
        retry: None,
    };
    let ended = follow.until_end(child, signals).await;
    if let Some(handle) = follow.registered.take() {
        handle.close().await;
    }
    Ok(Outcome::Child(ended?.code()))
}

/// The registration, following the listener.
struct Follow {
    options: RegistrationOptions,
    port: u16,
    registered: Option<Handle>,
    /// Whether something has listened at all.
    listened: bool,
    misses: u32,
    /// Which variable told it the port.
    variable: String,
    started: Instant,
    said_waiting: bool,
    /// After a registration that failed: what was said, and when it is tried again.
    retry: Option<(String, Instant)>,
}

impl Follow {
    /// Until the program has ended and nothing listens for it any more. What it left behind may still begin to.
    async fn until_end(&mut self, mut child: Child, mut signals: Signals) -> Result<Ended, Failure> {
        let mut ended: Option<Ended> = None;
        let mut look = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                result = child.ended(), if ended.is_none() => ended = Some(result?),
                asked = signals.next() => {
                    match ended {
                        None => child.pass_on(asked),
                        Some(ended) if heirs::living().is_empty() => return Ok(ended),
                        Some(_) => heirs::pass_on(asked),
                    }
                }
                _ = look.tick() => self.look().await,
            }
            if let Some(ended) = ended
                && listening::at(self.port).is_none()
                && (self.listened || heirs::living().is_empty())
            {
                return Ok(ended);
            }
        }
    }

    /// Registers when a listener has come, unregisters when it has gone.
    async fn look(&mut self) {
        let listener = listening::at(self.port);
        self.listened |= listener.is_some();
        match (listener, self.registered.is_some()) {
            (Some(ip), false) => self.register(ip).await,
            (Some(_), true) => self.misses = 0,
            (None, true) => self.missed().await,
            (None, false) => self.waiting(),
        }
    }

    async fn register(&mut self, ip: IpAddr) {
        if self.retry.as_ref().is_some_and(|(_, at)| Instant::now() < *at) {
            return;
        }
        let backend = SocketAddr::new(ip, self.port).to_string();
        match client::register(RegistrationOptions { backend, ..self.options.clone() }).await {
            Ok(handle) => {
                ui::note(format_args!("{} is at {}", self.options.name, handle.endpoint()));
                self.registered = Some(handle);
                self.retry = None;
            }
            Err(error) => self.not_registered(error.to_string()),
        }
        self.misses = 0;
    }

    /// Says each cause once; the program runs on, and so do the attempts.
    fn not_registered(&mut self, cause: String) {
        if self.retry.as_ref().is_none_or(|(said, _)| *said != cause) {
            ui::note(format_args!("{}: not registered, trying on: {cause}", self.options.name));
        }
        self.retry = Some((cause, Instant::now() + RETRY));
    }

    async fn missed(&mut self) {
        self.misses += 1;
        if self.misses < MISSES {
            return;
        }
        if let Some(handle) = self.registered.take() {
            ui::note(format_args!("{}: nothing listens on port {} any more", self.options.name, self.port));
            handle.close().await;
        }
    }

    /// Says once what is waited for.
    fn waiting(&mut self) {
        if self.listened || self.said_waiting || self.started.elapsed() < SOON {
            return;
        }
        self.said_waiting = true;
        ui::note(format_args!(
            "{}: waiting for the program to listen on port {port}, which its variable {variable} names; it is registered as soon \
             as it does",
            self.options.name,
            port = self.port,
            variable = self.variable,
        ));
    }
}
