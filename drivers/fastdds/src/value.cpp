/* SPDX-License-Identifier: Apache-2.0 */
#include "value.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace tb {

int64_t number(const tb_kv &kv, int code, int64_t low, int64_t high)
{
    char *end = nullptr;
    errno = 0;
    long long n = std::strtoll(kv.value, &end, 10);
    /* strtoll also accepts white space and a plus sign; here a number must begin with a digit or a minus sign. */
    bool begins = *kv.value == '-' || (*kv.value >= '0' && *kv.value <= '9');
    if (!begins || *end || errno || n < low || n > high)
        throw bad(code, kv,
                  "a whole number from " + std::to_string(low) + " to " + std::to_string(high) + " is expected");
    return n;
}

size_t word(const tb_kv &kv, int code, std::initializer_list<const char *> words)
{
    size_t place = 0;
    std::string all;
    for (const char *w : words) {
        if (std::strcmp(kv.value, w) == 0)
            return place;
        all += (place++ ? ", " : "") + std::string(w);
    }
    throw bad(code, kv, "expected one of: " + all);
}

std::string trimmed(const std::string &text)
{
    const char *space = " \t\r\n";
    size_t first = text.find_first_not_of(space);
    return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(space) - first + 1);
}

std::vector<std::string> list(const std::string &text)
{
    std::vector<std::string> all;
    std::istringstream in(text);
    for (std::string item; std::getline(in, item, ',');)
        if (!trimmed(item).empty())
            all.push_back(trimmed(item));
    return all;
}

} // namespace tb
