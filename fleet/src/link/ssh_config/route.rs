//! From the lines that hold to a route.
use super::Route;
use super::keywords::{self, HONOURED};
use super::read::{Asked, Found, Setting, find, names};
use super::tokens::Tokens;
use crate::link::config::LinkConfig;
use crate::name::SshDestination;
use std::path::PathBuf;
use std::time::Duration;

/// Hosts on one way.
const JUMPS: usize = 8;

/// Resolves a destination with the account's file.
pub(super) fn resolve(destination: &SshDestination, config: &LinkConfig) -> Result<Route, String> {
    let mut route = one(destination, config)?;
    // The first host on the way may have hosts before it.
    while let Some(first) = route.jumps.first().cloned() {
        let before = one(&first, config)?.jumps;
        if before.is_empty() {
            break;
        }
        route.jumps.splice(0..0, before);
        if route.jumps.len() > JUMPS {
            return Err(format!(
                "ProxyJump on the way to {destination} leads over more than {JUMPS} hosts, or in a circle"
            ));
        }
    }
    Ok(route)
}

/// Without what lies before the first jump host.
fn one(destination: &SshDestination, config: &LinkConfig) -> Result<Route, String> {
    let mut route = Route::plain(destination, config);
    let Some(own) = &config.ssh_config else { return Ok(route) };
    let user = route.user.clone();
    let asked = Asked {
        original: &destination.host,
        user: &user,
        user_is_given: destination.user.is_some(),
        local_user: &config.user,
        home: &own.home,
    };
    let found = find(&own.file, &asked)?;
    let objections = |setting: &&Setting| objection(setting, &found).is_some();
    if let Some(setting) = found.all().iter().find(objections) {
        let why = objection(setting, &found).unwrap_or_default();
        return Err(format!(
            "{}; leave it out for {}, or say it for other hosts only",
            setting.says(&why),
            destination.host
        ));
    }
    fill(&mut route, destination, &found, config)?;
    Ok(route)
}

fn objection(setting: &Setting, found: &Found) -> Option<String> {
    let keyword = setting.keyword.to_ascii_lowercase();
    if HONOURED.contains(&keyword.as_str()) {
        return None;
    }
    let ignored = || {
        found.first("ignoreunknown").is_some_and(|ignore| {
            let patterns: Vec<String> =
                ignore.words.iter().flat_map(|word| word.split(',')).map(str::to_owned).collect();
            names(&patterns, &keyword)
        })
    };
    if !keywords::is_known(&keyword) && ignored() {
        return None;
    }
    keywords::objection(&keyword, &setting.words)
}

fn fill(route: &mut Route, destination: &SshDestination, found: &Found, config: &LinkConfig) -> Result<(), String> {
    let Some(own) = &config.ssh_config else { return Ok(()) };
    if let (None, Some(port)) = (destination.port, found.first("port")) {
        let number = port.word()?.parse::<u16>().ok().filter(|port| *port != 0);
        route.port = number.ok_or_else(|| port.says("that is no port"))?;
    }
    if let (None, Some(user)) = (&destination.user, found.first("user")) {
        route.user = user.word()?.to_owned();
    }
    let (host, user, port) = (route.host.clone(), route.user.clone(), route.port);
    let tokens = |host| Tokens {
        original: &destination.host,
        host,
        port,
        user: &user,
        local_user: &config.user,
        home: &own.home,
    };
    if let Some(name) = found.first("hostname") {
        let filled = tokens(&host).fill(name.word()?).map_err(|why| name.says(&why))?;
        // The same that a destination of the registry must be.
        let parsed =
            if filled.contains(':') { format!("[{filled}]") } else { filled.clone() }.parse::<SshDestination>();
        route.host = parsed.map_err(|why| name.says(&why.to_string()))?.host;
    }
    let host = route.host.clone();
    let tokens = tokens(&host);
    identities(route, found, &tokens, config)?;
    known_hosts(route, found, &tokens)?;
    if let Some(seconds) = found.first("connecttimeout").filter(|setting| setting.words != ["none"]) {
        let number = seconds.word()?.parse::<u64>().ok().filter(|seconds| *seconds > 0);
        route.connect = Duration::from_secs(number.ok_or_else(|| seconds.says("that is no number of seconds"))?);
    }
    jumps(route, destination, found)
}

fn identities(route: &mut Route, found: &Found, tokens: &Tokens<'_>, config: &LinkConfig) -> Result<(), String> {
    let mut files = Vec::new();
    for setting in found.each("identityfile") {
        let word = setting.word()?;
        if !word.eq_ignore_ascii_case("none") {
            files.push(tokens.path(word).map_err(|why| setting.says(&why))?);
        }
    }
    route.identities_only = is_yes(found, "identitiesonly")?;
    let any = found.first("identityfile").is_some();
    let others = config.identity_files.iter().filter(|_| !(route.identities_only && any));
    let mut all = files;
    for file in others {
        if !all.contains(file) {
            all.push(file.clone());
        }
    }
    route.identity_files = all;
    if let Some(agent) = found.first("identityagent") {
        route.agent_socket = match agent.word()? {
            "none" => None,
            "SSH_AUTH_SOCK" => config.agent_socket.clone(),
            path => Some(tokens.path(path).map_err(|why| agent.says(&why))?),
        };
    }
    Ok(())
}

fn known_hosts(route: &mut Route, found: &Found, tokens: &Tokens<'_>) -> Result<(), String> {
    let files = |setting: &Setting| -> Result<Vec<PathBuf>, String> {
        let words = setting.words.iter().filter(|word| !word.eq_ignore_ascii_case("none"));
        words.map(|word| tokens.path(word).map_err(|why| setting.says(&why))).collect()
    };
    if let Some(own) = found.first("userknownhostsfile") {
        route.known_hosts = files(own)?;
    }
    if let Some(global) = found.first("globalknownhostsfile") {
        route.known_hosts.extend(files(global)?);
    }
    if let Some(alias) = found.first("hostkeyalias") {
        route.known_as = Some(alias.word()?.to_owned());
    }
    if let Some(strict) = found.first("stricthostkeychecking") {
        route.accept_new = match strict.word()?.to_ascii_lowercase().as_str() {
            "accept-new" => true,
            // Nobody can be asked.
            "yes" | "true" | "ask" => false,
            _ => {
                return Err(
                    strict.says("host keys are always verified here; `yes`, `ask` and `accept-new` are honoured")
                );
            }
        };
        if route.accept_new && route.known_hosts.is_empty() {
            return Err(strict.says("there is no known_hosts file to write a new key to"));
        }
    }
    Ok(())
}

/// Whichever of ProxyJump and ProxyCommand comes first holds.
fn jumps(route: &mut Route, destination: &SshDestination, found: &Found) -> Result<(), String> {
    let Some(way) = found.earlier("proxyjump", "proxycommand") else { return Ok(()) };
    if way.keyword.eq_ignore_ascii_case("proxycommand") {
        let none = way.words.first().is_some_and(|word| word.eq_ignore_ascii_case("none"));
        return if none {
            Ok(())
        } else {
            Err(way.says("Stado's own SSH runs no ProxyCommand; ProxyJump is honoured"))
        };
    }
    let list = way.word()?;
    if list.eq_ignore_ascii_case("none") {
        return Ok(());
    }
    let hosts = list.split(',').map(|hop| match hop.trim() {
        uri if uri.contains("://") => Err(way.says("write a jump host as [user@]host[:port]")),
        hop => hop.parse::<SshDestination>().map_err(|why| way.says(&format!("the jump host {hop:?} {why}"))),
    });
    let hosts = hosts.collect::<Result<Vec<_>, _>>()?;
    // As ssh: a jump host that `Host *` names for all hosts is not reached over itself.
    if hosts.last().is_none_or(|last| !last.host.eq_ignore_ascii_case(&destination.host)) {
        route.jumps = hosts;
    }
    Ok(())
}

fn is_yes(found: &Found, keyword: &str) -> Result<bool, String> {
    match found.first(keyword) {
        None => Ok(false),
        Some(setting) => match setting.word()?.to_ascii_lowercase().as_str() {
            "yes" | "true" => Ok(true),
            "no" | "false" => Ok(false),
            _ => Err(setting.says("it takes yes or no")),
        },
    }
}
