//! The whole story without a person: each step is tried and must hold.
use crate::Held;
use crate::fleet::{Fleet, PAGE};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

pub(crate) fn play() -> Held {
    println!("starting the authority and the workstation");
    let mut fleet = Fleet::start()?;
    let (echo, site) = (fleet.address("echo")?, fleet.address("site")?);
    step("a client reaches the echo service at the workstation's address", same(&ask(&echo, "a")?, "first home: a"))?;
    step("and the site", get(&site).and_then(|page| same(&page, PAGE)))?;

    let bystander = Request::open(&site)?;
    fleet.move_echo()?;
    step("the echo service has moved and its address has not", same(&fleet.address("echo")?, &echo))?;
    step("a new connection reaches its new home", ask(&echo, "b").and_then(|a| same(&a, "home number 2: b")))?;
    step("a request that was open all the while is answered", bystander.finish().and_then(|page| same(&page, PAGE)))?;
    step("both hosts hold the new generation", fleet.authority.ready(fleet.generation))?;

    fleet.workstation.kill9()?;
    step("without its daemon the address refuses", refuses(&echo))?;
    fleet.workstation.serve()?;
    fleet.workstation.ready(fleet.generation)?;
    step("after a crash the address is the same", same(&fleet.address("echo")?, &echo))?;
    step("and leads to the service", ask(&echo, "c").and_then(|a| same(&a, "home number 2: c")))?;

    fleet.authority.stop()?;
    fleet.workstation.kill9()?;
    fleet.workstation.serve()?;
    fleet.authority.serve()?;
    fleet.authority.ready(fleet.generation)?;
    fleet.workstation.ready(fleet.generation)?;
    step("after both have restarted too", ask(&echo, "d").and_then(|a| same(&a, "home number 2: d")))?;
    step("both stop cleanly", fleet.stop())?;
    println!("every step held");
    Ok(())
}

fn step(what: &str, held: Held) -> Held {
    match held {
        Ok(()) => {
            println!("ok    {what}");
            Ok(())
        }
        Err(error) => Err(format!("did not hold: {what}: {error}").into()),
    }
}

fn same(seen: &str, wanted: &str) -> Held {
    if seen == wanted { Ok(()) } else { Err(format!("{seen:?}, not {wanted:?}").into()) }
}

fn connect(address: &str) -> Held<TcpStream> {
    let stream = TcpStream::connect(address).map_err(|e| format!("{address}: {e}"))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    Ok(stream)
}

fn refuses(address: &str) -> Held {
    if TcpStream::connect(address).is_err() { Ok(()) } else { Err("it accepts".into()) }
}

fn ask(address: &str, line: &str) -> Held<String> {
    let mut stream = connect(address)?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer.trim_end().to_owned())
}

fn get(address: &str) -> Held<String> {
    Request::open(address)?.finish()
}

/// A request to the site whose last line is held back.
struct Request(TcpStream);

impl Request {
    fn open(address: &str) -> Held<Self> {
        let mut stream = connect(address)?;
        stream.write_all(format!("GET / HTTP/1.1\r\nHost: {address}\r\n").as_bytes())?;
        Ok(Self(stream))
    }

    /// Sends the last line; the page.
    fn finish(mut self) -> Held<String> {
        self.0.write_all(b"\r\n")?;
        page(BufReader::new(self.0))
    }
}

fn page(mut answer: impl BufRead) -> Held<String> {
    let (mut line, mut length) = (String::new(), 0);
    answer.read_line(&mut line)?;
    same(line.trim_end(), "HTTP/1.1 200 OK")?;
    while line != "\r\n" {
        line.clear();
        answer.read_line(&mut line)?;
        if let Some(value) = line.strip_prefix("Content-Length: ") {
            length = value.trim().parse()?;
        }
    }
    let mut body = String::new();
    answer.take(length).read_to_string(&mut body)?;
    Ok(body)
}
