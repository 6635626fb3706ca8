//! Sends samples by Cyclone DDS.

use std::cell::{Cell, RefCell};

use tailbound_abi as abi;
use tailbound_abi::side::{Outcome, fail};

use crate::endpoint::{Endpoint, Entities};
use crate::error::check;
use crate::{ffi, sample};

thread_local! {
    /// Whether this thread is inside a write of a shared Cyclone domain instance.
    static WRITING: Cell<bool> = const { Cell::new(false) };
    /// Samples whose sending was requested while this thread was inside another write of Cyclone.
    static LATER: RefCell<Vec<(ffi::dds_entity_t, *mut ffi::ddsi_serdata)>> = const { RefCell::new(Vec::new()) };
}

/// Sends one sample. If `batch` is true, a writer that batches may hold the sample back until `flush`.
#[inline]
pub fn send(endpoint: &Endpoint, shared: bool, seq: u64, payload: &[u8], batch: bool) -> Outcome {
    let (made, len) = (endpoint.open()?, payload.len());
    if endpoint.kind != abi::TB_WRITER {
        return fail(abi::TB_EINVAL, format!("end point {} is a reader", endpoint.id));
    }
    if len as u64 > endpoint.max_len {
        let (id, max) = (endpoint.id, endpoint.max_len);
        return fail(abi::TB_ETOOBIG, format!("{len} B of payload; end point {id} was made for {max} B"));
    }
    // SAFETY: the end point holds a reference to the sertype.
    let serdata = unsafe { sample::encode(made.sertype, seq, payload) };
    if serdata.is_null() {
        return fail(abi::TB_ENOMEM, format!("no memory for a sample of {len} B"));
    }
    let ret = if shared { write_shared(made, serdata) } else { write(made.entity, serdata) };
    match ret {
        ffi::DDS_RETCODE_TIMEOUT if endpoint.never_blocks => {
            return fail(abi::TB_EWOULDBLOCK, "the writer's history is full");
        }
        ffi::DDS_RETCODE_TIMEOUT => {
            return fail(abi::TB_ETIMEDOUT, "the writer's history stayed full for reliability.max_blocking_time");
        }
        ret => check("dds_writecdr", ret)?,
    };
    if endpoint.batch && !batch {
        flush(made)?;
    }
    Ok(())
}

#[inline]
fn write(writer: ffi::dds_entity_t, serdata: *mut ffi::ddsi_serdata) -> i32 {
    // SAFETY: the sample is new and has the writer's type; the call consumes its reference.
    unsafe { ffi::dds_writecdr(writer, serdata) }
}

/// Writes a sample in a shared domain instance. The write runs the listeners of local readers on this thread, inside
/// the writer. A write from such a listener is postponed until the outer write is complete: if writes were nested, two
/// ends that answer each other would deadlock.
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

/// Sends the messages that the writer has held back for a batch.
pub fn flush(made: &Entities) -> Outcome {
    // SAFETY: Cyclone refuses an invalid handle.
    check("dds_write_flush", unsafe { ffi::dds_write_flush(made.entity) }).map(drop)
}
