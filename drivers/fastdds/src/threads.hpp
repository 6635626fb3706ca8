/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the threads of Fast DDS 2.9, which does not name them: Tailbound and `ps` show the role of a thread by its
 * name.
 */
#pragma once

#include <string>

namespace tb::threads {

struct Role {
    const char *role, *name;
};

/* Roles of threads by name, in the order of the description; the first match applies. */
constexpr Role ROLES[] = {
    {"receive", "fdds.recv"}, {"discovery", "fdds.meta"}, {"event", "fdds.event"},
    {"send", "fdds.send"},    {"other", "fdds.watch"},    {"other", "fdds.log"},
};

/* The named threads of this process, as JSON. */
std::string json();

} // namespace tb::threads
