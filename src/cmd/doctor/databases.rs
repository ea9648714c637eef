//! `databases`: the declarations can be read, and what is placed here as PostgreSQL speaks as PostgreSQL.
use super::report::Check;
use crate::cmd::fleet::Fleet;
use crate::config::{Database, Databases, Engine, Env};
use stado_fleet::authority::Answer;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(super) const ABOUT: (&str, &str) = ("databases", "Databases");
const PATIENCE: Duration = Duration::from_secs(5);
/// The question whether TLS is spoken: every PostgreSQL answers it with one byte before anybody says who they are.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

pub(super) async fn checks(fleet: &Fleet, answer: Option<&Answer>, env: &Env) -> Vec<Check> {
    let databases = match Databases::read(env) {
        Ok(databases) => databases,
        Err(error) => return vec![Check::fail(ABOUT, error.to_string(), "Correct the declaration that it names.")],
    };
    if databases.all.is_empty() {
        return vec![Check::skip(ABOUT, "this host's configuration declares none")];
    }
    let mut wrong = Vec::new();
    let mut here = 0;
    for (database, addr) in
        databases.all.iter().filter_map(|database| Some((database, placed_here(fleet, answer?, database)?)))
    {
        here += 1;
        if let Err(why) = speaks_postgres(addr).await {
            let name = &database.name;
            let detail = format!("{name} is placed here as postgres, and at {addr} {why}");
            wrong.push(Check::fail(
                ABOUT,
                detail,
                format!("Start PostgreSQL there, or correct the endpoint of {name}."),
            ));
        }
    }
    if wrong.is_empty() {
        let all = databases.all.len();
        wrong.push(Check::ok(ABOUT, format!("{all} declared; {here} placed here and answering as PostgreSQL")));
    }
    wrong
}

fn placed_here(fleet: &Fleet, answer: &Answer, database: &Database) -> Option<SocketAddr> {
    let registry = &answer.snapshot.valid.registry;
    let service = registry.directory.as_ref()?.services.get(&database.name)?;
    let me = fleet.me(registry).ok().flatten()?;
    let here = database.engine == Engine::Postgres && service.active_host == me;
    service.endpoints.get(&me).filter(|_| here)?.addr.candidates().first().copied()
}

/// Asks, and says nothing that could log in.
async fn speaks_postgres(addr: SocketAddr) -> Result<(), String> {
    let ask = async {
        let mut stream = TcpStream::connect(addr).await.map_err(|e| format!("nothing answers: {e}"))?;
        stream.write_all(&SSL_REQUEST).await.map_err(|e| format!("what answers takes no request: {e}"))?;
        let mut answer = [0];
        stream.read_exact(&mut answer).await.map_err(|e| format!("what answers closes: {e}"))?;
        match answer {
            [b'S' | b'N'] => Ok(()),
            _ => Err("what answers does not speak PostgreSQL".to_owned()),
        }
    };
    let late = Err(format!("what accepts gave no answer within {}s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, ask).await.unwrap_or(late)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn asked(answer: &'static [u8]) -> Result<(), String> {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 8];
            stream.read_exact(&mut request).await.unwrap();
            assert_eq!(request, SSL_REQUEST);
            stream.write_all(answer).await.unwrap();
        });
        speaks_postgres(addr).await
    }

    #[tokio::test]
    async fn one_byte_tells_postgres_from_anything_else() {
        assert_eq!(asked(b"N").await, Ok(()));
        assert_eq!(asked(b"S").await, Ok(()));
        assert_eq!(asked(b"HTTP/1.1 400").await, Err("what answers does not speak PostgreSQL".to_owned()));
        assert!(asked(b"").await.unwrap_err().starts_with("what answers closes"));
    }

    #[tokio::test(start_paused = true)]
    async fn silence_is_given_up_in_time() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        assert_eq!(speaks_postgres(addr).await, Err("what accepts gave no answer within 5s".to_owned()));
    }
}
