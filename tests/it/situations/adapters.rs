//! Adapters that cannot be bound, or may not: ports, loopback halves, addresses of this daemon's own.
use super::said::Said;
use super::{ALL, Book, Group, HOST, NO_PAGE, Place, Situation, page};
use crate::support::fleet::Fleet;
use crate::support::ports;
use serde_json::json;
use std::net::TcpListener;

const TEST: &str = "what_is_said_of_adapters_that_are_not_served_names_the_adapter_everywhere";

pub const PORTS: Group = Group {
    title: "Addresses of this host",
    shown: Ok(TEST),
    rows: &[
        Situation {
            id: "port-held",
            broken: "Another process holds an adapter's port",
            hop: "adapter",
            sentence: "could not bind 127.0.0.1:…: Address already in use …Something else already holds this resolver port",
            cause: "a process that was started before, or a second declaration of the port elsewhere",
            next: "`lsof` as named finds it; stop it, or give the adapter another port. It is taken as soon as it is free",
            places: NO_PAGE,
        },
        Situation {
            id: "port-half",
            broken: "Another process holds the other loopback half of an adapter's port",
            hop: "adapter",
            sentence: "[::1]:… is held by pid …",
            cause: "it listens on `[::1]` alone; clients that try `localhost` may meet it",
            next: "stop it, or use 127.0.0.1; the half is taken as soon as it is free",
            places: HOST,
        },
        Situation {
            id: "no-port",
            broken: "An adapter without a bind, and no port is free in the range",
            hop: "adapter",
            sentence: "no free frontend port in range …",
            cause: "`tcp_frontend_min`–`tcp_frontend_max` is used up",
            next: "widen the range, or forget names that are not used",
            places: NO_PAGE,
        },
        Situation {
            id: "leads-to-itself",
            broken: "The directory leads an adapter to its own address",
            hop: "adapter",
            sentence: "service leads-to-itself resolves to 127.0.0.1:…, which is this adapter's own bind",
            cause: "the endpoint is the stable port of its clients, not the port of the service",
            next: "declare the address that the service listens on",
            places: NO_PAGE,
        },
        Situation {
            id: "leads-to-another",
            broken: "The directory leads an adapter to another adapter",
            hop: "adapter",
            sentence: "service leads-to-another resolves to 127.0.0.1:…, which is this resolver's own adapter for port-half",
            cause: "the endpoint is an address of this daemon",
            next: "declare the address that the service listens on",
            places: NO_PAGE,
        },
        Situation {
            id: "on-the-store",
            broken: "An adapter on the address of this authority's own store",
            hop: "adapter",
            sentence: "this resolver is declared to serve 127.0.0.1:… for service \"on-the-store\", and the registry it must read first is configured at storage.stado.url = http://127.0.0.1:…",
            cause: "it can neither bind while the store holds the port nor read the registry while it does not",
            next: "move one of the two",
            places: NO_PAGE,
        },
        Situation {
            id: "moving",
            broken: "The service is being moved",
            hop: "adapter",
            sentence: "service \"moving\" is unavailable during placement transaction for \"pair\"",
            cause: "a placement transaction holds its profile",
            next: "wait for its end; `stado placement status` shows where it stands, `recover` ends one that was cut",
            places: ALL,
        },
    ],
};

/// A profile of one service, and a transaction that holds it.
fn moving(fleet: &mut Fleet, service: &str) {
    let unit =
        json!({"name": service, "unit": "x.service", "kind": "systemd", "path": "/etc/systemd/system/x.service"});
    let on = |host: &str| json!({"units": {service: unit}, "probes": [{"service": service, "url": "http://127.0.0.1:1/"}], "host": host});
    fleet.registry["placement_profiles"] = json!([{
        "name": "pair", "services": [service], "stop_order": [service], "start_order": [service],
        "state": [{"path": "state.json", "required": false}], "hosts": {"desk": on("desk"), "far": on("far")}, "routing": []
    }]);
    let entry = fleet.registry["service_directory"]["services"][service].as_object_mut().unwrap();
    entry.remove("managed_service");
    entry.insert("placement_profile".into(), json!("pair"));
    entry.insert("standby".into(), json!({"desk": {"url": "http://127.0.0.1:1"}}));
    let units = fleet.registry["targets"].as_array_mut().unwrap().iter_mut();
    let mut units = units.flat_map(|target| target["services"].as_array_mut().unwrap().iter_mut());
    *units.find(|declared| declared["name"] == service).unwrap() = unit;
    fleet.registry["placement_transactions"] = json!([{"id": "6f2b0c3e-8a3f-4a51-9a7e-1f3c5d7e9b11", "profile": "pair",
        "from_host": "far", "to_host": "desk", "started_at": "2026-08-20T10:00:00Z"}]);
}

#[test]
fn what_is_said_of_adapters_that_are_not_served_names_the_adapter_everywhere() {
    let book = Book::of(&[&PORTS]);
    let mut fleet = Fleet::on_loopback_without_sshd(&["desk"]);
    fleet.stranger("far", "ghost@127.0.7.240:9");
    let (router, only) = (ports::one(), ports::one());
    for id in ["port-held", "port-half", "on-the-store", "moving", "first", "no-port"] {
        fleet.service(id, "far", "http", 9, "shop");
    }
    let held = fleet.adapter("desk", "port-held", "shop");
    let half = fleet.adapter("desk", "port-half", "shop");
    let store = fleet.adapter("desk", "on-the-store", "shop");
    fleet.adapter("desk", "moving", "shop");
    fleet.adapter_without_bind("desk", "first", "shop");
    fleet.adapter_without_bind("desk", "no-port", "shop");
    let own = fleet.reserve();
    fleet.service("leads-to-itself", "desk", "http", own, "shop");
    fleet.adapter_at("desk", "leads-to-itself", "shop", own);
    fleet.service("leads-to-another", "desk", "http", half, "shop");
    fleet.adapter("desk", "leads-to-another", "shop");
    moving(&mut fleet, "moving");
    let _strangers = (TcpListener::bind(("127.0.0.1", held)).unwrap(), TcpListener::bind(("::1", half)).unwrap());
    let home = &mut fleet.host("desk").home;
    home.set("DEVMESH_HTTP_ENABLED", "true");
    home.set("DEVMESH_HTTP_ADDR", format!("127.0.0.1:{}", router.port()));
    home.set("DEVMESH_TCP_FRONTEND_MIN", only.port());
    home.set("DEVMESH_TCP_FRONTEND_MAX", only.port());
    let config = json!({"storage": {"backend": "local", "stado": {"url": format!("http://127.0.0.1:{store}")}}});
    home.write(".stado/config.json", config.to_string());
    fleet.push("desk").ok();
    fleet.host("desk").serve();

    let host = &fleet.hosts[0];
    for row in PORTS.rows {
        book.watch(row.id, |row| {
            let mut said = Said {
                status: Some(host.home.stado(&["resolver", "status"]).stdout),
                json: Some(host.status().1),
                ..Said::default()
            };
            if row.places.contains(&Place::Connect) {
                let run = host.home.stado(&["service", "directory", "connect", row.id]);
                said.connect = Some(if run.code == 0 { "it gave an address".into() } else { run.stdout + &run.stderr });
            }
            if row.places.contains(&Place::Page) {
                said.page = page(router.port(), row.id);
            }
            said
        });
    }
    book.close();
}
