/* SPDX-License-Identifier: Apache-2.0
 *
 * The settings of Fast DDS that a whole process shares: delivery inside the process, and profiles that are read from
 * XML.
 */
#pragma once

#include "options.hpp"

namespace tb::library {

/* Applies the options to the process. Throws if another open session of this process needs another setting. */
void enter(const Options &options);
void leave();

/* Returns the current setting of delivery inside the process: off, user-data or full. */
const char *intra_process();

} // namespace tb::library
