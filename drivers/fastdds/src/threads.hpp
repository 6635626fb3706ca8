/* SPDX-License-Identifier: Apache-2.0
 *
 * Roles of the threads of Fast DDS by their names: Tailbound and `ps` show what a thread does by its name.
 */
#pragma once

#include <string>

#include "versions.hpp"

namespace tb::threads {

/* `name` is a pattern: `*` is any number of characters. */
struct Role {
    const char *role, *name;
};

/* Roles of threads by name, in the order of the description; the first match applies. By the rules of RTPS ports, which
 * are in the names of the threads that receive, user data comes to odd ports and discovery to even ones. */
#if TB_FASTDDS_NAMES_THREADS
constexpr Role ROLES[] = {
    {"receive", "dds.udp.*1"},  {"receive", "dds.udp.*3"},   {"receive", "dds.udp.*5"},  {"receive", "dds.udp.*7"},
    {"receive", "dds.udp.*9"},  {"discovery", "dds.udp.*"},  {"other", "dds.shm.wdog"},  {"receive", "dds.shm.*1"},
    {"receive", "dds.shm.*3"},  {"receive", "dds.shm.*5"},   {"receive", "dds.shm.*7"},  {"receive", "dds.shm.*9"},
    {"discovery", "dds.shm.*"}, {"receive", "dds.dsha.*"},   {"receive", "dds.tcp*"},    {"event", "dds.ev.*"},
    {"discovery", "dds.ds_ev.*"}, {"send", "dds.asyn.*"},    {"other", "dds.shmd.*"},    {"other", "dds.log"},
    {"other", "dds.tls.*"},
};
#else
constexpr Role ROLES[] = {
    {"receive", "fdds.recv"}, {"discovery", "fdds.meta"}, {"event", "fdds.event"},
    {"send", "fdds.send"},    {"other", "fdds.watch"},    {"other", "fdds.log"},
};
#endif

/* The named threads of this process, as JSON. */
std::string json();

} // namespace tb::threads
