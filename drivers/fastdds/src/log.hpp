/* SPDX-License-Identifier: Apache-2.0
 *
 * What Fast DDS says: none of it is printed. It goes to the hosts of the open sessions, and while something is being made
 * it is kept, for the text of an error.
 */
#pragma once

#include <string>

#include "tailbound_driver.h"

namespace tb::log {

/* Takes the log of Fast DDS over, once for the life of the process. */
void install();

/* From now on messages go to this host too, until `forget`. */
void listen(const tb_host &host);
void forget(const tb_host &host);

/* Keeps what is said from now on. */
class Capture
{
public:
    Capture();
    ~Capture();
    Capture(const Capture &) = delete;
    Capture &operator=(const Capture &) = delete;

    /* Errors and warnings so far, one text; `otherwise` when there was none. */
    std::string complaints(const std::string &otherwise);
};

} // namespace tb::log
