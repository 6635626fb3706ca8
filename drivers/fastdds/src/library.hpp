/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of Fast DDS that a whole process shares: delivery inside the process, and profiles read from XML.
 */
#pragma once

#include "options.hpp"

namespace tb::library {

/* Sets what the options ask for. Throws when another open session of this process needs another setting. */
void enter(const Options &options);
void leave();

/* Delivery inside the process as it is set now: off, user-data or full. */
const char *intra_process();

} // namespace tb::library
