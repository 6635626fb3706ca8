//! Two byte streams joined in one thread, not looked into.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

/// Octets on their way in one direction.
#[derive(Default)]
struct Way {
    kept: Vec<u8>,
    /// So many of them are handed on.
    handed: usize,
    ended: bool,
}

impl Way {
    /// Takes from a stream that has something, unless there is something on the way.
    fn take(&mut self, from: &mut impl Read) -> io::Result<()> {
        self.kept.resize(1 << 16, 0);
        self.handed = 0;
        let taken = match from.read(&mut self.kept) {
            Err(e) if is_later(&e) => {
                self.kept.clear();
                return Ok(());
            }
            taken => taken?,
        };
        self.kept.truncate(taken);
        self.ended = taken == 0;
        Ok(())
    }

    fn hand_on(&mut self, to: &mut impl Write) -> io::Result<()> {
        match to.write(&self.kept[self.handed..]) {
            Ok(n) => self.handed += n,
            Err(e) if is_later(&e) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        self.handed < self.kept.len()
    }
}

fn is_later(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Carries octets between two streams that do not block, until either ends.
pub(super) fn join(one: &mut (impl Read + Write + AsFd), other: &mut (impl Read + Write + AsFd)) -> io::Result<()> {
    let (mut there, mut back) = (Way::default(), Way::default());
    loop {
        let wanted = |takes: &Way, gives: &Way| {
            let read = if takes.waits() { PollFlags::empty() } else { PollFlags::POLLIN };
            if gives.waits() { read | PollFlags::POLLOUT } else { read }
        };
        let mut both =
            [PollFd::new(one.as_fd(), wanted(&there, &back)), PollFd::new(other.as_fd(), wanted(&back, &there))];
        match poll(&mut both, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            polled => polled?,
        };
        let told = both.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        if there.waits() {
            there.hand_on(other)?;
        } else if told[0].intersects(PollFlags::POLLIN | gone) {
            there.take(one)?;
        }
        if back.waits() {
            back.hand_on(one)?;
        } else if told[1].intersects(PollFlags::POLLIN | gone) {
            back.take(other)?;
        }
        // What one side has said last is handed on; one that is gone takes nothing any more.
        let lost = there.waits() && told[1].intersects(gone) || back.waits() && told[0].intersects(gone);
        if there.ended || back.ended || lost {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn octets_go_both_ways_until_one_side_ends() {
        let (mut a, mut near) = UnixStream::pair().unwrap();
        let (mut far, mut b) = UnixStream::pair().unwrap();
        let joined = std::thread::spawn(move || {
            near.set_nonblocking(true).unwrap();
            far.set_nonblocking(true).unwrap();
            join(&mut near, &mut far)
        });
        // More than any buffer in between holds.
        let sent: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        let (to_b, also) = (sent.clone(), sent.clone());
        let mut a_writes = a.try_clone().unwrap();
        let writer = std::thread::spawn(move || a_writes.write_all(&to_b).unwrap());
        let mut heard = vec![0; sent.len()];
        b.read_exact(&mut heard).unwrap();
        assert!(heard == also);
        writer.join().unwrap();
        b.write_all(b"the last word").unwrap();
        drop(b);
        let mut last = String::new();
        a.read_to_string(&mut last).unwrap();
        assert_eq!(last, "the last word");
        joined.join().unwrap().unwrap();
    }
}
