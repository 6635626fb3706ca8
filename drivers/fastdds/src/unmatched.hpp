/* SPDX-License-Identifier: Apache-2.0
 *
 * Explains why an end point has no peer: no other end point was seen, its type differs, a QoS policy does not fit, or
 * memory is not shared.
 */
#pragma once

#include <string>

namespace tb {

class Endpoint;

/* Makes the answer to `query("unmatched")`: JSON with reason, detail, and the policy if a policy is the cause. */
std::string unmatched(Endpoint &endpoint);

} // namespace tb
