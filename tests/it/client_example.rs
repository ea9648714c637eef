//! The example of the client library does what its first lines say.
use crate::example_story::example;
use crate::support::home::{DEVMESHD, Home};
use crate::support::ports;
use crate::support::tcp::ask;
use rustix::process::Signal;

#[test]
fn the_example_publishes_itself_survives_its_daemon_and_says_what_happens() {
    let home = Home::new();
    let wished = ports::one();
    let (port, address) = (wished.port().to_string(), format!("127.0.0.1:{}", wished.port()));
    let mut program = home.start("client", example("client"), &["checkout.api", &port]);
    let daemon = home.start("devmeshd", DEVMESHD, &["serve", "--docker-enabled=false", "--lease-ttl", "3s"]);
    program.expect(&format!("checkout.api is at {address}\ncheckout.api is ready\n"));
    assert_eq!(ask(&address, "hello").as_deref(), Some("checkout.api: hello"));
    daemon.kill9();
    program.expect("trying on: devmesh daemon unreachable at ");
    let _daemon = home.start("devmeshd", DEVMESHD, &["serve", "--docker-enabled=false", "--lease-ttl", "3s"]);
    program.expect(&format!("registered at {address}\n"));
    assert_eq!(ask(&address, "again").as_deref(), Some("checkout.api: again"));
    program.signal(Signal::INT);
    assert!(program.wait().success());
    home.devmesh(&["services", "resolve", "checkout.api", "--raw"]).exits(1);
}
