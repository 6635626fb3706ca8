//! Receives samples from Cyclone: `take`, `release`, and calls of `on_sample`.

use core::mem::MaybeUninit;

use tailbound_abi::side::{Fail, Outcome};
use tailbound_abi::{TB_READER, tb_view};

use crate::endpoint::Endpoint;
use crate::error::check;
use crate::{ffi, sample};

/// Largest number of samples that one call of a Cyclone function returns.
const BATCH: usize = 16;

/// The samples from one call of `dds_takecdr`; dropping this value frees the samples.
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
        // SAFETY: both arrays have BATCH elements, and at most BATCH samples are requested.
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

    /// Fills `view` with the data of sample `i`; returns `None` if the sample has no data, but only reports that a
    /// writer has ended.
    #[inline]
    fn view(&self, i: usize, view: &mut tb_view) -> Option<Outcome> {
        // SAFETY: the first n infos are filled.
        let info = unsafe { self.info[i].assume_init_ref() };
        // SAFETY: this value holds a reference to the sample.
        info.valid_data.then(|| unsafe { sample::decode(self.serdata[i], info, view) })
    }
}

#[inline]
fn unref(serdata: *mut ffi::ddsi_serdata) {
    // SAFETY: this is called once for every reference that dds_takecdr returned.
    unsafe { ffi::ddsi_serdata_unref(serdata) };
}

/// Passes all samples in the reader to `on_sample`. If Cyclone returns fewer than [`BATCH`] samples, the function ends:
/// a sample that arrives later leads to another call of this function.
pub fn deliver(endpoint: &Endpoint, reader: ffi::dds_entity_t) {
    loop {
        let Ok(taken) = Taken::from(reader, BATCH) else { return };
        for i in 0..taken.n {
            let mut view = tb_view::default();
            if let Some(Ok(())) = taken.view(i, &mut view) {
                // SAFETY: the session ends its listeners before it is closed; the view lives until the call returns.
                unsafe { endpoint.host.on_sample(endpoint.tag, &view) };
            }
            unref(taken.serdata[i]);
        }
        if taken.n < BATCH {
            return;
        }
    }
}

/// Takes at most `out.len()` samples without blocking; each sample is borrowed until `release`.
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

/// Releases samples that the loading program has taken from a reader.
#[inline]
pub fn release(views: &mut [tb_view]) {
    for view in views {
        let serdata = core::mem::take(&mut view.loan) as *mut ffi::ddsi_serdata;
        if !serdata.is_null() {
            unref(serdata);
        }
    }
}
