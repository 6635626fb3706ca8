/* SPDX-License-Identifier: Apache-2.0
 *
 * Reads the values of options and policies. Every failure names the key of the option or policy.
 */
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "fail.hpp"

namespace tb {

/* Reads the value as a whole number from `low` to `high`. */
int64_t number(const tb_kv &kv, int code, int64_t low, int64_t high);

/* Reads the value as one of `words`; the result is the index of the word. */
size_t word(const tb_kv &kv, int code, std::initializer_list<const char *> words);

/* Returns the text without white space around it. */
std::string trimmed(const std::string &text);

/* Returns the items between commas, without white space around them; empty items are skipped. */
std::vector<std::string> list(const std::string &text);

} // namespace tb
