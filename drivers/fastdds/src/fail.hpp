/* SPDX-License-Identifier: Apache-2.0
 *
 * What went wrong: a code for the caller, a text for `last_error`.
 */
#pragma once

#include <string>

#include "tailbound_driver.h"

namespace tb {

/* A refusal outside the hot path. The text begins with the culprit. */
struct Fail {
    int code;
    std::string text;
};

/* Keeps a text for `last_error` of this thread and returns the code. Allocates nothing, so that the hot path may fail. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *last_error();

/* The refusal that names an option or policy with its value. */
Fail bad(int code, const tb_kv &kv, const std::string &why);

} // namespace tb
