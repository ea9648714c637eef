//! gRPC through the router of the built daemon: see `tests/through_the_router.rs`.
