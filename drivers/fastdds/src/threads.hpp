/* SPDX-License-Identifier: Apache-2.0
 *
 * Names for the threads of Fast DDS 2.9, which gives them none: they tell a thread's role to Tailbound and to `ps`.
 */
#pragma once

#include <string>

namespace tb::threads {

struct Role {
    const char *role, *name;
};

/* In the order of the description; the first match counts. */
constexpr Role ROLES[] = {
    {"receive", "fdds.recv"}, {"discovery", "fdds.meta"}, {"event", "fdds.event"},
    {"send", "fdds.send"},    {"other", "fdds.watch"},    {"other", "fdds.log"},
};

/* The named threads of this process, as JSON. */
std::string json();

} // namespace tb::threads
