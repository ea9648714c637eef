//! `stado top`: what `stado status` tells, as it changes. [`feed`] asks, [`picture`] makes rows of what was heard ([`meter`]
//! their rates), [`view`] is what keys change, [`draw`] puts both on cells with a [`pen`] ([`columns`]; a
//! [`page`] tells a [`story`]). All but the feed and this
//! loop are pure; the terminal is `ui::screen`.
mod browser;
mod columns;
mod draw;
mod feed;
mod meter;
mod model;
mod page;
mod pen;
mod picture;
mod story;
#[cfg(test)]
mod tests;
mod view;

use crate::args::TopArgs;
use crate::cmd::service::api;
use crate::cmd::until_stopped;
use crate::config::Env;
use crate::exit::{Failure, Outcome, Verb};
use crate::ui::screen::{self, Screen};
use draw::Scene;
use feed::Feed;
use jiff::Timestamp;
use model::Model;
use ratatui::crossterm::event::{Event, KeyEventKind};
use std::pin::Pin;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};
use view::{Effect, View};

/// Ages are drawn anew that often, whether anything was heard or not.
const BEAT: Duration = Duration::from_secs(1);

/// Shows it until it is ended.
pub(crate) async fn top(args: TopArgs, env: &Env) -> Verb {
    let colour = screen::fit(env)?;
    let mut feed = Feed::new(api(&args.daemon, env)?, env, Duration::from_secs(args.every));
    let mut screen = Screen::enter()?;
    let mut stopped = std::pin::pin!(ended());
    let (mut view, mut model) = (View::default(), Model::default());
    let mut opening: Option<Pin<Box<dyn Future<Output = String>>>> = None;
    loop {
        let scene = Scene {
            picture: model.picture(),
            connections: model.connections(),
            now: Timestamp::now(),
            silent: feed.silent(),
            colour,
        };
        screen.draw(|buffer| draw::draw(&mut view, &scene, buffer))?;
        feed.follow(view.followed(model.picture()));
        let beat = Instant::now() + BEAT;
        let effect = tokio::select! {
            stopped = &mut stopped => {
                stopped?;
                Effect::Quit
            }
            event = screen.event() => match event {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => view.press(key, model.picture()),
                Some(Event::Resize(..)) => Effect::Redraw,
                Some(_) => Effect::Nothing,
                // Nobody types there any more.
                None => Effect::Quit,
            },
            news = feed.next() => {
                model.hear(news, Timestamp::now());
                Effect::Nothing
            }
            said = said(&mut opening) => {
                (opening, view.note) = (None, Some(said));
                Effect::Nothing
            }
            () = sleep_until(beat) => Effect::Nothing,
        };
        match effect {
            Effect::Quit => return Ok(Outcome::Done),
            Effect::Suspend => screen.suspend()?,
            Effect::Redraw => screen.clear()?,
            Effect::Copy(address) => {
                screen.copy(&address)?;
                view.note = Some(format!("copied {address} into the clipboard of this terminal"));
            }
            Effect::Open(address) => match browser::opener(env) {
                Ok(opener) => opening = Some(Box::pin(browser::open(opener, address))),
                Err(why) => view.note = Some(format!("{address} ({why})")),
            },
            Effect::Nothing => {}
        }
    }
}

/// Pending while no browser is being opened.
async fn said(opening: &mut Option<Pin<Box<dyn Future<Output = String>>>>) -> String {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
}

/// Returns when a signal ends the view; one that says that the terminal is gone does too.
async fn ended() -> Result<(), Failure> {
    let mut hangup =
        signal(SignalKind::hangup()).map_err(|e| Failure::here(format!("cannot listen for signals: {e}")))?;
    tokio::select! {
        stopped = until_stopped() => stopped,
        _ = hangup.recv() => Ok(()),
    }
}
