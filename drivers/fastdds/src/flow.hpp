/* SPDX-License-Identifier: Apache-2.0
 *
 * How a writer's samples flow: the limit of what is unacknowledged, and the answer to `query("flow")`.
 */
#pragma once

#include <string>

#include "options.hpp"
#include "qos.hpp"

namespace tb {

class Endpoint;

/* A reliable writer with history keep-all waits when its history is full, and what is acknowledged leaves it: so the
 * history holds as many as may be unacknowledged. Other writers never wait, and are left alone. */
void limit_unacked(const Options &options, const Policies &policies, eprosima::fastdds::dds::DataWriterQos &qos);

/* The answer, as JSON. Throws for a reader. */
std::string flow(Endpoint &endpoint);

} // namespace tb
