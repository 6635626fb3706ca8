//! The end points of a session, by their numbers.

use std::sync::{Mutex, OnceLock, PoisonError};

use super::fail::{Fail, Outcome, fail};
use crate::TB_ENOMEM;

/// Largest number of end points that one session can create.
const MOST: usize = 1024;

/// The end points of a session. Numbers begin at 1 and are never used twice, so that a late call about a destroyed end point
/// finds it, and not another one. Finding an end point takes no lock.
#[derive(Debug)]
pub struct Endpoints<E> {
    places: Box<[OnceLock<E>]>,
    /// Number of end points created so far.
    created: Mutex<u32>,
}

impl<E> Default for Endpoints<E> {
    fn default() -> Self {
        Endpoints { places: (0..MOST).map(|_| OnceLock::new()).collect(), created: Mutex::new(0) }
    }
}

impl<E> Endpoints<E> {
    /// Returns an end point that was created; it may be destroyed.
    ///
    /// # Errors
    /// `TB_ECLOSED` if no end point has had this number.
    #[inline]
    pub fn get(&self, id: u32) -> Outcome<&E> {
        let place = self.places.get((id as usize).wrapping_sub(1)).and_then(OnceLock::get);
        place.ok_or_else(|| Fail::closed(id))
    }

    /// All end points that were created, also those that are destroyed.
    pub fn all(&self) -> impl Iterator<Item = &E> {
        self.places.iter().map_while(OnceLock::get)
    }

    /// Makes the next end point, which gets the number that `make` is called with. End points are made one at a time.
    ///
    /// # Errors
    /// There are 1,024 end points already, or the error of `make`; then the number is used by the next end point.
    pub fn add(&self, make: impl FnOnce(u32) -> Outcome<E>) -> Outcome<u32> {
        let mut created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(place) = self.places.get(*created as usize) else {
            return fail(TB_ENOMEM, format!("a session creates at most {MOST} end points"));
        };
        let endpoint = make(*created + 1)?;
        *created += 1;
        let _ = place.set(endpoint);
        Ok(*created)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TB_ECLOSED, TB_EIO};

    #[test]
    fn numbers_are_given_in_order_and_failed_ones_again() {
        let all: Endpoints<u32> = Endpoints::default();
        assert_eq!(all.add(Ok).unwrap(), 1);
        assert_eq!(all.add(|_| fail(TB_EIO, "refused")).unwrap_err().code, TB_EIO);
        assert_eq!((all.add(Ok).unwrap(), all.get(2).copied().unwrap()), (2, 2));
        assert_eq!([0, 3, u32::MAX].map(|id| all.get(id).unwrap_err().code), [TB_ECLOSED; 3]);
        assert_eq!(all.all().copied().collect::<Vec<_>>(), [1, 2]);
        (3..=MOST as u32).for_each(|id| assert_eq!(all.add(Ok).unwrap(), id));
        assert_eq!(all.add(Ok).unwrap_err().code, TB_ENOMEM);
    }
}
