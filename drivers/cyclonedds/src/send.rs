//! Sending.

use std::cell::{Cell, RefCell};

use tailbound_abi as abi;
use tailbound_abi::tb_send;

use crate::endpoint::{Endpoint, Entities};
use crate::error::{Fail, Outcome, check};
use crate::{ffi, sample};

thread_local! {
    /// Whether this thread is inside a write of a shared domain instance.
    static WRITING: Cell<bool> = const { Cell::new(false) };
    /// Writes asked for meanwhile.
    static LATER: RefCell<Vec<(ffi::dds_entity_t, *mut ffi::ddsi_serdata)>> = const { RefCell::new(Vec::new()) };
}

/// Sends one sample.
///
/// # Safety
/// `data` points to `len` readable bytes; `opt` is null or points to a `tb_send`.
#[inline]
pub unsafe fn send(
    endpoint: &Endpoint,
    shared: bool,
    seq: u64,
    data: *const u8,
    len: u64,
    opt: *const tb_send,
) -> Outcome<()> {
    let made = endpoint.open()?;
    if endpoint.kind != abi::TB_WRITER {
        return Err(Fail::invalid(format!("end point {} is a reader", endpoint.id)));
    }
    if len > endpoint.max_len {
        return Err(Fail::new(
            abi::TB_ETOOBIG,
            format!("{len} B of payload; end point {} was created for {} B", endpoint.id, endpoint.max_len),
        ));
    }
    // SAFETY: null or valid by the caller's promise.
    let opt = unsafe { opt.as_ref() };
    if opt.is_some_and(|o| o.txtime_ns != 0) {
        return Err(Fail::new(abi::TB_EUNSUPPORTED, "the cyclonedds driver has no launch time"));
    }
    // SAFETY: the end point holds a reference to the sertype; data is readable by the caller's promise.
    let serdata = unsafe { sample::encode(made.sertype, seq, data, len as usize) };
    if serdata.is_null() {
        return Err(Fail::new(abi::TB_ENOMEM, format!("no memory for a sample of {len} B")));
    }
    let ret = if shared { write_shared(made, serdata) } else { write(made.entity, serdata) };
    match ret {
        ffi::DDS_RETCODE_TIMEOUT if endpoint.never_blocks => {
            return Err(Fail::new(abi::TB_EWOULDBLOCK, "the writer's history is full"));
        }
        ffi::DDS_RETCODE_TIMEOUT => {
            return Err(Fail::new(
                abi::TB_ETIMEDOUT,
                "the writer's history stayed full for reliability.max_blocking_time",
            ));
        }
        ret => check("dds_writecdr", ret)?,
    };
    if endpoint.batch && opt.is_none_or(|o| o.flags & abi::TB_SEND_BATCH == 0) {
        flush(made)?;
    }
    Ok(())
}

#[inline]
fn write(writer: ffi::dds_entity_t, serdata: *mut ffi::ddsi_serdata) -> i32 {
    // SAFETY: the sample is a fresh one of the writer's type; the call consumes its reference.
    unsafe { ffi::dds_writecdr(writer, serdata) }
}

/// In a shared instance a write runs the listeners of local readers on this thread, inside the writer. A write from such
/// a listener is made after the outer one is complete: nested, two ends that answer each other would lock each other out.
fn write_shared(made: &Entities, serdata: *mut ffi::ddsi_serdata) -> i32 {
    if WRITING.replace(true) {
        LATER.with(|later| later.borrow_mut().push((made.entity, serdata)));
        return 0;
    }
    let ret = write(made.entity, serdata);
    loop {
        let next = LATER.with(|later| {
            let mut later = later.borrow_mut();
            (!later.is_empty()).then(|| later.remove(0))
        });
        match next {
            Some((writer, serdata)) => write(writer, serdata),
            None => break,
        };
    }
    WRITING.set(false);
    ret
}

/// Pushes out what the writer keeps back.
pub fn flush(made: &Entities) -> Outcome<()> {
    // SAFETY: a stale handle is refused by Cyclone.
    check("dds_write_flush", unsafe { ffi::dds_write_flush(made.entity) }).map(drop)
}
