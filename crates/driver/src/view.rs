//! Received samples.

use tailbound_abi::{TB_VIEW_LOCAL, tb_view};

/// One received sample. Valid inside the callback, or until it is released.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct View(tb_view);

impl View {
    /// # Safety
    /// `view` is valid for as long as the reference lives, and so are the octets that it points to.
    pub(crate) unsafe fn from_raw<'a>(view: *const tb_view) -> &'a View {
        // SAFETY: `View` is a transparent wrapper; validity is the caller's promise.
        unsafe { &*view.cast::<View>() }
    }

    /// Sequence number that the sender gave.
    #[inline]
    pub fn seq(&self) -> u64 {
        self.0.seq
    }

    /// Number of payload octets.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "the length of the payload, not of a collection")]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Payload octets, in the middleware's own memory.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        if self.0.len == 0 || self.0.data.is_null() {
            return &[];
        }
        // SAFETY: the driver promises `len` octets at `data` until the callback returns or the view is released, and
        // `ViewBuf` and `Callbacks` hand out references that live no longer than that.
        unsafe { std::slice::from_raw_parts(self.0.data, self.0.len as usize) }
    }

    /// Identity of the writer within the session; `None` when the driver cannot tell.
    #[inline]
    pub fn writer(&self) -> Option<u64> {
        (self.0.writer != 0).then_some(self.0.writer)
    }

    /// Source time stamp, `CLOCK_REALTIME` ns; 0 = not known.
    #[inline]
    pub fn source_ns(&self) -> i64 {
        self.0.source_ns
    }

    /// Kernel software receive time stamp, `CLOCK_REALTIME` ns; 0 = not known.
    #[inline]
    pub fn kernel_rx_ns(&self) -> i64 {
        self.0.kernel_rx_ns
    }

    /// Hardware receive time stamp, ns of the NIC's clock; 0 = not known.
    #[inline]
    pub fn hw_rx_ns(&self) -> i64 {
        self.0.hw_rx_ns
    }

    /// Whether the middleware delivered the sample inside the process.
    #[inline]
    pub fn is_local(&self) -> bool {
        self.0.flags & TB_VIEW_LOCAL != 0
    }

    /// The C form.
    pub fn raw(&self) -> &tb_view {
        &self.0
    }
}

impl std::fmt::Debug for View {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("seq", &self.0.seq).field("len", &self.0.len).finish_non_exhaustive()
    }
}

/// Room for samples taken from a reader, made once and used for every `take`.
///
/// The samples in it stay valid until [`crate::Hot::release`] gets the buffer, or their end point is destroyed.
pub struct ViewBuf {
    pub(crate) views: Box<[tb_view]>,
    pub(crate) taken: usize,
}

// SAFETY: views are plain data; the octets behind them belong to the session, which is used from any thread.
unsafe impl Send for ViewBuf {}

impl ViewBuf {
    /// Room for `capacity` samples at a time.
    pub fn new(capacity: usize) -> ViewBuf {
        ViewBuf { views: vec![tb_view::default(); capacity.max(1)].into_boxed_slice(), taken: 0 }
    }

    /// Number of samples that are taken and not yet released.
    #[inline]
    pub fn len(&self) -> usize {
        self.taken
    }

    /// Whether nothing is taken.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    /// The samples taken.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &View> {
        // SAFETY: the first `taken` views were filled by the driver and are released only through `&mut self`.
        self.views[..self.taken].iter().map(|v| unsafe { View::from_raw(v) })
    }
}
