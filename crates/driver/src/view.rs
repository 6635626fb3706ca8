//! Samples that a driver received, and buffers for several samples.

use tailbound_abi::{TB_VIEW_LOCAL, tb_view};

/// One received sample. The sample is valid inside the callback, or until it is released.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct View(tb_view);

impl View {
    /// Makes a reference to a received sample from a pointer to its C struct.
    ///
    /// # Safety
    /// `view` and the bytes that it points to are valid for as long as the reference lives.
    pub(crate) unsafe fn from_raw<'a>(view: *const tb_view) -> &'a View {
        // SAFETY: `View` is a transparent wrapper; the caller promises that the pointer is valid.
        unsafe { &*view.cast::<View>() }
    }

    /// Sequence number that the sender wrote into the sample.
    #[inline]
    pub fn seq(&self) -> u64 {
        self.0.seq
    }

    /// Length of the sample's payload in bytes.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "this is the length of the payload, not of a collection")]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Payload bytes of the sample, in the memory of the middleware.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        if self.0.data.is_null() {
            return &[];
        }
        // SAFETY: the driver promises `len` bytes at `data` until the callback returns or the view is released;
        // references from `ViewBuf` and `Callbacks` do not live longer than that.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.len as usize) }
    }

    /// Identity of the sample's writer within the session; `None` if the driver does not know the writer.
    #[inline]
    pub fn writer(&self) -> Option<u64> {
        (self.0.writer != 0).then_some(self.0.writer)
    }

    /// Source timestamp of the sample in ns of `CLOCK_REALTIME`; 0 if not known.
    #[inline]
    pub fn source_ns(&self) -> i64 {
        self.0.source_ns
    }

    /// Software receive timestamp of the kernel for the sample, in ns of `CLOCK_REALTIME`; 0 if not known.
    #[inline]
    pub fn kernel_rx_ns(&self) -> i64 {
        self.0.kernel_rx_ns
    }

    /// Hardware receive timestamp of the sample, in ns of the clock of the network card; 0 if not known.
    #[inline]
    pub fn hw_rx_ns(&self) -> i64 {
        self.0.hw_rx_ns
    }

    /// Whether the middleware delivered the sample inside the process, without a network.
    #[inline]
    pub fn is_local(&self) -> bool {
        self.0.flags & TB_VIEW_LOCAL != 0
    }

    /// The received sample as the C struct of the ABI.
    pub fn raw(&self) -> &tb_view {
        &self.0
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("seq", &self.0.seq).field("len", &self.0.len).finish_non_exhaustive()
    }
}

/// A buffer for samples taken from a reader; the buffer is made once and used for every `take`.
///
/// The samples in the buffer stay valid until the buffer is passed to [`crate::Hot::release`], or until their end point
/// is destroyed.
pub struct ViewBuf {
    pub(crate) views: Box<[tb_view]>,
    pub(crate) taken: usize,
}

// SAFETY: views are plain data; the bytes they point to belong to the session, which any thread may use.
unsafe impl Send for ViewBuf {}

impl ViewBuf {
    /// Makes a buffer for at most `capacity` received samples.
    pub fn new(capacity: usize) -> ViewBuf {
        ViewBuf { views: vec![tb_view::default(); capacity.max(1)].into_boxed_slice(), taken: 0 }
    }

    /// Number of samples in the buffer that were taken and not yet released.
    #[inline]
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Whether the buffer contains no received samples.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// The received samples that are in the buffer.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &View> {
        // SAFETY: the first `taken` views were filled by the driver and are released only through `&mut self`.
        self.views[..self.taken].iter().map(|v| unsafe { View::from_raw(v) })
    }
}
