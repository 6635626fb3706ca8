//! Runs a whole study inside one guest. The host sends an order to run a study and shows the output of the run; the
//! guest starts the run, and sends the record when the run has ended.
//!
//! The order is one line of JSON. The answer consists of frames: a kind (u8), a length (u32, little endian), and this
//! number of bytes.

use crate::error::{file_error, guest_error};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, Read, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Mutex;
use tailbound_model::Problem;

/// Directory of the run in the guest; paths relative to this directory are the same as on the host.
const PLACE: &str = "/tmp/run";
/// Maximum number of bytes in a frame of the guest's answer.
const FRAME: usize = 1 << 16;

/// Description of a run of a study in a guest, as the host requests the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestRunOrder {
    /// Name of a built-in study, or name of the study file whose text is in `text`.
    pub study: String,
    /// Text of the study file; `None` for a built-in study.
    pub text: Option<String>,
    /// Path at which the host stores the record of the run.
    pub record: PathBuf,
    /// Further command-line arguments of `tailbound run` in the guest.
    pub arguments: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Out = 0,
    Err = 1,
    /// The frame contains a part of a tar archive with the record of the run.
    Record = 2,
    /// The frame contains the exit code of the run in decimal digits; this is the last frame.
    Code = 3,
}

fn put(to: &mut impl Write, kind: Kind, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&[kind as u8])?;
    to.write_all(&(bytes.len() as u32).to_le_bytes())?;
    to.write_all(bytes)?;
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
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("frame of unknown kind {other}")));
        }
    };
    let length = u32::from_le_bytes(head[1..].try_into().expect("four bytes")) as usize;
    if length > FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("frame of {length} bytes")));
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok((kind, body))
}

/// Writes bytes as frames of one kind (output, error output, record, exit code).
struct Frames<'a, W> {
    to: &'a Mutex<W>,
    kind: Kind,
}

impl<W: Write> Write for Frames<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let part = &bytes[..bytes.len().min(FRAME)];
        let mut to = self.to.lock().map_err(|_| io::Error::other("a thread failed while it wrote output"))?;
        put(&mut *to, self.kind, part).map(|()| part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Guest side of a run: reads the host's order to run a study from `input`, runs the study, and writes output, record
/// and exit code to `output`.
///
/// # Errors
/// The order to run a study cannot be read, or the answer cannot be written.
pub fn serve_run(mut input: impl BufRead, output: impl Write + Send) -> io::Result<()> {
    let mut line = String::new();
    input.read_line(&mut line)?;
    let order: GuestRunOrder = serde_json::from_str(&line)?;
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
        let errors = scope.spawn(|| err.as_mut().map_or(Ok(()), |from| carry(from, Kind::Err)));
        out.as_mut().map_or(Ok(()), |from| carry(from, Kind::Out))?;
        errors.join().map_err(|_| io::Error::other("a thread failed"))?
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

/// Host side of a run: writes the order to run a study to `to`, copies the run's output from `from` to `out` and `err`,
/// and unpacks the record into the directory named in the order. The directory appears when the record is complete.
/// Returns the exit code of the run.
///
/// # Errors
/// The connection to the guest ended before the exit code arrived, or the record cannot be written.
pub fn run_in_guest(
    order: &GuestRunOrder,
    (mut to, mut from): (impl Write, impl Read),
    (mut out, mut err): (impl Write, impl Write),
) -> Result<i32, Problem> {
    let lost = |e: io::Error| guest_error(format!("the connection to the run in the guest was lost: {e}"), "");
    let mut line = serde_json::to_vec(order).map_err(|e| lost(e.into()))?;
    line.push(b'\n');
    to.write_all(&line).and_then(|()| to.flush()).map_err(lost)?;
    let mut archive = Vec::new();
    let code = loop {
        let (kind, body) = take(&mut from).map_err(lost)?;
        match kind {
            // If the reader of the output has gone, the run continues.
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
            // The first error is the one that is reported.
            let _ = std::fs::remove_dir_all(&partial);
        }
        unpacked.map_err(file_error("write the record", record))?;
    }
    Ok(code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_record_of_a_run_come_back() {
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
        let order = GuestRunOrder { study: "s".into(), text, record: record.clone(), arguments: vec!["-q".into()] };
        let (mut asked, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
        let lost = run_in_guest(&order, (Vec::new(), &*cut), (io::sink(), io::sink())).unwrap_err();
        assert_eq!(lost.what, "the connection to the run in the guest was lost: failed to fill whole buffer");
        assert!(!record.exists());
        assert_eq!(run_in_guest(&order, (&mut asked, &*answer), (&mut out, &mut err)), Ok(6));
        assert_eq!(serde_json::from_slice::<GuestRunOrder>(&asked).unwrap(), order);
        assert_eq!((out.as_slice(), err.as_slice()), (&b"a table\n"[..], &b"trial 1/1\n"[..]));
        assert_eq!(std::fs::read(record.join("samples/a")).unwrap(), vec![7; 200_000]);
    }
}
