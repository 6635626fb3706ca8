//! End points (writers and readers) of a driver's session.

/// An end point (a writer or reader) of a session: the number that the driver assigned. The number 0 means the session
/// itself.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint(pub u32);

impl Endpoint {
    /// The number that means the driver's session itself in [`Session::query`].
    pub const SESSION: Endpoint = Endpoint(0);
}
