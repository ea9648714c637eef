//! The system from outside: built binaries, real sockets, real sshd, real PostgreSQL. See `README.md` beside this file.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stderr,
    missing_docs,
    unreachable_pub
)]

#[macro_use]
mod support;

mod bad_input;
mod bridge_story;
mod browser_story;
mod cli_reference;
mod cli_story;
mod client_example;
mod client_story;
mod cut_story;
mod database_story;
mod dependencies;
mod docker_story;
mod doctor_story;
mod documents;
mod etcd_store;
mod etcd_tls;
mod example_story;
mod fleet_story;
mod frozen_stores;
mod full_store;
mod h2_client_story;
mod hand_over;
mod host_story;
mod inventory_story;
mod joining_faults;
mod joining_story;
mod json_schemas;
mod kill_story;
mod languages_story;
mod life_story;
mod lock_story;
mod mesh_kill;
mod mesh_story;
mod metrics_page;
mod neighbours;
mod object_store_story;
mod outage_cells;
mod outage_story;
mod overview_story;
mod package_story;
mod placement_faults;
mod placement_story;
mod published_story;
mod readme;
mod registry_faults;
mod registry_story;
mod relay_cuts;
mod relay_faults;
// The limits of another process are set as only Linux lets it.
#[cfg(target_os = "linux")]
mod relay_limits;
mod relay_scene;
mod relay_services;
mod relay_story;
mod rig;
mod route_story;
mod router_hand_over;
mod router_story;
mod run_story;
mod s3_store;
mod situations;
mod snapshot_story;
mod standby_story;
mod start_story;
mod state_story;
mod storage_story;
mod store_story;
mod supervision_story;
mod tls_story;
mod top_story;
mod tutorial;
mod two_machines;
mod unserved_story;
mod vault_keyring;
mod vault_story;
