//! A store on a disk that is full or may not be written: reading goes on, a write is told as not made, and nothing is lost.
use crate::support::disk::Small;
use crate::support::fleet::Fleet;

/// A fleet of one host whose store is on a disk of its own, with a registry in it.
fn on(kib: u32) -> (Fleet, Small) {
    let mut fleet = Fleet::on_loopback_without_sshd(&["authority"]);
    fleet.service("orders", "authority", "tcp", 5432, "shop");
    let home = &mut fleet.hosts[0].home;
    let disk = Small::mount(&home.file("disk"), kib);
    home.set("WC_LOCAL_STORAGE_PATH", home.file("disk/store").display());
    fleet.push("authority").ok();
    (fleet, disk)
}

/// Every read and every write, while writing is impossible for `why`.
fn reads_and_does_not_write(fleet: &Fleet, why: &str, code: i32) {
    let home = &fleet.hosts[0].home;
    let before = home.read("disk/store/registry.json");
    for args in [
        &["registry", "pull"][..],
        &["registry", "history"],
        &["registry", "validate"],
        &["resolver", "snapshot"],
        &["service", "directory", "show"],
    ] {
        home.stado(args).ok();
    }
    for args in [
        &["registry", "set", "--path", "channels.notes", "--value", "x"][..],
        &["registry", "host", "add", "n", "--ssh", "o@n.local", "--release-platform", "linux-amd64"],
        &["service", "directory", "consumer", "add", "orders", "till"],
    ] {
        let run = home.stado(args).exits(code);
        let sentence = "Error: registry store unreachable (local:registry.json): cannot ";
        assert!(run.stderr.contains(sentence) && run.stderr.contains(why), "{args:?}: {}", run.stderr);
        assert_eq!(home.read("disk/store/registry.json"), before, "{args:?}");
    }
}

fn writes_again(fleet: &Fleet) {
    let home = &fleet.hosts[0].home;
    home.stado(&["registry", "set", "--path", "channels.notes", "--value", "again"]).ok();
    assert_eq!(home.stado(&["registry", "pull", "--path", "channels.notes"]).ok().stdout, "again\n");
}

#[test]
fn a_store_on_a_full_disk_reads_on_and_loses_nothing() {
    needs!("tmpfs");
    let (fleet, disk) = on(256);
    let filler = disk.fill();
    reads_and_does_not_write(&fleet, "No space left on device", 69);
    std::fs::remove_file(filler).unwrap();
    writes_again(&fleet);
}

#[test]
fn a_store_on_a_read_only_disk_reads_on_and_loses_nothing() {
    needs!("tmpfs");
    let (fleet, disk) = on(256);
    disk.read_only();
    reads_and_does_not_write(&fleet, "Read-only file system", 1);
    disk.writable();
    writes_again(&fleet);
}
