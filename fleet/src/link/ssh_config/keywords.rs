//! What becomes of each keyword.

/// Honoured: they decide the [`super::Route`].
pub(super) const HONOURED: &[&str] = &[
    "hostname",
    "port",
    "user",
    "identityfile",
    "identitiesonly",
    "identityagent",
    "userknownhostsfile",
    "globalknownhostsfile",
    "stricthostkeychecking",
    "hostkeyalias",
    "proxyjump",
    "connecttimeout",
    "ignoreunknown",
    "proxycommand",
];

/// They say nothing about which host is reached, as whom, by which way and with which trust: comfort of a terminal, sharing of
/// connections, forwardings of an interactive session, timers that Stado keeps itself, methods that ask a person.
const QUIET: &[&str] = &[
    "addkeystoagent",
    "batchmode",
    "challengeresponseauthentication",
    "channeltimeout",
    "checkhostip",
    "clearallforwardings",
    "compression",
    "compressionlevel",
    "connectionattempts",
    "controlmaster",
    "controlpath",
    "controlpersist",
    "dynamicforward",
    "enableescapecommandline",
    "enablesshkeysign",
    "escapechar",
    "exitonforwardfailure",
    "fingerprinthash",
    "forkafterauthentication",
    "forwardagent",
    "forwardx11",
    "forwardx11timeout",
    "forwardx11trusted",
    "gatewayports",
    "gssapiauthentication",
    "gssapidelegatecredentials",
    "hashknownhosts",
    "hostbasedauthentication",
    "ipqos",
    "kbdinteractiveauthentication",
    "kbdinteractivedevices",
    "localcommand",
    "localforward",
    "loglevel",
    "logverbose",
    "numberofpasswordprompts",
    "obscurekeystroketiming",
    "passwordauthentication",
    "permitlocalcommand",
    "permitremoteopen",
    "preferredauthentications",
    "remoteforward",
    "requesttty",
    "sendenv",
    "serveralivecountmax",
    "serveraliveinterval",
    "stdinnull",
    "streamlocalbindmask",
    "streamlocalbindunlink",
    "syslogfacility",
    "tcpkeepalive",
    "updatehostkeys",
    "usekeychain",
    "visualhostkey",
    "xauthlocation",
];

/// Known to ssh, and honoured in one value only, which is what happens anyway.
const ONLY: &[(&str, &[&str])] = &[
    ("addressfamily", &["any"]),
    ("canonicaldomains", &["none"]),
    ("canonicalizehostname", &["no"]),
    ("hostkeyalgorithms", &[]),
    ("knownhostscommand", &["none"]),
    ("nohostauthenticationforlocalhost", &["no"]),
    ("pubkeyauthentication", &["yes", "unbound", "host-bound"]),
    ("remotecommand", &["none"]),
    ("sessiontype", &["default"]),
    ("tunnel", &["no"]),
    ("verifyhostkeydns", &["no"]),
    ("revokedhostkeys", &["none"]),
];

/// Known to ssh, and refused whatever they say.
const REFUSED: &[&str] = &[
    "bindaddress",
    "bindinterface",
    "canonicalizefallbacklocal",
    "canonicalizemaxdots",
    "canonicalizepermittedcnames",
    "casignaturealgorithms",
    "certificatefile",
    "ciphers",
    "kexalgorithms",
    "macs",
    "pkcs11provider",
    "proxyusefdpass",
    "pubkeyacceptedalgorithms",
    "pubkeyacceptedkeytypes",
    "rekeylimit",
    "requiredrsasize",
    "securitykeyprovider",
    "setenv",
    "tag",
];

/// Whether ssh knows a keyword (in lower case): what it does not know may be ignored where `IgnoreUnknown` says so.
pub(super) fn is_known(keyword: &str) -> bool {
    HONOURED.contains(&keyword)
        || QUIET.contains(&keyword)
        || REFUSED.contains(&keyword)
        || ONLY.iter().any(|(name, _)| *name == keyword)
}

/// Why a keyword that is not [`HONOURED`] cannot be passed over; `None` when it can.
pub(super) fn objection(keyword: &str, words: &[String]) -> Option<String> {
    if QUIET.contains(&keyword) {
        return None;
    }
    if let Some((_, values)) = ONLY.iter().find(|(name, _)| *name == keyword) {
        let said = words.join(" ").to_ascii_lowercase();
        if values.contains(&said.as_str()) {
            return None;
        }
        let only = values.join("` or `");
        let hint = if only.is_empty() { String::new() } else { format!("; `{only}` is what it does") };
        return Some(format!("Stado's own SSH does not honour that{hint}"));
    }
    let why = if is_known(keyword) { "Stado's own SSH does not honour that" } else { "ssh knows no such keyword" };
    Some(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_keyword_has_two_fates_and_all_are_in_lower_case() {
        let all = HONOURED.iter().chain(QUIET).chain(REFUSED).copied().chain(ONLY.iter().map(|(name, _)| *name));
        let mut seen = std::collections::BTreeSet::new();
        for keyword in all {
            assert!(keyword.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{keyword}");
            assert!(seen.insert(keyword), "{keyword} twice");
        }
    }

    #[test]
    fn what_changes_trust_or_way_is_objected_to_and_comfort_is_not() {
        let says = |keyword: &str, value: &str| objection(keyword, &[value.to_owned()]).is_some();
        assert!(says("ciphers", "aes256-ctr") && says("bindaddress", "10.0.0.1") && says("surprise", "1"));
        assert!(says("addressfamily", "inet6") && !says("addressfamily", "any"));
        assert!(says("pubkeyauthentication", "no") && !says("pubkeyauthentication", "YES"));
        assert!(!says("serveraliveinterval", "60") && !says("forwardagent", "yes"));
    }
}
