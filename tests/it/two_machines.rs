//! docs/tutorial-two-machines.md, each block as it stands but for addresses: two homes, the machine's own engine, a cable
//! between the two that is pulled.
use crate::joining_story::Machine;
use crate::support::cable::Cable;
use crate::support::docker::{Engine, LABEL, docker};
use crate::support::home::STADO;
use crate::support::process::{Run, run};
use crate::support::{PATIENCE, wait_for, wait_until};
use rustix::process::Signal;
use std::net::SocketAddr;

const PAGE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/tutorial-two-machines.md"));

fn blocks() -> Vec<&'static str> {
    PAGE.split("\n```sh\n").skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// What a person types on a machine.
fn typed(machine: &Machine, block: &str) -> Run {
    let path = format!("PATH={}:$PATH\n", machine.home.file("bin").display());
    run(&mut machine.home.command("/bin/sh", &["-euc", &(path + block)]))
}

fn with_stado(machine: &Machine) {
    machine.home.program("bin/stado", &format!("#!/bin/sh\nexec {STADO} \"$@\"\n"));
}

#[test]
fn the_tutorial_of_two_machines_does_what_it_says() {
    needs!("docker", "postgres");
    let blocks = blocks();
    let [init, invite, join, ready, database, publish, used, again, out] = blocks[..] else {
        panic!("the page has other blocks now: {blocks:#?}")
    };
    let (engine, mut tower, laptop) = (Engine::take(), Machine::new(), Machine::new());
    tower.home.unset("DEVMESH_DOCKER_ENABLED");
    with_stado(&tower);
    with_stado(&laptop);
    // tower.local is the near end of a cable to tower's gate.
    let gate: SocketAddr = tower.gate(20).parse().unwrap();
    let cable = Cable::new("127.0.7.21:0".parse().unwrap(), gate);
    let init = init.replace("tower.local", &format!("{} --gate {gate}", cable.at()));
    assert!(typed(&tower, &init).ok().stdout.contains("tower is the first host of a new fleet"));
    typed(&tower, invite).ok();
    let line = tower.home.read("invitation");
    laptop.home.write("invitation", &line);
    assert!(typed(&laptop, join).ok().stdout.contains("laptop is in the fleet of tower (2 hosts"));
    for machine in [&tower, &laptop] {
        wait_until("ready", PATIENCE, || typed(machine, ready).code == 0);
    }

    // The image of the rig in place of Docker Hub's; what the tests make is marked.
    let named = |block: &str| {
        assert!(block.ends_with(" postgres") && block.contains("--name orders-db"));
        let block = block
            .strip_suffix("postgres")
            .unwrap()
            .replace("docker run -d", &format!("docker run -d --label {LABEL} --stop-timeout 0"));
        format!("{block}{}", engine.image())
    };
    typed(&tower, &named(database)).ok();
    typed(&tower, publish).ok();
    let select = used.lines().last().unwrap();
    let answers = || typed(&laptop, select).stdout.contains("(1 row)");
    let first = typed(&laptop, used);
    assert!(
        first.code == 0 || wait_for("the database answers", PATIENCE, || answers().then_some(true)),
        "{}",
        first.stderr
    );
    let address = typed(&laptop, "stado service directory connect orders --no-verify").ok().stdout;
    let registry = || tower.home.stado(&["registry", "pull", "--generation-only"]).ok().stdout;
    let before = registry();

    typed(&tower, &named(again)).ok();
    wait_until("the new container answers at the same address", PATIENCE, answers);
    assert_eq!(registry(), before, "nobody wrote the registry for that");

    for machine in [&tower, &laptop] {
        machine.signal(Signal::KILL);
        wait_until("it is gone", PATIENCE, || machine.pid().is_none());
    }
    typed(&tower, &init).ok();
    typed(&laptop, "stado fleet join < /dev/null").ok();
    wait_until("the address answers after both were killed", PATIENCE, answers);
    assert_eq!(typed(&laptop, "stado service directory connect orders --no-verify").ok().stdout, address);

    cable.pull();
    let told = wait_for("the laptop says that tower does not answer", PATIENCE, || {
        let status = typed(&laptop, ready);
        (status.code != 0).then_some(status.stdout)
    });
    assert!(told.contains("the registry authority tower is unreachable"), "{told}");
    let of_tower = || typed(&tower, ready).stdout;
    // It is noticed by signs of life that do not come.
    wait_until("tower says that it hears nothing", 3 * PATIENCE, || {
        of_tower().contains("nothing is heard from laptop since ")
    });
    cable.plug_in();
    wait_until("tower hears from the laptop again", PATIENCE, || !of_tower().contains("nothing is heard from"));
    wait_until("the address answers when the network is back", PATIENCE, answers);
    wait_until("ready again", PATIENCE, || typed(&laptop, ready).code == 0);

    assert!(typed(&laptop, out).ok().stdout.contains("no other host takes its key any more"));
    docker(&["rm", "-f", "-v", "orders-db"]).ok();
}
