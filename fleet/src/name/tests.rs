use super::*;
use proptest::prelude::*;

fn ssh(text: &str) -> Result<(Option<String>, String, Option<u16>), String> {
    text.parse::<SshDestination>().map(|d| (d.user, d.host, d.port)).map_err(|e| e.0)
}

#[test]
fn service_names_follow_the_mesh_grammar() {
    for good in ["a", "checkout.postgres", "9-lives.x-1", &"a".repeat(120)] {
        assert!(good.parse::<ServiceName>().is_ok(), "{good}");
    }
    for bad in ["", ".", "a.", ".a", "a..b", "A", "-a", "a_b", "é", "a b", &"a".repeat(121)] {
        assert!(bad.parse::<ServiceName>().is_err(), "{bad}");
    }
}

#[test]
fn identifiers_have_no_empty_edges() {
    for good in ["a", "a-b", "a.b_c", "0", "worker-host"] {
        assert!(is_identifier(good), "{good}");
    }
    for bad in ["", "-a", "a-", ".a", "a.", "_", "A", "a b", "ż"] {
        assert!(!is_identifier(bad), "{bad}");
    }
}

#[test]
fn destinations_are_read_with_user_port_and_brackets() {
    assert_eq!(ssh("ops@host.example:2222"), Ok((Some("ops".into()), "host.example".into(), Some(2222))));
    assert_eq!(ssh("host"), Ok((None, "host".into(), None)));
    assert_eq!(ssh("ops@[2001:db8::1]:22"), Ok((Some("ops".into()), "2001:db8::1".into(), Some(22))));
    assert_eq!(ssh("2001:db8::1"), Ok((None, "2001:db8::1".into(), None)));
    assert_eq!(ssh("corp@ops@host"), Ok((Some("corp@ops".into()), "host".into(), None)));
}

#[test]
fn destinations_without_a_host_are_refused() {
    for bad in ["", "ops@", ":22", "[]:22", "[::1", "[::1]22", "-oProxyCommand=x", "a b", "a/b"] {
        assert_eq!(ssh(bad), Err("must include a host".into()), "{bad}");
    }
    assert_eq!(ssh("host:0"), Err("has the invalid port \"0\"".into()));
    assert_eq!(ssh("host:ssh"), Err("has the invalid port \"ssh\"".into()));
    assert!(ssh("ssh://host").is_err() && ssh("a b@host").is_err());
}

#[test]
fn loopback_addresses_are_loopback() {
    let dial = |text: &str| {
        text.parse::<LoopbackAddr>().map(|a| a.candidates().iter().map(SocketAddr::to_string).collect::<Vec<_>>())
    };
    assert_eq!(dial("127.0.0.1:80"), Ok(vec!["127.0.0.1:80".into()]));
    assert_eq!(dial("127.9.9.9:80"), Ok(vec!["127.9.9.9:80".into()]));
    assert_eq!(dial("[::1]:80"), Ok(vec!["[::1]:80".into()]));
    assert_eq!(dial("LocalHost:80"), Ok(vec!["127.0.0.1:80".into(), "[::1]:80".into()]));
    for bad in [
        "127.0.0.1",
        "127.0.0.1:0",
        "127.0.0.1:65536",
        "10.0.0.1:80",
        "::1:80",
        "[127.0.0.1]:80",
        "db:80",
        ":80",
        "0.0.0.0:80",
    ] {
        assert!(dial(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_consumer_is_any_text_without_control_characters() {
    assert!("Stado Local Agent/1".parse::<ConsumerId>().is_ok());
    assert!("".parse::<ConsumerId>().is_err() && "a\nb".parse::<ConsumerId>().is_err());
}

proptest! {
    #[test]
    fn what_a_destination_prints_reads_back_the_same(
        user in proptest::option::of("[a-zA-Z0-9._-]{1,12}"),
        host in prop_oneof!["[a-z0-9][a-z0-9.-]{0,20}", any::<std::net::Ipv6Addr>().prop_map(|ip| ip.to_string())],
        port in proptest::option::of(1_u16..),
    ) {
        let destination = SshDestination { user, host, port };
        prop_assert_eq!(destination.to_string().parse::<SshDestination>(), Ok(destination));
    }

    #[test]
    fn what_an_address_prints_reads_back_the_same(last in 1_u8.., port in 1_u16.., which in 0..3) {
        let host = match which {
            0 => LoopbackHost::Localhost,
            1 => LoopbackHost::Ip(std::net::Ipv4Addr::new(127, 0, 0, last).into()),
            _ => LoopbackHost::Ip(std::net::Ipv6Addr::LOCALHOST.into()),
        };
        let addr = LoopbackAddr { host, port };
        prop_assert_eq!(addr.to_string().parse::<LoopbackAddr>(), Ok(addr));
    }

    #[test]
    fn no_text_makes_a_name_panic(text in any::<String>()) {
        let _ = text.parse::<ServiceName>();
        let _ = text.parse::<LogicalName>();
        let _ = text.parse::<SshDestination>();
        let _ = text.parse::<LoopbackAddr>();
    }
}
