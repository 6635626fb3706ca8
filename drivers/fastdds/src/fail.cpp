/* SPDX-License-Identifier: Apache-2.0 */
#include "fail.hpp"

#include <cstdarg>
#include <cstdio>

namespace tb {

static thread_local char last[2048];

int fail(int code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(last, sizeof last, format, arguments);
    va_end(arguments);
    return code;
}

const char *last_error()
{
    return last;
}

Fail bad(int code, const tb_kv &kv, const std::string &why)
{
    return Fail{code, std::string(kv.key) + "=" + kv.value + ": " + why};
}

} // namespace tb
