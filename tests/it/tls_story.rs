//! The authority of one's own, judged by those who have to believe it: OpenSSL, NSS and Java.
use crate::support::home::Home;
use crate::support::process::{Run, run};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A home with an authority.
fn home() -> Home {
    let home = Home::new();
    home.stado(&["tls", "init"]).ok();
    home
}

fn tool(home: &Home, program: &str, args: &[&str]) -> Run {
    run(&mut home.command(crate::support::program(program).unwrap(), args))
}

const CA: &str = ".config/devmesh/tls/ca.pem";
const KEY: &str = ".config/devmesh/tls/ca-key.pem";

#[test]
fn an_authority_is_made_once_and_its_key_is_its_owners_alone() {
    let home = Home::new();
    let none = home.stado(&["tls", "export"]).exits(1);
    assert!(
        none.stderr.contains("there is no authority in") && none.stderr.contains("stado tls init"),
        "{}",
        none.stderr
    );
    let made = home.stado(&["tls", "init", "--json"]).ok().json();
    assert_eq!(
        (&made["state"], &made["domains"]),
        (&"made".into(), &serde_json::json!(["localhost", "test"])),
        "{made}"
    );
    let mode = |file: &str| std::fs::metadata(home.file(file)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(KEY), mode(".config/devmesh/tls")), (0o600, 0o700));
    let again = home.stado(&["tls", "init", "--json"]).ok().json();
    assert_eq!((&again["state"], &again["fingerprint"]), (&"kept".into(), &made["fingerprint"]), "{again}");
    assert_eq!(home.stado(&["tls", "export"]).ok().stdout, home.read(CA));
    let renewed = home.stado(&["tls", "init", "--renew", "--json"]).ok().json();
    assert_ne!(renewed["fingerprint"], made["fingerprint"]);
    // The daemon's own state file decides where it is.
    let elsewhere = home.file("elsewhere/state.json").display().to_string();
    home.stado(&["tls", "init", "--state", &elsewhere]).ok();
    assert!(home.file("elsewhere/tls/ca.pem").is_file());
}

#[test]
fn openssl_believes_it_for_local_names_and_for_no_others() {
    needs!("openssl");
    let home = home();
    home.stado(&["tls", "export", "A.b.test", "--output", "."]).ok();
    let verify = |file: &str, host: &str| {
        let args = ["verify", "-CAfile", CA, "-purpose", "sslserver", "-x509_strict", "-verify_hostname", host, file];
        tool(&home, "openssl", &args)
    };
    verify("a.b.test.pem", "a.b.test").ok();
    assert_ne!(verify("a.b.test.pem", "c.test").code, 0);
    let refused = home.stado(&["tls", "export", "example.com"]).exits(1);
    assert!(refused.stderr.contains("example.com is no local name"), "{}", refused.stderr);
    // Whoever has the key and goes around Stado gains nothing.
    let subject =
        ["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "k", "-out", "r"];
    tool(&home, "openssl", &[&subject[..], &["-subj", "/CN=x", "-addext", "subjectAltName=DNS:example.com"]].concat())
        .ok();
    let sign = [
        "x509",
        "-req",
        "-in",
        "r",
        "-CA",
        CA,
        "-CAkey",
        KEY,
        "-copy_extensions",
        "copy",
        "-days",
        "9",
        "-out",
        "e.pem",
    ];
    tool(&home, "openssl", &sign).ok();
    let stolen = verify("e.pem", "example.com");
    assert!(stolen.code != 0 && stolen.stderr.contains("permitted subtree violation"), "{}", stolen.stderr);
}

/// A system of Debian's kind below the home, with what `update-ca-certificates` expects.
fn debian(home: &Home) -> PathBuf {
    let root = home.file("root");
    for dir in [
        "usr/local/share/ca-certificates",
        "usr/share/ca-certificates",
        "etc/ssl/certs",
        "etc/ca-certificates/update.d",
    ] {
        std::fs::create_dir_all(root.join(dir)).unwrap();
    }
    // A store is never empty; without any other certificate, Debian's tool would leave the last bundle as it was.
    let another = root.join("usr/share/ca-certificates/another.crt").display().to_string();
    let curve = "ec_paramgen_curve:prime256v1";
    let request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-subj", "/CN=another", "-days", "2"];
    tool(home, "openssl", &[&request[..], &["-keyout", "another.key", "-out", &another]].concat()).ok();
    std::fs::write(root.join("etc/ca-certificates.conf"), "another.crt\n").unwrap();
    root
}

/// The words for each store, in one order.
fn words(run: Run) -> Vec<String> {
    let json = run.json();
    let rows = json["stores"].as_array().unwrap();
    rows.iter().map(|row| format!("{} {}", row["store"].as_str().unwrap(), row["state"].as_str().unwrap())).collect()
}

#[test]
fn the_systems_store_takes_it_and_gives_it_back() {
    needs!("update-ca-certificates", "openssl");
    let home = home();
    let root = debian(&home).display().to_string();
    let trust =
        |more: &[&str]| home.stado(&[&["tls", "trust", "--store", "system", "--root", &root, "--json"], more].concat());
    assert_eq!(words(trust(&[]).ok()), ["system trusted"]);
    assert_eq!(words(trust(&[]).ok()), ["system already trusted"]);
    let bundle = home.read("root/etc/ssl/certs/ca-certificates.crt");
    assert!(bundle.contains(home.read(CA).trim()), "{bundle}");
    home.stado(&["tls", "export", "a.localhost"]).ok();
    let path = format!("{root}/etc/ssl/certs");
    tool(&home, "openssl", &["verify", "-no-CAfile", "-CApath", &path, "a.localhost.pem"]).ok();
    let status = home.stado(&["tls", "status", "--store", "system", "--root", &root, "--json"]).ok().json();
    assert_eq!(status["trusted_by"][0]["state"], "already trusted", "{status}");
    assert_eq!(words(trust(&["--uninstall"]).ok()), ["system removed"]);
    assert_eq!(words(trust(&["--uninstall"]).ok()), ["system not trusted"]);
    assert!(!home.read("root/etc/ssl/certs/ca-certificates.crt").contains(home.read(CA).trim()));
    assert_ne!(tool(&home, "openssl", &["verify", "-no-CAfile", "-CApath", &path, "a.localhost.pem"]).code, 0);
}

#[test]
fn every_nss_database_of_the_home_takes_it_and_gives_it_back() {
    needs!("certutil");
    let home = home();
    let places = [".pki/nssdb", ".mozilla/firefox/abc.default"];
    for place in places {
        std::fs::create_dir_all(home.file(place)).unwrap();
        tool(&home, "certutil", &["-N", "--empty-password", "-d", &format!("sql:{place}")]).ok();
    }
    let trust = |more: &[&str]| home.stado(&[&["tls", "trust", "--store", "nss", "--json"], more].concat());
    assert_eq!(words(trust(&[]).ok()), ["nss trusted", "nss trusted"]);
    assert_eq!(words(trust(&[]).ok()), ["nss already trusted", "nss already trusted"]);
    home.stado(&["tls", "export", "a.localhost"]).ok();
    for place in places {
        let database = format!("sql:{place}");
        let leaf = ["-A", "-d", &database, "-n", "leaf", "-t", ",,", "-i", "a.localhost.pem"];
        tool(&home, "certutil", &leaf).ok();
        tool(&home, "certutil", &["-V", "-u", "V", "-d", &database, "-n", "leaf"]).ok();
    }
    assert_eq!(words(trust(&["--uninstall"]).ok()), ["nss removed", "nss removed"]);
    assert_eq!(words(trust(&["--uninstall"]).ok()), ["nss not trusted", "nss not trusted"]);
    assert_ne!(tool(&home, "certutil", &["-V", "-u", "V", "-d", "sql:.pki/nssdb", "-n", "leaf"]).code, 0);
}

#[test]
fn java_takes_it_and_gives_it_back() {
    needs!("keytool");
    let home = home();
    let pair = ["-genkeypair", "-alias", "other", "-keyalg", "EC", "-dname", "CN=o"];
    let store = ["-keystore", "cacerts", "-storepass", "changeit"];
    tool(&home, "keytool", &[&pair[..], &store].concat()).ok();
    let keystore = home.file("cacerts").display().to_string();
    let trust = |more: &[&str]| {
        home.stado(&[&["tls", "trust", "--store", "java", "--java-keystore", &keystore, "--json"], more].concat())
    };
    assert_eq!(words(trust(&[]).ok()), ["java trusted"]);
    assert_eq!(words(trust(&[]).ok()), ["java already trusted"]);
    let list = || tool(&home, "keytool", &[&["-list"][..], &store].concat()).ok().stdout;
    assert!(list().contains("trustedCertEntry") && list().contains("stado-"), "{}", list());
    assert_eq!(words(trust(&["--uninstall"]).ok()), ["java removed"]);
    assert!(!list().contains("stado-") && list().contains("other"), "{}", list());
}

#[test]
fn what_cannot_be_done_is_said_as_steps() {
    let mut home = home();
    home.write(".mozilla/firefox/x.default/cert9.db", "");
    home.set("PATH", "/nowhere");
    let by_hand = home.stado(&["tls", "trust", "--store", "nss"]).exits(1);
    assert!(
        by_hand.stdout.contains("nss: by hand") && by_hand.stdout.contains("apt-get install libnss3-tools"),
        "{}",
        by_hand.stdout
    );
    let by_hand = home.stado(&["tls", "trust", "--store", "system", "--root", "/nowhere"]).exits(1);
    assert!(by_hand.stdout.contains("add ") && by_hand.stdout.contains(CA), "{}", by_hand.stdout);
    let absent = home.stado(&["tls", "trust", "--store", "java"]).ok();
    assert!(absent.stdout.starts_with("java: absent"), "{}", absent.stdout);
}

#[test]
fn status_names_a_certificate_that_cannot_be_served() {
    let mut home = home();
    let well = home.stado(&["tls", "status", "--store", "java", "--json"]).ok().json();
    assert_eq!(well["certificates"][0]["names"][0], "localhost", "{well}");
    home.set("DEVMESH_HTTP_CERTIFICATES", "~/absent.pem:~/absent-key.pem");
    let one = home.stado(&["tls", "status", "--json"]).exits(1).json();
    assert!(one["certificates"][0]["problem"].as_str().unwrap().ends_with("absent.pem: no such file"), "{one}");
    home.set("DEVMESH_HTTP_CERT_FILE", "~/absent.pem");
    home.set("DEVMESH_HTTP_KEY_FILE", "~/absent-key.pem");
    let all = home.stado(&["tls", "status", "--json"]).exits(1).json();
    assert!(all["refused"].as_str().unwrap().starts_with("load TLS certificate/key: "), "{all}");
}
