/* SPDX-License-Identifier: Apache-2.0
 *
 * Why an end point has no peer: nothing seen, another type, a QoS policy by name, memory that is not shared.
 */
#pragma once

#include <string>

namespace tb {

class Endpoint;

/* JSON: reason, detail, and policy where one is to blame. */
std::string unmatched(Endpoint &endpoint);

} // namespace tb
