//! Failures of the operating system, as failures of the driver.

use tailbound_abi::TB_EIO;
use tailbound_abi::side::Fail;

/// Makes the failure for an error of the operating system; `what` is the failed operation.
pub fn io(what: &str) -> impl Fn(std::io::Error) -> Fail + '_ {
    move |e| Fail::new(TB_EIO, format!("{what}: {e}"))
}
