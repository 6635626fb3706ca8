//! Tests of connections that are open but dead, and of idle sessions, with shorter time limits.

use super::*;
use crate::hold::hold;
use std::cell::Cell;
use std::path::Path;
use std::pin::pin;
use std::process::Command;
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

const PATIENCE: Duration = Duration::from_secs(20);

type Halves = (OwnedReadHalf, OwnedWriteHalf);

fn cat() -> io::Result<Command> {
    Ok(Command::new("cat"))
}

async fn open(socket: &Path) -> io::Result<Halves> {
    Ok(UnixStream::connect(socket).await?.into_split())
}

/// Runs `work` while a holder (the program that keeps processes running for clients) runs. The holder must not end
/// before `work`.
fn with_holder(lease: Duration, work: impl AsyncFnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("s");
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let mut held = pin!(hold(&socket, lease, cat, async { drop(stopped.await) }));
        tokio::select! {
            // The holder listens before a client connects.
            biased;
            over = &mut held => panic!("the holder ended: {over:?}"),
            () = work(&socket) => {}
        }
        stop.send(()).unwrap();
        held.await.unwrap();
    });
}

/// Copies bytes from `from` to `to` and counts them in `count`, up to the count `most`; then stays silent without
/// closing the connection.
async fn carry_and_stall(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, most: usize, count: &Cell<usize>) {
    let mut buffer = [0; 1000];
    while count.get() < most {
        let room = (most - count.get()).min(buffer.len());
        let n = from.read(&mut buffer[..room]).await.unwrap();
        if n == 0 {
            return;
        }
        to.write_all(&buffer[..n]).await.unwrap();
        count.set(count.get() + n);
    }
    std::future::pending().await
}

#[test]
fn a_connection_that_is_open_but_dead_is_replaced() {
    let pace = Pace { ping: Duration::from_millis(100), silent: Duration::from_secs(2) };
    with_holder(Duration::from_secs(30), async |socket| {
        let (opened, mut dead, count) = (Cell::new(0), None, Cell::new(0));
        let (stalled, mut stalls) = tokio::sync::mpsc::unbounded_channel();
        let (first, others) = UnixStream::pair().unwrap();
        let mut first = Some(first.into_split());
        let open = || {
            opened.set(opened.get() + 1);
            let (first, stalled) = (first.take(), stalled.clone());
            let n = opened.get();
            async move {
                match n {
                    // Nobody answers the greeting on the first connection.
                    1 => Ok(first.unwrap()),
                    // On the second connection the greeting is answered, and nothing else.
                    2 => {
                        let (near, far) = UnixStream::pair()?;
                        stalled.send((open(socket).await?, far.into_split())).unwrap();
                        Ok(near.into_split())
                    }
                    _ => open(socket).await,
                }
            }
        };
        dead.replace(others);
        let mut got = Vec::new();
        let joined = join_at(pace, "s", &[], open, &b"12345"[..], &mut got, PATIENCE);
        let stall = async {
            let ((from_holder, to_holder), (from_client, to_client)) = stalls.recv().await.unwrap();
            let answer = line(&Answer::Joined { received: 0, new: true, release: RELEASE.into() }).len();
            let (to, from) = (Cell::new(0), &count);
            tokio::join!(
                carry_and_stall(from_client, to_holder, usize::MAX, &to),
                carry_and_stall(from_holder, to_client, answer, from)
            );
        };
        tokio::select! {
            ended = joined => assert!(ended.unwrap().success()),
            () = stall => panic!("the connection that stalls has ended"),
        }
        assert_eq!((got.as_slice(), opened.get()), (&b"12345"[..], 3));
    });
}

/// Tests that pings keep an idle session open, in both directions, and that nothing else is sent.
#[test]
fn an_idle_session_sends_only_pings_of_thirteen_bytes() {
    let pace = Pace { ping: Duration::from_millis(100), silent: Duration::from_secs(12) };
    let lease = Duration::from_millis(2500);
    with_holder(lease, async |socket| {
        let (near, far) = UnixStream::pair().unwrap();
        let (mut near, far) = (Some(near.into_split()), far.into_split());
        let holder = open(socket).await.unwrap();
        let (to, from) = (Cell::new(0), Cell::new(0));
        let (mut say, input) = duplex(100);
        let (output, mut hear) = duplex(100);
        // Only one connection can be opened.
        let open = || std::future::ready(near.take().ok_or(io::ErrorKind::NotConnected.into()));
        let joined = join_at(pace, "s", &[], open, input, output, Duration::from_secs(1));
        let carried = async {
            tokio::join!(
                carry_and_stall(far.0, holder.1, usize::MAX, &to),
                carry_and_stall(holder.0, far.1, usize::MAX, &from)
            );
            std::future::pending::<()>().await;
        };
        let idle = async {
            say.write_all(b"a").await.unwrap();
            hear.read_exact(&mut [0]).await.unwrap();
            let (sent, heard) = (to.get(), from.get());
            sleep(2 * lease).await;
            let (sent, heard) = (to.get() - sent, from.get() - heard);
            assert!(sent > 0 && sent % 13 == 0 && heard > 0 && heard % 13 == 0, "{sent} and {heard} bytes");
            say.write_all(b"b").await.unwrap();
            hear.read_exact(&mut [0]).await.unwrap();
            drop(say);
        };
        tokio::select! {
            (ended, ()) = async { tokio::join!(joined, idle) } => assert!(ended.unwrap().success()),
            () = carried => {}
        }
    });
}

/// Tests that the status of a process is a number, not a text that happens to look like success.
#[test]
fn a_process_that_fails_is_no_success_whatever_its_text_is() {
    with_holder(Duration::from_secs(30), async |socket| {
        let open_it = || open(socket);
        let mut got = Vec::new();
        let ended = join_at(PACE, "f", &["/nonexistent".into()], open_it, &b""[..], &mut got, PATIENCE).await.unwrap();
        assert!(!ended.success());
        assert_eq!(ended.status.code(), Some(1));
    });
}
