/* SPDX-License-Identifier: Apache-2.0
 *
 * The wire type and its serialised form:
 *
 *   module tailbound { @final struct Sample { unsigned long long seq; sequence<octet> payload; }; }
 *
 * as XCDR1: a header of 4 bytes, `seq` (8 bytes), the length (4 bytes), the payload bytes, and up to 3 bytes of
 * padding, whose number is in the header. The driver `cyclonedds` sends the same bytes.
 */
#pragma once

#include <cstdint>

#include "versions.hpp"

namespace tb {

/* Number of bytes before the payload of a serialised sample: header, `seq`, length. */
constexpr uint32_t HEAD = 16;

/* A sample. When sending, `data` points to the loading program's payload; when receiving, it points into the payload that Fast
 * DDS owns. The driver makes no copy in addition to the copies of Fast DDS. */
struct Sample {
    uint64_t seq;
    const uint8_t *data;
    uint64_t len;
    const uint8_t *whole; /* the bytes with the header; null if they cannot be read */
};

class SampleType : public DataType<SampleType>
{
public:
    explicit SampleType(const char *name);

    /* Prepares the type for the next end point. A type name has one type object, and Fast DDS reads size and
     * boundedness from it when it makes an end point. */
    void prepare(uint64_t max_len, bool bounded);

    static bool write(const void *data, Payload &payload);
    static bool read(Payload &payload, void *data);
    static uint32_t size_of(const void *data);
    static void *make();
    static void unmake(void *data);
    bool is_bounded() const override { return bounded_; }

private:
    bool bounded_ = false;
};

} // namespace tb
