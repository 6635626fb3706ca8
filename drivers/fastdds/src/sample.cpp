/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.hpp"

#include <cstring>

namespace tb {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "samples are written as little-endian CDR");

static uint32_t padding(uint64_t len)
{
    return static_cast<uint32_t>(-len & 3);
}

SampleType::SampleType(const char *name)
{
    this->name(name);
}

void SampleType::prepare(uint64_t max_len, bool bounded)
{
    set_largest(static_cast<uint32_t>(HEAD + max_len + padding(max_len)));
    bounded_ = bounded;
}

bool SampleType::write(const void *data, Payload &payload)
{
    const Sample &sample = *static_cast<const Sample *>(data);
    uint32_t pad = padding(sample.len), len = static_cast<uint32_t>(sample.len);
    if (payload.max_size < HEAD + len + pad)
        return false;
    uint8_t *to = payload.data;
    const uint8_t header[4] = {0, CDR_LE, 0, static_cast<uint8_t>(pad)};
    std::memcpy(to, header, 4);
    std::memcpy(to + 4, &sample.seq, 8);
    std::memcpy(to + 12, &len, 4);
    if (len)
        std::memcpy(to + HEAD, sample.data, len);
    std::memset(to + HEAD + len, 0, pad);
    payload.encapsulation = CDR_LE;
    payload.length = HEAD + len + pad;
    return true;
}

bool SampleType::read(Payload &payload, void *data)
{
    Sample &sample = *static_cast<Sample *>(data);
    sample = Sample{0, nullptr, 0, nullptr};
    const uint8_t *from = payload.data;
    if (payload.length < HEAD || from[0] != 0 || from[1] > CDR_LE)
        return false;
    uint32_t len = 0;
    std::memcpy(&sample.seq, from + 4, 8);
    std::memcpy(&len, from + 12, 4);
    if (from[1] == CDR_BE) {
        sample.seq = __builtin_bswap64(sample.seq);
        len = __builtin_bswap32(len);
    }
    if (len > payload.length - HEAD)
        return false;
    sample.len = len;
    sample.data = from + HEAD;
    sample.whole = from;
    return true;
}

uint32_t SampleType::size_of(const void *data)
{
    const Sample &sample = *static_cast<const Sample *>(data);
    return static_cast<uint32_t>(HEAD + sample.len + padding(sample.len));
}

void *SampleType::make()
{
    return new Sample{0, nullptr, 0, nullptr};
}

void SampleType::unmake(void *data)
{
    delete static_cast<Sample *>(data);
}

} // namespace tb
