//! Who comes through the door of the control API: a process that takes over, or one that was taken over and tells of itself.
use super::STEP;
use super::behind::Behind;
use super::parcel::{Ask, Comer};
use super::wire::Wire;
use crate::api::control::{Arrival, Door};
use tokio::sync::mpsc;

/// Processes that wait to take over; the others are told of to nobody and see their connection end.
const WAITING: usize = 4;

/// A process that asks for everything.
pub(in crate::daemon) type Asking = (Wire, Ask);

/// The door, and those who came to take over.
pub(in crate::daemon) fn open(behind: Behind) -> (Door, mpsc::Receiver<Asking>) {
    let (door, mut arrivals) = mpsc::channel::<Arrival>(WAITING);
    let (tell, asks) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        while let Some(arrival) = arrivals.recv().await {
            tokio::spawn(receive(arrival, behind.clone(), tell.clone()));
        }
    });
    (door, asks)
}

async fn receive(arrival: Arrival, behind: Behind, tell: mpsc::Sender<Asking>) {
    if !arrival.early.is_empty() {
        // It spoke before it was asked in: descriptors may be lost already.
        return;
    }
    let mut wire = Wire::new(arrival.stream);
    match wire.receive::<Comer>(STEP).await {
        Ok((Comer::TakeOver(ask), _)) => {
            let _ = tell.send((wire, ask)).await;
        }
        Ok((Comer::Remains(remainder), _)) => behind.follow(wire, remainder),
        _ => {}
    }
}
