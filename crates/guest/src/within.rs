//! A study that is run within one guest: the guest is the host. The host's end gives an order and shows what comes; the
//! guest's end starts the run, and sends the record when it has ended.
//!
//! The order is a line of JSON. Frames come back: a kind (u8), a length (u32, little endian), and so many octets.

use crate::error::GuestError;
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;

/// Where a run takes place there: paths that it prints are then those of the host, too.
const PLACE: &str = "/tmp/run";
const FRAME: usize = 1 << 16;

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InsideOrder {
    /// The name of a built-in study, or that of the file whose text follows.
    pub study: String,
    /// The text of the study, where it is a file.
    pub text: Option<String>,
    /// The record, as the host calls it.
    pub record: PathBuf,
    /// Further arguments of `tailbound run`.
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Out = 0,
    Err = 1,
    /// A part of the record, as a tar archive.
    Record = 2,
    /// The exit code, in decimal digits: nothing follows.
    Code = 3,
}

fn put(to: &mut impl Write, kind: Kind, octets: &[u8]) -> io::Result<()> {
    to.write_all(&[kind as u8])?;
    to.write_all(&(octets.len() as u32).to_le_bytes())?;
    to.write_all(octets)?;
    to.flush()
}

fn take(from: &mut impl Read) -> io::Result<(Kind, Vec<u8>)> {
    let mut head = [0; 5];
    from.read_exact(&mut head)?;
    let kind = match head[0] {
        0 => Kind::Out,
        1 => Kind::Err,
        2 => Kind::Record,
        3 => Kind::Code,
        other => {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of the unknown kind {other}")));
        }
    };
    let octets = u32::from_le_bytes(head[1..].try_into().expect("four octets")) as usize;
    if octets > FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {octets} octets")));
    }
    let mut body = vec![0; octets];
    from.read_exact(&mut body)?;
    Ok((kind, body))
}

/// Writes what it is given as frames of one kind.
struct Frames<'a, W> {
    to: &'a Mutex<W>,
    kind: Kind,
}

impl<W: Write> Write for Frames<'_, W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let part = &octets[..octets.len().min(FRAME)];
        let mut to = self.to.lock().map_err(|_| io::Error::other("its output is not to be had"))?;
        put(&mut *to, self.kind, part).map(|()| part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The guest's end: takes an order from `input`, runs it, and says all to `output`.
///
/// # Errors
/// No order came, or nobody takes the answer.
pub fn within(mut input: impl BufRead, output: impl Write + Send) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let order: InsideOrder = serde_json::from_str(&line)?;
    let place = Path::new(PLACE);
    let record = place.join(&order.record);
    std::fs::create_dir_all(record.parent().unwrap_or(place)).and_then(|()| std::fs::create_dir_all(place))?;
    if let Some(text) = &order.text {
        let file = place.join(&order.study);
        std::fs::create_dir_all(file.parent().unwrap_or(place))?;
        std::fs::write(&file, text)?;
    }
    let mut command = tailbound_host::own_program()?;
    command.current_dir(place).arg("run").arg(&order.study).arg("--out").arg(&order.record).args(&order.arguments);
    let mut run = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (mut out, mut err) = (run.stdout.take(), run.stderr.take());
    let output = Mutex::new(output);
    let carry = |from: &mut dyn Read, kind| tailbound_stream::carry(from, &mut Frames { to: &output, kind });
    std::thread::scope(|scope| {
        let said = scope.spawn(|| err.as_mut().map_or(Ok(()), |from| carry(from, Kind::Err)));
        out.as_mut().map_or(Ok(()), |from| carry(from, Kind::Out))?;
        said.join().map_err(|_| io::Error::other("a thread failed"))?
    })?;
    let status = run.wait()?;
    if record.is_dir() {
        let mut archive = tar::Builder::new(Frames { to: &output, kind: Kind::Record });
        archive.append_dir_all(".", record)?;
        archive.finish()?;
    }
    let code = status.code().unwrap_or(1).to_string();
    Frames { to: &output, kind: Kind::Code }.write_all(code.as_bytes())
}

/// The host's end: gives the order to `to`, shows what comes from `from` on `out` and `err`, and puts the record into the
/// directory of the order, which appears when it is whole. The exit code of the run.
///
/// # Errors
/// The guest's end says no exit code: it was cut off; the record cannot be written.
pub fn run_inside(
    order: &InsideOrder,
    (mut to, mut from): (impl Write, impl Read),
    (mut out, mut err): (impl Write, impl Write),
) -> Result<i32, GuestError> {
    let lost = |e: io::Error| GuestError::new(format!("the run in the guest was cut off: {e}"), "");
    let mut line = serde_json::to_vec(order).map_err(|e| lost(e.into()))?;
    line.push(b'\n');
    to.write_all(&line).and_then(|()| to.flush()).map_err(lost)?;
    let mut archive = Vec::new();
    let code = loop {
        let (kind, body) = take(&mut from).map_err(lost)?;
        match kind {
            // A reader that goes away does not end the run.
            Kind::Out => drop(out.write_all(&body).and_then(|()| out.flush())),
            Kind::Err => drop(err.write_all(&body).and_then(|()| err.flush())),
            Kind::Record => archive.extend(body),
            Kind::Code => break String::from_utf8_lossy(&body).parse().unwrap_or(1),
        }
    };
    if !archive.is_empty() {
        let record = &order.record;
        let mut partial = record.as_os_str().to_owned();
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = PathBuf::from(partial);
        let unpacked = tar::Archive::new(&*archive).unpack(&partial).and_then(|()| std::fs::rename(&partial, record));
        if unpacked.is_err() {
            // The first error is the one to tell.
            let _ = std::fs::remove_dir_all(&partial);
        }
        unpacked.map_err(GuestError::file("write the record", record))?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_says_and_leaves_comes_back() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join("left");
        std::fs::create_dir_all(left.join("samples")).unwrap();
        std::fs::write(left.join("samples/a"), vec![7; 200_000]).unwrap();
        let answer = Mutex::new(Vec::new());
        let frames = |kind| Frames { to: &answer, kind };
        frames(Kind::Err).write_all(b"trial 1/1\n").unwrap();
        let mut archive = tar::Builder::new(frames(Kind::Record));
        archive.append_dir_all(".", &left).unwrap();
        archive.into_inner().unwrap();
        frames(Kind::Out).write_all(b"a table\n").unwrap();
        let cut = answer.lock().unwrap().clone();
        frames(Kind::Code).write_all(b"6").unwrap();
        let answer = answer.lock().unwrap().clone();

        let (record, text) = (dir.path().join("record"), Some("a: b\n".into()));
        let order = InsideOrder { study: "s".into(), text, record: record.clone(), arguments: vec!["-q".into()] };
        let (mut asked, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
        let lost = run_inside(&order, (Vec::new(), &*cut), (io::sink(), io::sink())).unwrap_err();
        assert_eq!(lost.what, "the run in the guest was cut off: failed to fill whole buffer");
        assert!(!record.exists());
        assert_eq!(run_inside(&order, (&mut asked, &*answer), (&mut out, &mut err)), Ok(6));
        assert_eq!(serde_json::from_slice::<InsideOrder>(&asked).unwrap(), order);
        assert_eq!((out.as_slice(), err.as_slice()), (&b"a table\n"[..], &b"trial 1/1\n"[..]));
        assert_eq!(std::fs::read(record.join("samples/a")).unwrap(), vec![7; 200_000]);
    }
}
