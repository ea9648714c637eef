//! What was heard so far, and the picture of it. Pure.
use super::feed::News;
use super::meter::Meter;
use super::picture::{Picture, picture};
use crate::cmd::status::{Fleet, Seen, conclude};
use jiff::Timestamp;
use stado_fleet::wire::ConnectionList;

#[derive(Debug, Default)]
pub(super) struct Model {
    daemon: Option<Seen>,
    fleet: Option<Fleet>,
    connections: Option<ConnectionList>,
    meter: Meter,
    picture: Picture,
}

impl Model {
    pub(super) fn picture(&self) -> &Picture {
        &self.picture
    }

    /// Of the service that was asked about last.
    pub(super) fn connections(&self) -> Option<&ConnectionList> {
        self.connections.as_ref()
    }

    /// Takes what was heard.
    pub(super) fn hear(&mut self, news: News, now: Timestamp) {
        match news {
            News::Daemon(seen) => self.hear_daemon(*seen),
            News::Fleet(fleet) => self.fleet = Some(fleet),
            News::Connections(list) => return self.connections = Some(*list),
        }
        // The fleet's side says nothing of a daemon that was not heard yet.
        if let Some(daemon) = &self.daemon {
            let fleet = self.fleet.clone().unwrap_or(Fleet::None);
            self.picture = picture(conclude(Seen { fleet, ..daemon.clone() }, now), &self.meter);
        }
    }

    /// What a daemon served that does not answer now is still what people look for.
    fn hear_daemon(&mut self, mut seen: Seen) {
        match &seen.health {
            Ok(_) => self.meter.read(&seen.overview),
            Err(_) => {
                self.meter.forget();
                if let Some(last) = self.daemon.take() {
                    seen.overview = last.overview;
                }
            }
        }
        self.daemon = Some(seen);
    }
}
