/* SPDX-License-Identifier: Apache-2.0
 *
 * Send settings of a writer: the limit of unacknowledged messages, and the answer to `query("flow")`.
 */
#pragma once

#include <string>

#include "options.hpp"
#include "qos.hpp"

namespace tb {

class Endpoint;

/* Sets the limit of unacknowledged messages. A reliable writer with history keep-all waits if its history is full,
 * and acknowledged messages leave the history, so the size of the history is the limit. Other writers never wait and
 * are not changed. */
void limit_unacked(const Options &options, const Policies &policies, eprosima::fastdds::dds::DataWriterQos &qos);

/* Makes the answer to `query("flow")` as JSON. Throws if the end point is a reader. */
std::string flow(Endpoint &endpoint);

} // namespace tb
