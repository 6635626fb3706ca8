//! Knob for the longest wake-up latency of idle CPUs: a number in us written to /dev/cpu_dma_latency limits the latency
//! for the whole machine while the descriptor is open. If several limits are open, the smallest applies
//! (Documentation/power/pm_qos_interface.rst of the kernel).

use super::setting::Setting;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use tailbound_model::Undo;

const DEVICE: &str = "/dev/cpu_dma_latency";
/// Value of /dev/cpu_dma_latency if no process has set a limit (PM_QOS_CPU_LATENCY_DEFAULT_VALUE).
const UNBOUNDED: i32 = 2_000_000_000;

/// The limit of the wake-up latency of idle CPUs, in force while the file is open.
#[derive(Debug, Default)]
pub(super) struct LatencySetting {
    open: Option<File>,
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
        // The descriptor is closed at exec, so no other process keeps the limit in force.
        let mut file = OpenOptions::new().write(true).open(DEVICE)?;
        file.write_all(&bound.to_ne_bytes())?;
        self.open = Some(file);
        Ok(())
    }

    fn may_write(&self) -> io::Result<()> {
        OpenOptions::new().write(true).open(DEVICE).map(drop)
    }

    fn undo(&self, _before: &str, set: &str) -> Undo {
        Undo::HeldCpuLatency { us: us(set).map_or(0, i32::unsigned_abs) }
    }

    fn lasts_while_open(&self) -> bool {
        true
    }

    fn release(&mut self) {
        self.open = None;
    }

    fn spelled(&self, value: &str) -> String {
        value.to_owned()
    }
}
