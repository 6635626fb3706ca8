//! Copies bytes between two streams in both directions, in one thread.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;

/// Bytes that were read from one stream and wait to be written to the other stream.
#[derive(Default)]
struct Direction {
    buffer: Vec<u8>,
    /// Number of bytes of the buffer that have already been written to the other stream.
    written: usize,
    ended: bool,
}

impl Direction {
    /// Reads bytes from a stream into the buffer, which must be empty.
    fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        self.buffer.resize(1 << 16, 0);
        self.written = 0;
        let taken = match from.read(&mut self.buffer) {
            Err(e) if is_later(&e) => {
                self.buffer.clear();
                return Ok(());
            }
            taken => taken?,
        };
        self.buffer.truncate(taken);
        self.ended = taken == 0;
        Ok(())
    }

    fn write(&mut self, to: &mut impl Write) -> io::Result<()> {
        match to.write(&self.buffer[self.written..]) {
            Ok(n) => self.written += n,
            Err(e) if is_later(&e) => {}
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn waits(&self) -> bool {
        self.written < self.buffer.len()
    }
}

fn is_later(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Copies bytes between two non-blocking streams in both directions until either stream ends.
pub(super) fn join(one: &mut (impl Read + Write + AsFd), other: &mut (impl Read + Write + AsFd)) -> io::Result<()> {
    let (mut there, mut back) = (Direction::default(), Direction::default());
    loop {
        let wanted = |takes: &Direction, gives: &Direction| {
            let read = if takes.waits() { PollFlags::empty() } else { PollFlags::POLLIN };
            if gives.waits() { read | PollFlags::POLLOUT } else { read }
        };
        let mut both =
            [PollFd::new(one.as_fd(), wanted(&there, &back)), PollFd::new(other.as_fd(), wanted(&back, &there))];
        match poll(&mut both, PollTimeout::NONE) {
            Err(nix::errno::Errno::EINTR) => continue,
            polled => polled?,
        };
        let ready = both.map(|fd| fd.revents().unwrap_or(PollFlags::empty()));
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        if there.waits() {
            there.write(other)?;
        } else if ready[0].intersects(PollFlags::POLLIN | gone) {
            there.read(one)?;
        }
        if back.waits() {
            back.write(one)?;
        } else if ready[1].intersects(PollFlags::POLLIN | gone) {
            back.read(other)?;
        }
        // The last bytes of a side are still written, except to a side that has gone.
        let lost = there.waits() && ready[1].intersects(gone) || back.waits() && ready[0].intersects(gone);
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
    fn bytes_go_both_ways_until_one_side_ends() {
        let (mut a, mut near) = UnixStream::pair().unwrap();
        let (mut far, mut b) = UnixStream::pair().unwrap();
        let joined = std::thread::spawn(move || {
            near.set_nonblocking(true).unwrap();
            far.set_nonblocking(true).unwrap();
            join(&mut near, &mut far)
        });
        // More bytes than fit into all buffers in between.
        let sent: Vec<u8> = (0..3_000_000u32).map(|n| n as u8).collect();
        let (to_b, also) = (sent.clone(), sent.clone());
        let mut a_writes = a.try_clone().unwrap();
        let writer = std::thread::spawn(move || a_writes.write_all(&to_b).unwrap());
        let mut received = vec![0; sent.len()];
        b.read_exact(&mut received).unwrap();
        assert!(received == also);
        writer.join().unwrap();
        b.write_all(b"the last word").unwrap();
        drop(b);
        let mut last = String::new();
        a.read_to_string(&mut last).unwrap();
        assert_eq!(last, "the last word");
        joined.join().unwrap().unwrap();
    }
}
