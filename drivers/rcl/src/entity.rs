//! A publisher or subscription of rcl: the functions of rcl that exist for both kinds.

use core::ffi::CStr;

use tailbound_abi::side::Outcome;

use crate::context::Context;
use crate::guarded::Guarded;
use crate::library::Ros;
use crate::types::{EVENT_INCOMPATIBLE_QOS, EndOptions, Handle, InContext, IncompatibleQos, Profile, RET_OK};

/// A publisher or subscription. It ends when this value is dropped, which must be before its node ends.
pub struct Entity {
    pub ros: &'static Ros,
    /// Whether it is a publisher.
    pub is_writer: bool,
    handle: Box<Guarded<Handle>>,
    node: *mut InContext,
}

// SAFETY: functions of rcl may be called from any thread.
unsafe impl Send for Entity {}
// SAFETY: see `Send`.
unsafe impl Sync for Entity {}

impl Entity {
    /// Makes a publisher or subscription.
    ///
    /// # Errors
    /// The middleware refuses, or its structure is larger than the driver knows.
    pub fn new(
        ros: &'static Ros,
        context: &Context,
        topic: &CStr,
        options: &EndOptions,
        is_writer: bool,
    ) -> Outcome<Entity> {
        let (handle, node) = (Guarded::new(Handle::NONE), context.node());
        let (init, name, structure) = match is_writer {
            true => (ros.f.rcl_publisher_init, "rcl_publisher_init", "rcl_publisher_t"),
            false => (ros.f.rcl_subscription_init, "rcl_subscription_init", "rcl_subscription_t"),
        };
        // SAFETY: all pointers are valid during the call; the handle is zero, as rcl wants it.
        let result = unsafe { init(handle.pointer(), node, ros.type_support, topic.as_ptr(), options) };
        ros.check(name, result)?;
        let new = Entity { ros, is_writer, handle, node };
        new.handle.verify(structure)?;
        Ok(new)
    }

    /// The publisher or subscription, for functions of rcl.
    #[inline]
    pub fn pointer(&self) -> *mut Handle {
        self.handle.pointer()
    }

    /// Number of peers that rcl has matched.
    ///
    /// # Errors
    /// rcl does not answer.
    pub fn matched(&self) -> Outcome<usize> {
        let (f, mut count) = (&self.ros.f, 0);
        let (function, name) = match self.is_writer {
            true => (f.rcl_publisher_get_subscription_count, "rcl_publisher_get_subscription_count"),
            false => (f.rcl_subscription_get_publisher_count, "rcl_subscription_get_publisher_count"),
        };
        // SAFETY: all pointers are valid during the call.
        self.ros.check(name, unsafe { function(self.pointer(), &mut count) })?;
        Ok(count)
    }

    /// Number of entities of the other kind with this topic that were discovered, matched or not.
    ///
    /// # Errors
    /// rcl does not answer.
    pub fn discovered(&self, topic: &CStr) -> Outcome<usize> {
        let (f, mut count) = (&self.ros.f, 0);
        let (function, name) = match self.is_writer {
            true => (f.rcl_count_subscribers, "rcl_count_subscribers"),
            false => (f.rcl_count_publishers, "rcl_count_publishers"),
        };
        // SAFETY: all pointers are valid during the call.
        self.ros.check(name, unsafe { function(self.node, topic.as_ptr(), &mut count) })?;
        Ok(count)
    }

    /// The policies that the middleware has in effect.
    ///
    /// # Errors
    /// rcl does not answer.
    pub fn profile(&self) -> Outcome<Profile> {
        let (function, name) = match self.is_writer {
            true => (self.ros.f.rcl_publisher_get_actual_qos, "rcl_publisher_get_actual_qos"),
            false => (self.ros.f.rcl_subscription_get_actual_qos, "rcl_subscription_get_actual_qos"),
        };
        // SAFETY: rcl returns null or a profile that lives as long as the entity.
        let profile = unsafe { function(self.pointer()).as_ref() };
        profile.copied().ok_or_else(|| self.ros.error(name, 1))
    }

    /// The status of incompatible QoS; `None` if the middleware has no such event.
    pub fn incompatible(&self) -> Option<IncompatibleQos> {
        let (ros, mut event) = (self.ros, Handle::NONE);
        let mut status = IncompatibleQos { total: 0, change: 0, policy: 0 };
        let init = match self.is_writer {
            true => ros.f.rcl_publisher_event_init,
            false => ros.f.rcl_subscription_event_init,
        };
        // SAFETY: all pointers are valid during the calls; the status has the layout of both events.
        let result = unsafe {
            let mut result = init(&mut event, self.pointer(), EVENT_INCOMPATIBLE_QOS);
            if result == RET_OK {
                result = (ros.f.rcl_take_event)(&mut event, (&raw mut status).cast());
                ros.ignore((ros.f.rcl_event_fini)(&mut event));
            }
            result
        };
        ros.ignore(result);
        (result == RET_OK).then_some(status)
    }
}

impl Drop for Entity {
    fn drop(&mut self) {
        let end = if self.is_writer { self.ros.f.rcl_publisher_fini } else { self.ros.f.rcl_subscription_fini };
        // SAFETY: entity and node belong together and are valid; a callback was removed before.
        self.ros.ignore(unsafe { end(self.pointer(), self.node) });
    }
}
