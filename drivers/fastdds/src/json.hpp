/* SPDX-License-Identifier: Apache-2.0
 *
 * Writes the JSON of the answers to `query`.
 */
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace tb {

inline std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (char c : text) {
        char escape[8];
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
            out += escape;
        } else {
            out += c;
        }
    }
    return out + '"';
}

inline std::string array(const std::vector<std::string> &values)
{
    std::string out = "[";
    for (const std::string &value : values)
        out += (out.size() > 1 ? "," : "") + value;
    return out + ']';
}

inline std::string strings(const std::vector<std::string> &texts)
{
    std::vector<std::string> values;
    for (const std::string &text : texts)
        values.push_back(quoted(text));
    return array(values);
}

class Object
{
public:
    /* Adds a value that is already JSON. */
    Object &raw(const std::string &key, const std::string &value)
    {
        text += (text.size() > 1 ? "," : "") + quoted(key) + ":" + value;
        return *this;
    }
    Object &put(const std::string &key, const std::string &value) { return raw(key, quoted(value)); }
    Object &put(const std::string &key, const char *value) { return raw(key, quoted(value)); }
    Object &put(const std::string &key, int64_t value) { return raw(key, std::to_string(value)); }
    std::string str() const { return text + '}'; }

private:
    std::string text = "{";
};

} // namespace tb
