//! etcd over TLS: whose certificate is taken, and a cluster that asks for one of the host's, by the built programs.
use crate::support::home::Home;
use crate::support::process::Process;
use crate::support::{PATIENCE, ports, program, wait_until};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use serde_json::json;
use stado_fleet::fault::Class;
use stado_fleet::store::etcd::{EtcdConfig, EtcdStore};
use stado_fleet::store::{Expected, RegistryStore};

/// Writes an authority `<name>-ca.pem`, and a certificate `<name>.pem` with its key that it signed.
fn issue(home: &Home, name: &str) {
    let mut ca = CertificateParams::default();
    ca.distinguished_name.push(DnType::CommonName, name);
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let ca_key = KeyPair::generate().unwrap();
    home.write(&format!("{name}-ca.pem"), ca.self_signed(&ca_key).unwrap().pem());
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    // etcd's own gateway is a client of the member that it belongs to.
    leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    let signed = leaf.signed_by(&key, &Issuer::from_params(&ca, &ca_key)).unwrap();
    home.write(&format!("{name}.pem"), signed.pem());
    home.write(&format!("{name}-key.pem"), key.serialize_pem());
}

/// A member that speaks TLS, and asks every client for a certificate of the authority `us`.
fn etcd(home: &Home, client: u16, peer: u16) -> Process {
    let (client, peer) = (format!("https://127.0.0.1:{client}"), format!("http://127.0.0.1:{peer}"));
    let cluster = format!("m={peer}");
    let args = [
        ["--name", "m"],
        ["--data-dir", "etcd"],
        ["--listen-client-urls", &client],
        ["--advertise-client-urls", &client],
        ["--listen-peer-urls", &peer],
        ["--initial-advertise-peer-urls", &peer],
        ["--initial-cluster", &cluster],
        ["--cert-file", "us.pem"],
        ["--key-file", "us-key.pem"],
        ["--trusted-ca-file", "us-ca.pem"],
    ];
    let args: Vec<&str> = args.iter().flatten().copied().chain(["--client-cert-auth"]).collect();
    home.start("etcd", program("etcd").unwrap(), &args)
}

#[test]
fn etcd_over_tls_takes_the_hosts_certificate_and_the_host_takes_only_its_own() {
    needs!("etcd");
    let mut home = Home::new();
    home.set("STADO_TARGET", "a");
    ["us", "others"].iter().for_each(|name| issue(&home, name));
    let (client, peer) = (ports::one(), ports::one());
    let mut member = etcd(&home, client.port(), peer.port());
    let store = |ca: &str, cert: Option<&str>| {
        let mut etcd = json!({"ca_file": format!("~/{ca}-ca.pem")});
        if let Some(cert) = cert {
            etcd["cert_file"] = json!(format!("~/{cert}.pem"));
            etcd["key_file"] = json!(format!("~/{cert}-key.pem"));
        }
        let url = format!("etcds://127.0.0.1:{}/prod?timeout=5s", client.port());
        home.write(".stado/config.json", json!({"storage": {"url": url, "etcd": etcd}}).to_string());
    };
    let registry = json!({"schema_version": 2, "coordinators": [], "channels": {}, "targets": [
        {"name": "a", "kind": "local", "release_platform": "linux-amd64", "ssh": "ops@192.0.2.1"}
    ]});
    let file = home.write("registry.json", registry.to_string());
    let push = ["registry", "push", file.to_str().unwrap(), "--json"];
    store("us", Some("us"));
    let mut receipt = None;
    wait_until("the member takes a registry", PATIENCE, || {
        assert!(member.ended().is_none(), "{}", member.log());
        let run = home.stado(&push);
        receipt = (run.code == 0).then(|| run.json());
        receipt.is_some()
    });
    assert_eq!(receipt.unwrap()["location"], "etcd:/prod/registry.json");
    home.stado(&["registry", "set", "--path", "channels.notes", "--value", "over TLS"]).ok();
    assert_eq!(home.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout, "over TLS\n");

    // A member that another authority vouches for, and a host without a certificate, or with a stranger's.
    let at = format!("https://127.0.0.1:{}", client.port());
    let mine = home.file("others.pem");
    for (ca, cert, why) in [
        ("others", Some("us"), format!("TLS with {at} failed: invalid peer certificate: UnknownIssuer")),
        ("us", None, format!("{at} asks for a certificate of this host, and storage.etcd names none")),
        (
            "us",
            Some("others"),
            format!("{at} refused the certificate of this host, storage.etcd.cert_file {}", mine.display()),
        ),
    ] {
        store(ca, cert);
        let refused = home.stado(&["registry", "set", "--path", "channels.notes", "--value", "no"]).exits(1);
        assert!(
            refused.stderr.contains("registry store unreachable (etcd:/prod/registry.json): "),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains(&why), "{ca} {cert:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("retrying will not help"), "{ca} {cert:?}: {}", refused.stderr);
    }
    // A write alone, as a daemon makes it: told as not made, and not as one of which nobody knows.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (url, file) = (format!("etcds://127.0.0.1:{}/prod?timeout=5s", client.port()), |name: &str| home.file(name));
    for certificate in [None, Some((file("others.pem"), file("others-key.pem")))] {
        let store = EtcdStore::new(EtcdConfig::parse(&url, Some(file("us-ca.pem")), certificate).unwrap(), None);
        let refused = runtime.block_on(store.swap(Expected::Absent, b"{}".to_vec())).unwrap_err();
        assert_eq!(refused.class, Class::Auth, "{refused}");
        assert!(
            refused.sentence.contains(" the certificate of this host") || refused.sentence.contains("asks for"),
            "{refused}"
        );
    }
    store("us", Some("us"));
    assert_eq!(home.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout, "over TLS\n");
}
