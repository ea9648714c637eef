//! The service directory and its markers, on one host.
use super::samples::Samples;
use crate::support::fleet::Fleet;
use crate::support::tcp::echo;

pub const SHOWN: &[&str] = &[
    "resolver-resolve",
    "resolver-status",
    "route-close",
    "route-list",
    "route-open",
    "service-directory-bind",
    "service-directory-connect",
    "service-directory-consumer-add",
    "service-directory-consumer-remove",
    "service-directory-endpoint",
    "service-directory-profiles",
    "service-directory-publish",
    "service-directory-show",
];

#[test]
fn what_the_verbs_of_the_directory_print_is_what_their_schemas_say() {
    needs!("python3-jsonschema");
    let mut all = Samples::default();
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority", "other"]);
    fleet.service("echo", "authority", "tcp", echo("x").port(), "shop");
    fleet.service("far", "other", "http", 5432, "shop");
    fleet.adapter("other", "echo", "shop");
    fleet.adapter("authority", "far", "shop");
    fleet.push("authority").ok();
    let home = &fleet.host("authority").home;
    all.stado(home, 0, "service directory profiles --json");
    all.stado(home, 0, "service directory show --json");
    for service in ["echo", "far"] {
        all.stado(home, 0, &format!("service directory endpoint {service} --json"));
        all.stado(home, 0, &format!("service directory connect {service} --no-verify --json"));
    }
    all.stado(home, 0, "service directory connect echo --json");
    all.stado(home, 0, "service directory bind echo --json");
    all.stado(home, 0, "resolver resolve echo --consumer shop --json");
    all.stado(home, 0, "service directory consumer add echo till --json");
    all.stado(home, 0, "service directory consumer add echo cron --capability read --target other --json");
    all.stado(home, 0, "service directory consumer remove echo till --json");
    all.stado(home, 0, "service directory consumer remove echo cron --json");

    all.stado(home, 0, "route list --json");
    all.stado(home, 0, "route open echo --local --json");
    all.stado(home, 0, "route list --json");
    all.stado(home, 0, "route close echo --json");
    home.write(".stado/forwards/old.local", "http://127.0.0.1:9\n");
    all.stado(home, 0, "service directory publish --json");
    all.stado(home, 0, "service directory publish --prune --json");

    // Nobody runs here, and another host's routes are not tried from here.
    all.stado(home, 1, "resolver status --json");
    all.stado(home, 1, "resolver status --target other --json");
    all.hold(home, SHOWN);
}
