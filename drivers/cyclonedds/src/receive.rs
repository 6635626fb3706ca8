//! Receiving: `take`, `release`, and the delivery to `on_sample`.

use core::mem::MaybeUninit;

use tailbound_abi::side::{Fail, Outcome};
use tailbound_abi::{TB_READER, tb_view};

use crate::endpoint::Endpoint;
use crate::error::check;
use crate::{ffi, sample};

/// Samples taken by one call of Cyclone.
const BATCH: usize = 16;

/// One call of `dds_takecdr`, and an owner for what it returns.
struct Taken {
    serdata: [*mut ffi::ddsi_serdata; BATCH],
    info: [MaybeUninit<ffi::dds_sample_info>; BATCH],
    n: usize,
}

impl Taken {
    #[inline]
    fn from(reader: ffi::dds_entity_t, max: usize) -> Outcome<Self> {
        let mut taken =
            Taken { serdata: [core::ptr::null_mut(); BATCH], info: [const { MaybeUninit::uninit() }; BATCH], n: 0 };
        // SAFETY: both arrays hold BATCH elements, and at most that many are asked for.
        let n = unsafe {
            ffi::dds_takecdr(
                reader,
                taken.serdata.as_mut_ptr(),
                max.min(BATCH) as u32,
                taken.info.as_mut_ptr().cast(),
                ffi::DDS_ANY_STATE,
            )
        };
        taken.n = check("dds_takecdr", n)? as usize;
        Ok(taken)
    }

    /// The sample `i`, or none if it only tells of a writer's end.
    #[inline]
    fn view(&self, i: usize, view: &mut tb_view) -> Option<Outcome> {
        // SAFETY: the first n infos are filled.
        let info = unsafe { self.info[i].assume_init_ref() };
        // SAFETY: this object holds a reference to the sample.
        info.valid_data.then(|| unsafe { sample::decode(self.serdata[i], info, view) })
    }
}

#[inline]
fn unref(serdata: *mut ffi::ddsi_serdata) {
    // SAFETY: called once for every reference that dds_takecdr returned.
    unsafe { ffi::ddsi_serdata_unref(serdata) };
}

/// Hands all that is in the reader to `on_sample`. Every arriving sample leads here, so a batch that is not full means
/// that nothing is left behind.
pub fn deliver(endpoint: &Endpoint, reader: ffi::dds_entity_t) {
    loop {
        let Ok(taken) = Taken::from(reader, BATCH) else { return };
        for i in 0..taken.n {
            let mut view = tb_view::default();
            if let Some(Ok(())) = taken.view(i, &mut view) {
                // SAFETY: the session ends its listeners before it is closed; the view lives through the call.
                unsafe { endpoint.host.on_sample(endpoint.tag, &view) };
            }
            unref(taken.serdata[i]);
        }
        if taken.n < BATCH {
            return;
        }
    }
}

/// Takes up to `out.len()` samples without blocking; each is lent until `release`.
#[inline]
pub fn take(endpoint: &Endpoint, out: &mut [MaybeUninit<tb_view>]) -> Outcome<usize> {
    let made = endpoint.open()?;
    if endpoint.kind != TB_READER {
        return Err(Fail::invalid(format!("end point {} is a writer", endpoint.id)));
    }
    let mut n = 0;
    while n < out.len() {
        let ask = (out.len() - n).min(BATCH);
        let taken = Taken::from(made.entity, ask)?;
        for i in 0..taken.n {
            let mut view = tb_view::default();
            match taken.view(i, &mut view) {
                Some(Ok(())) => {
                    view.loan = taken.serdata[i] as u64;
                    out[n].write(view);
                    n += 1;
                }
                _ => unref(taken.serdata[i]),
            }
        }
        if taken.n < ask {
            break;
        }
    }
    Ok(n)
}

/// Gives taken samples back.
#[inline]
pub fn release(views: &mut [tb_view]) {
    for view in views {
        let serdata = core::mem::take(&mut view.loan) as *mut ffi::ddsi_serdata;
        if !serdata.is_null() {
            unref(serdata);
        }
    }
}
