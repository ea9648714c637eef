//! What this host says of itself when it begins or joins a fleet.
use crate::args::FleetPlace;
use crate::config::{Env, HostConfig};
use crate::exit::Failure;
use stado_fleet::join::Door;
use stado_fleet::name::{SshDestination, TargetName};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where a gate listens unless somebody says otherwise.
const PORT: u16 = 17622;

/// The name of this host: as asked for (`--name`), as `invited`, as configured, else its hostname without its domain. What is
/// configured is never overruled in silence: a resolver that reads `STADO_TARGET` would not find itself in the registry.
pub(super) fn name(
    host: &HostConfig,
    env: &Env,
    asked: Option<&str>,
    invited: Option<&TargetName>,
) -> Result<TargetName, Failure> {
    let parsed = |text: &str| text.parse().map_err(|e| Failure::usage(format!("--name {text:?} {e}")));
    let asked: Option<TargetName> = asked.map(parsed).transpose()?;
    let by_variable = env.text("STADO_TARGET")?.is_some();
    let other = |name: &TargetName| host.target.clone().filter(|own| own != name);
    match (&asked, invited) {
        (Some(asked), _) => match other(asked).filter(|_| by_variable) {
            Some(own) => Err(Failure::refused(format!(
                "STADO_TARGET says that this host is {own}, and --name that it is {asked}: its resolver would go by the first; \
                 unset the variable, or leave --name out"
            ))),
            None => Ok(asked.clone()),
        },
        (None, Some(invited)) => match other(invited) {
            Some(own) if by_variable => Err(Failure::refused(format!(
                "the invitation is for {invited} alone, and STADO_TARGET says that this host is {own}: unset the variable to join \
                 as {invited}, or ask for an invitation for {own} (`stado fleet invite --name {own}`)"
            ))),
            Some(own) => Err(Failure::refused(format!(
                "the invitation is for {invited} alone, and `target` in ~/.stado/config.json says that this host is {own}: join \
                 with --name {invited} to call it so from now on, or ask for an invitation for {own} (`stado fleet invite --name \
                 {own}`)"
            ))),
            None => Ok(invited.clone()),
        },
        (None, None) => match &host.target {
            Some(own) => Ok(own.clone()),
            None => by_hostname(host),
        },
    }
}

fn by_hostname(host: &HostConfig) -> Result<TargetName, Failure> {
    let label = host.hostname.split('.').next().unwrap_or_default().to_lowercase();
    label.parse().map_err(|_| {
        Failure::usage(format!(
            "this host's name {:?} cannot be its name in a fleet: give it one with --name",
            host.hostname
        ))
    })
}

/// Where others reach this host, and how.
pub(super) struct Way {
    pub(super) address: SshDestination,
    pub(super) door: Door,
}

/// The way in that was asked for. `default`: a host that has to have one.
pub(super) fn way(host: &HostConfig, place: &FleetPlace, default: bool) -> Result<Option<Way>, Failure> {
    let address = place.address.as_deref().map(|text| {
        text.parse::<SshDestination>()
            .map_err(|e| Failure::usage(format!("--address {text:?} {e}: write it as [user@]host[:port]")))
    });
    let mut address = match address.transpose()? {
        Some(address) => address,
        None if default || place.gate.is_some() => {
            SshDestination { user: None, host: host.hostname.to_lowercase(), port: None }
        }
        None => return Ok(None),
    };
    if address.user.is_none() && !host.user.is_empty() {
        address.user = Some(host.user.clone());
    }
    if place.sshd {
        let home = host.stado_home.parent().unwrap_or(&host.stado_home);
        let file = place.authorized_keys.clone().or_else(|| host.sshd_keys.clone());
        let file = file.unwrap_or_else(|| home.join(".ssh/authorized_keys"));
        if !file.is_absolute() {
            return Err(Failure::usage(format!("--authorized-keys {} must be an absolute path", file.display())));
        }
        return Ok(Some(Way { address, door: Door::Sshd(file) }));
    }
    let listening = place.gate.or(host.gate_bind);
    let port = address.port.or(listening.map(|bind| bind.port())).filter(|port| *port != 0).unwrap_or(PORT);
    address.port = Some(port);
    let gate = listening.unwrap_or_else(|| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)));
    Ok(Some(Way { address, door: Door::Gate(gate) }))
}

/// The platform, in the registry's words.
pub(super) fn platform() -> &'static str {
    if cfg!(target_os = "macos") { "darwin-arm64" } else { "linux-amd64" }
}

/// This program's own file, absolute.
pub(crate) fn program() -> Result<String, Failure> {
    let path = std::env::current_exe().map_err(|e| Failure::here(format!("this program's file is not known: {e}")))?;
    let text = path.to_str().ok_or_else(|| Failure::here("this program's path is not UTF-8"))?;
    Ok(text.strip_suffix(" (deleted)").unwrap_or(text).to_owned())
}

/// This host's own key.
pub(super) fn key_file(host: &HostConfig) -> PathBuf {
    host.link.identity_files.first().cloned().unwrap_or_else(|| host.stado_home.join("resolver-ssh-key"))
}
