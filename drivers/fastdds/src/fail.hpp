/* SPDX-License-Identifier: Apache-2.0
 *
 * Failed calls: a code for the caller and a text for `last_error`.
 */
#pragma once

#include <string>

#include "tailbound_driver.h"

namespace tb {

/* A failure outside the hot path. The text begins with the key of the option or policy that causes the failure. */
struct Fail {
    int code;
    std::string text;
};

/* Stores a text for `last_error` of this thread and returns the code. This function allocates nothing, so the hot
 * path may use it. */
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *last_error();

/* Makes the failure of an option or policy; the text contains its key and value. */
Fail bad(int code, const tb_kv &kv, const std::string &why);

} // namespace tb
