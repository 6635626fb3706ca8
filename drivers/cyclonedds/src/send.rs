//! Sending.

use std::cell::{Cell, RefCell};

use tailbound_abi as abi;
use tailbound_abi::side::{Outcome, fail};

use crate::endpoint::{Endpoint, Entities};
use crate::error::check;
use crate::{ffi, sample};

thread_local! {
    /// Whether this thread is inside a write of a shared domain instance.
    static WRITING: Cell<bool> = const { Cell::new(false) };
    /// Writes asked for meanwhile.
    static LATER: RefCell<Vec<(ffi::dds_entity_t, *mut ffi::ddsi_serdata)>> = const { RefCell::new(Vec::new()) };
}

/// Sends one sample; with `batch` a writer that batches may keep it back.
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
pub fn flush(made: &Entities) -> Outcome {
    // SAFETY: a stale handle is refused by Cyclone.
    check("dds_write_flush", unsafe { ffi::dds_write_flush(made.entity) }).map(drop)
}
