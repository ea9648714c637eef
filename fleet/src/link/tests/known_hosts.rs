//! The verdicts on host keys, with OpenSSH's client as the oracle: every file is shown to both.
use super::*;
use std::path::Path;
use std::process::{Command, Stdio};

/// A verdict in one word.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Said {
    Known,
    Unknown,
    Changed,
    Revoked,
}
use Said::{Changed, Known, Revoked, Unknown};

fn ssh_says(sshd: &Sshd) -> Said {
    let output = Command::new("/usr/bin/ssh")
        .args(["-F", "/dev/null", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"])
        .args(["-o", "GlobalKnownHostsFile=/dev/null", "-o", "UpdateHostKeys=no", "-o"])
        .arg(format!("UserKnownHostsFile={} {}", sshd.path("known_hosts").display(), sshd.path("more_hosts").display()))
        .arg("-i")
        .arg(sshd.path("user"))
        .args(["-p", &sshd.port.to_string(), &sshd.address.to_string(), "true"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    match () {
        () if text.contains("REVOKED") => Revoked,
        () if text.contains("IDENTIFICATION HAS CHANGED") => Changed,
        () if text.contains("host key is known") => Unknown,
        () if output.status.success() => Known,
        () => panic!("ssh: {text}"),
    }
}

async fn link_says(sshd: &Sshd) -> (Said, String) {
    let config = LinkConfig { known_hosts: vec![sshd.path("known_hosts"), sshd.path("more_hosts")], ..sshd.config() };
    match Link::new(config).exec(&host(), &sshd.paths(), "true", b"", limits()).await {
        Ok(_) => (Known, String::new()),
        Err(error) => {
            assert_eq!(error.stage, Stage::HostKey, "{error}");
            let text = error.to_string();
            let said = match () {
                () if text.contains("@revoked") => Revoked,
                () if text.contains("has changed") => Changed,
                () => Unknown,
            };
            (said, text)
        }
    }
}

/// Shows each file to both and compares; the wanted verdict is written down too, so that neither can be wrong unseen.
async fn agree(sshd: &Sshd, cases: &[(&str, String, Said)]) {
    for (what, text, wanted) in cases {
        sshd.known_hosts(text);
        let (ours, sentence) = link_says(sshd).await;
        assert_eq!((ssh_says(sshd), ours), (*wanted, *wanted), "(ssh, link), wanted: {what}\n{text}\n{sentence}");
    }
}

fn public(file: &Path) -> String {
    let text = std::fs::read_to_string(file.with_extension("pub")).unwrap();
    text.split(' ').take(2).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn verdicts_on_plain_keys_are_those_of_ssh() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    for (name, kind) in [("other", "ed25519"), ("ecdsa", "ecdsa")] {
        sshd::keygen(kind, &sshd.path(name));
    }
    let (key, other, ecdsa) = (sshd.host_key("ed25519"), public(&sshd.path("other")), public(&sshd.path("ecdsa")));
    let blob = key.split(' ').nth(1).unwrap().to_owned();
    let (at, ip, port) = (sshd.listed(), sshd.address, sshd.port);
    let cases = [
        ("the key", format!("{at} {key}"), Known),
        ("nothing", String::new(), Unknown),
        ("another key", format!("{at} {other}"), Changed),
        ("another key, then the key", format!("{at} {other}\n{at} {key}"), Known),
        ("the key, then another", format!("{at} {key}\n{at} {other}"), Known),
        ("only a key of another type", format!("{at} {ecdsa}"), Changed),
        ("a key of another type and the key", format!("{at} {ecdsa}\n{at} {key}"), Known),
        ("the key, listed without the port", format!("{ip} {key}"), Known),
        ("another key, listed without the port", format!("{ip} {other}"), Unknown),
        ("another key with the port, the key without", format!("{at} {other}\n{ip} {key}"), Changed),
        ("a key of another type with the port, the key without", format!("{at} {ecdsa}\n{ip} {key}"), Changed),
        ("a list of names", format!("a.example,{at},b.example {key}"), Known),
        ("wildcards", format!("[127.*]:* {key}"), Known),
        ("single wildcards", format!("{} {key}", at.replace('7', "?")), Known),
        ("wildcards for another port", format!("[127.*]:1 {key}"), Unknown),
        ("a negation", format!("[127.*]:*,!{at} {key}"), Unknown),
        ("only a negation", format!("!elsewhere {key}"), Unknown),
        ("tabs and blanks", format!(" \t{at}\t{}\t{blob}  a comment", "ssh-ed25519"), Known),
        ("comments and blank lines", format!("# one\n\n  # two\n{at} {key}"), Known),
        ("a bad line of the host, then the key", format!("{at} ssh-ed25519 AAAA\n{at} {key}"), Known),
        ("a line with only the host", format!("{at}\n{at} {key}"), Known),
        ("a key of another type than it says", format!("{at} ssh-rsa {blob}"), Unknown),
        ("an unknown marker", format!("@strange {at} {other}\n{at} {key}"), Known),
        ("the key revoked", format!("{at} {key}\n@revoked {at} {key}"), Revoked),
        ("the key revoked everywhere", format!("@revoked * {key}\n{at} {key}"), Revoked),
        ("the key revoked for another host", format!("@revoked elsewhere {key}\n{at} {key}"), Known),
        ("another key revoked", format!("@revoked * {other}\n{at} {key}"), Known),
        ("the key only as an authority", format!("@cert-authority {at} {key}"), Unknown),
        ("the key revoked without the port", format!("{ip} {key}\n@revoked {ip} {key}"), Revoked),
        ("the port outside the brackets' form", format!("{ip}:{port} {key}"), Unknown),
    ];
    agree(&sshd, &cases).await;
}

#[tokio::test]
async fn verdicts_on_hashed_names_and_several_files_are_those_of_ssh() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    sshd::keygen("ed25519", &sshd.path("other"));
    let (key, other, at) = (sshd.host_key("ed25519"), public(&sshd.path("other")), sshd.listed());
    let hash = |text: String| {
        let file = sshd.path("hashed");
        std::fs::write(&file, text + "\n").unwrap();
        sshd::run("ssh-keygen", &["-q", "-H", "-f", file.to_str().unwrap()]);
        std::fs::read_to_string(file).unwrap()
    };
    let hashed = hash(format!("elsewhere {other}\n{at} {key}"));
    assert!(hashed.starts_with("|1|") && !hashed.contains(&at));
    let wrong = hash(format!("{at} {other}"));
    let cases = [
        ("hashed", hashed.clone(), Known),
        ("hashed, another key", wrong.clone(), Changed),
        ("hashed, both keys", format!("{wrong}{hashed}"), Known),
        ("a malformed hash, then the key", format!("|1|x {other}\n|9|YQ==|YQ== {other}\n{at} {key}"), Known),
    ];
    agree(&sshd, &cases).await;
    std::fs::write(sshd.path("more_hosts"), format!("{at} {key}\n")).unwrap();
    let cases = [
        ("the key in the second file", String::new(), Known),
        ("another key in the first, the key in the second", format!("{at} {other}"), Known),
        ("revoked in the first, the key in the second", format!("@revoked * {key}"), Revoked),
    ];
    agree(&sshd, &cases).await;
}

/// A server whose host key has a certificate signed by `ca`, made with `arguments` of ssh-keygen.
fn certified(arguments: &[&str]) -> Option<Sshd> {
    let mut sshd = sshd::start(Options::default())?;
    sshd::keygen("ed25519", &sshd.path("ca"));
    let (ca, key) = (sshd.path("ca"), sshd.path("host_ed25519.pub"));
    let mut sign = vec!["-q", "-s", ca.to_str().unwrap(), "-h", "-I", "test host"];
    let address = sshd.address.to_string();
    let arguments: Vec<String> = arguments.iter().map(|a| a.replace("ADDRESS", &address)).collect();
    sign.extend(arguments.iter().map(String::as_str));
    sign.push(key.to_str().unwrap());
    sshd::run("ssh-keygen", &sign);
    sshd.reconfigure(&format!("HostCertificate {}", sshd.path("host_ed25519-cert.pub").display()));
    Some(sshd)
}

#[tokio::test]
async fn verdicts_on_host_certificates_are_those_of_ssh() {
    let Some(sshd) = certified(&["-n", "ADDRESS,other.example"]) else { return };
    sshd::keygen("ed25519", &sshd.path("other"));
    let (ca, other, at) = (public(&sshd.path("ca")), public(&sshd.path("other")), sshd.listed());
    let key = sshd.host_key("ed25519");
    let cases = [
        ("the authority", format!("@cert-authority {at} {ca}"), Known),
        ("the authority for all", format!("@cert-authority * {ca}"), Known),
        ("the authority without the port", format!("@cert-authority {} {ca}", sshd.address), Known),
        ("the authority for another host", format!("@cert-authority elsewhere {ca}"), Unknown),
        ("another authority", format!("@cert-authority * {other}"), Unknown),
        ("another authority, and the key", format!("@cert-authority * {other}\n{at} {key}"), Known),
        ("another authority, and another key", format!("@cert-authority * {other}\n{at} {other}"), Changed),
        ("the authority's key as a host key", format!("{at} {ca}"), Changed),
        ("the authority revoked", format!("@cert-authority * {ca}\n@revoked * {ca}"), Revoked),
        ("the host's key revoked", format!("@cert-authority * {ca}\n@revoked * {key}"), Revoked),
    ];
    agree(&sshd, &cases).await;
}

#[tokio::test]
async fn certificates_for_others_and_out_of_date_are_refused_as_by_ssh() {
    for (arguments, wanted, word) in [
        (&["-n", "elsewhere.example"][..], Unknown, "it is for elsewhere.example, not for 127."),
        (&["-n", "ADDRESS", "-V", "20200101:20210101"], Unknown, "it has expired"),
        (&["-n", "ADDRESS", "-V", "20900101:20910101"], Unknown, "it is not yet valid"),
        (&["-n", "ADDRESS", "-V", "20200101:20910101"], Known, ""),
        (&[], Known, ""),
    ] {
        let Some(sshd) = certified(arguments) else { return };
        let cases = [("a certificate", format!("@cert-authority * {}", public(&sshd.path("ca"))), wanted)];
        agree(&sshd, &cases).await;
        let (_, sentence) = link_says(&sshd).await;
        assert!(sentence.contains(word), "{arguments:?}: {sentence}");
    }
}

#[tokio::test]
async fn the_known_type_is_asked_for_first() {
    let Some(sshd) = sshd::start(Options { host_keys: vec!["ed25519", "ecdsa", "rsa"], ..Options::default() }) else {
        return;
    };
    for kind in ["rsa", "ecdsa", "ed25519"] {
        let cases = [("one type of three", format!("{} {}", sshd.listed(), sshd.host_key(kind)), Known)];
        agree(&sshd, &cases).await;
    }
}

#[tokio::test]
async fn a_changed_key_is_told_with_place_and_both_fingerprints() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    sshd::keygen("ed25519", &sshd.path("other"));
    sshd.known_hosts(&format!("# mine\n{} {}", sshd.listed(), public(&sshd.path("other"))));
    let (_, sentence) = link_says(&sshd).await;
    let print = |file: &str| {
        let listed = sshd::run("ssh-keygen", &["-l", "-f", sshd.path(file).to_str().unwrap()]);
        listed.split(' ').nth(1).unwrap().to_owned()
    };
    let old = format!("{}:2 has {} (ssh-ed25519)", sshd.path("known_hosts").display(), print("other.pub"));
    let new = format!("the host offered {} (ssh-ed25519)", print("host_ed25519.pub"));
    assert!(sentence.contains(&old) && sentence.contains(&new) && sentence.contains("ssh-keygen -R"), "{sentence}");
}

#[tokio::test]
async fn an_unreadable_file_is_said() {
    let Some(sshd) = sshd::start(Options::default()) else { return };
    std::fs::remove_file(sshd.path("known_hosts")).unwrap();
    std::fs::create_dir(sshd.path("known_hosts")).unwrap();
    let (said, sentence) = link_says(&sshd).await;
    assert_eq!(said, Unknown);
    assert!(sentence.contains(&format!("{} cannot be read", sshd.path("known_hosts").display())), "{sentence}");
}
