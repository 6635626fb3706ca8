//! The longest wake-up that an idle CPU may take: a number written to /dev/cpu_dma_latency holds for the whole machine as
//! long as the descriptor is open, with the smallest of all that are held
//! (Documentation/power/pm_qos_interface.rst of the kernel).

use super::Setting;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use tailbound_model::Undo;

const DEVICE: &str = "/dev/cpu_dma_latency";
/// PM_QOS_CPU_LATENCY_DEFAULT_VALUE: nobody asks for less.
const UNBOUNDED: i32 = 2_000_000_000;

/// The bound, while it is asked for.
#[derive(Debug, Default)]
pub(super) struct LatencySetting {
    held: Option<File>,
}

fn us(value: &str) -> io::Result<i32> {
    let number = value.strip_suffix(" us").and_then(|n| n.parse().ok());
    number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("`{value}` is not a number of us")))
}

impl Setting for LatencySetting {
    fn what(&self) -> String {
        DEVICE.into()
    }

    fn read(&self) -> io::Result<String> {
        let mut bytes = [0; 4];
        File::open(DEVICE)?.read_exact(&mut bytes)?;
        match i32::from_ne_bytes(bytes) {
            UNBOUNDED => Ok("no bound".into()),
            us => Ok(format!("{us} us")),
        }
    }

    fn write(&mut self, value: &str) -> io::Result<()> {
        let bound = us(value)?;
        // Closed at exec: no other process keeps it.
        let mut file = OpenOptions::new().write(true).open(DEVICE)?;
        file.write_all(&bound.to_ne_bytes())?;
        self.held = Some(file);
        Ok(())
    }

    fn may_write(&self) -> io::Result<()> {
        OpenOptions::new().write(true).open(DEVICE).map(drop)
    }

    fn undo(&self, _before: &str, set: &str) -> Undo {
        Undo::HeldCpuLatency { us: us(set).map_or(0, i32::unsigned_abs) }
    }

    fn is_held(&self) -> bool {
        true
    }

    fn release(&mut self) {
        self.held = None;
    }

    fn spelled(&self, value: &str) -> String {
        value.to_owned()
    }
}
