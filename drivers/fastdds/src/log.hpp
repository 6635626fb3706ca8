/* SPDX-License-Identifier: Apache-2.0
 *
 * Log messages of Fast DDS, none of which is printed. The messages go to the loading programs of the open sessions. While an
 * entity is created, the messages are also stored, for the text of an error.
 */
#pragma once

#include <string>

#include "tailbound_driver.h"

namespace tb::log {

/* Redirects the log of Fast DDS to this module, until the process ends. */
void install();

/* Sends log messages of Fast DDS to this loading program too, until `forget` is called. */
void listen(const tb_host &host);
void forget(const tb_host &host);

/* Records the log messages of Fast DDS while this object exists. */
class Capture
{
public:
    Capture();
    ~Capture();
    Capture(const Capture &) = delete;
    Capture &operator=(const Capture &) = delete;

    /* The errors and warnings recorded so far, as one text; `otherwise` if there are none. */
    std::string complaints(const std::string &otherwise);
};

} // namespace tb::log
