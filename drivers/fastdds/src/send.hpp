/* SPDX-License-Identifier: Apache-2.0
 *
 * Sending of samples.
 */
#pragma once

#include <cstdint>

namespace tb {

class Endpoint;

/* Sends one sample: the payload is copied once, into the memory of Fast DDS. */
int send(Endpoint &endpoint, uint64_t seq, const uint8_t *data, uint64_t len);

} // namespace tb
