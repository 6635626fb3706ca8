//! The wire type of samples and its serialised form.
//!
//! The form is XCDR1 of `{ unsigned long long seq; sequence<octet> payload; }`: a header of 4 bytes, `seq` (8 bytes),
//! the length (4 bytes), the payload bytes, and up to 3 bytes of padding, whose number is in the header.

use core::ffi::c_char;

use tailbound_abi::side::{Outcome, fail};
use tailbound_abi::{TB_EIO, tb_view};

use crate::ffi;
use crate::naming::Naming;

/// Number of bytes before the payload of a serialised sample: header, `seq`, length.
pub const HEAD: usize = 16;

/// Largest payload of a sample in bytes. This limit protects the memory and is far below the limit of the protocol.
pub const MAX_PAYLOAD_BYTES: u64 = 100 << 20;

const OP_ADR: u32 = 0x01 << 24;
const TYPE_8BY: u32 = 0x04 << 16;
const TYPE_SEQ: u32 = 0x07 << 16;
const SUBTYPE_1BY: u32 = 0x01 << 8;

/// Instructions for Cyclone's serialiser: type and offset of each member in [`Memory`], and the end mark.
static OPS: [u32; 5] = [OP_ADR | TYPE_8BY, 0, OP_ADR | TYPE_SEQ | SUBTYPE_1BY, 8, 0];

/// The sample as a struct of Cyclone's C binding; only the layout of the struct is used.
#[repr(C)]
struct Memory {
    seq: u64,
    maximum: u32,
    length: u32,
    buffer: *mut u8,
    release: bool,
}

/// Makes Cyclone's topic descriptor for the message type of the driver.
pub fn descriptor(naming: Naming) -> ffi::dds_topic_descriptor {
    let name = match naming {
        Naming::Dds => c"tailbound::Sample",
        Naming::Ros2 => c"tailbound_msgs::msg::dds_::Sample_",
    };
    ffi::dds_topic_descriptor {
        m_size: size_of::<Memory>() as u32,
        m_align: align_of::<Memory>() as u32,
        m_flagset: 0,
        m_nkeys: 0,
        m_typename: name.as_ptr(),
        m_keys: core::ptr::null(),
        m_nops: 3,
        m_ops: OPS.as_ptr(),
        m_meta: c"".as_ptr().cast::<c_char>(),
        type_information: ffi::dds_type_meta_ser { data: core::ptr::null(), sz: 0 },
        type_mapping: ffi::dds_type_meta_ser { data: core::ptr::null(), sz: 0 },
        restrict_data_representation: ffi::DDS_DATA_REPRESENTATION_FLAG_XCDR1,
    }
}

/// Serialises one sample: the payload is copied once, into Cyclone's own representation.
///
/// # Safety
/// `sertype` is valid.
#[inline]
pub unsafe fn encode(sertype: *const ffi::ddsi_sertype, seq: u64, payload: &[u8]) -> *mut ffi::ddsi_serdata {
    let len = payload.len();
    let pad = len.wrapping_neg() & 3;
    let mut head = [0_u8; HEAD];
    head[1] = cfg!(target_endian = "little") as u8;
    head[3] = pad as u8;
    head[4..12].copy_from_slice(&seq.to_ne_bytes());
    head[12..16].copy_from_slice(&(len as u32).to_ne_bytes());
    let part = |b: &[u8]| ffi::ddsrt_iovec_t { iov_base: b.as_ptr().cast_mut().cast(), iov_len: b.len() };
    let zeros = [0_u8; 4];
    let parts = [part(&head), part(payload), part(&zeros[..pad])];
    // SAFETY: the parts are readable during the call, which copies them; the caller promises that the sertype is valid.
    unsafe {
        ffi::ddsi_serdata_from_ser_iov(sertype, ffi::ddsi_serdata_kind_SDK_DATA, 3, parts.as_ptr(), HEAD + len + pad)
    }
}

/// Fills `view` from a taken sample without a copy: `data` points into the sample.
///
/// # Safety
/// `serdata` is a data sample of the wire type's sertype, and lives as long as the view.
#[inline]
pub unsafe fn decode(serdata: *mut ffi::ddsi_serdata, info: &ffi::dds_sample_info, view: &mut tb_view) -> Outcome<()> {
    // SAFETY: the caller promises that the sample is valid. The reference from to_ser_ref is released immediately,
    // because the caller's reference keeps the memory alive.
    let (base, size) = unsafe {
        let size = ffi::ddsi_serdata_size(serdata) as usize;
        let mut whole = ffi::ddsrt_iovec_t { iov_base: core::ptr::null_mut(), iov_len: 0 };
        let same = ffi::ddsi_serdata_to_ser_ref(serdata, 0, size, &mut whole);
        ffi::ddsi_serdata_to_ser_unref(same, &whole);
        (whole.iov_base.cast::<u8>().cast_const(), size)
    };
    // SAFETY: Cyclone has checked the sample against the type: it contains at least the head, in native byte order.
    let (seq, len) =
        unsafe { (base.add(4).cast::<u64>().read_unaligned(), base.add(12).cast::<u32>().read_unaligned() as usize) };
    if size < HEAD + len {
        return fail(TB_EIO, format!("a received sample of {size} bytes claims {len} bytes of payload"));
    }
    *view = tb_view {
        seq,
        // SAFETY: the address lies within the sample, which was checked above.
        data: unsafe { base.add(HEAD) },
        len: len as u64,
        writer: info.publication_handle,
        source_ns: info.source_timestamp.max(0),
        ..tb_view::default()
    };
    Ok(())
}
