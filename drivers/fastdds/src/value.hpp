/* SPDX-License-Identifier: Apache-2.0
 *
 * What the values of options and policies say. Every refusal names its key.
 */
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "fail.hpp"

namespace tb {

/* A whole number from `low` to `high`. */
int64_t number(const tb_kv &kv, int code, int64_t low, int64_t high);

/* One of `words`; the result is its place. */
size_t word(const tb_kv &kv, int code, std::initializer_list<const char *> words);

/* Without white space around it. */
std::string trimmed(const std::string &text);

/* The items between commas, trimmed; empty ones are passed over. */
std::vector<std::string> list(const std::string &text);

} // namespace tb
