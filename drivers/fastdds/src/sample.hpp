/* SPDX-License-Identifier: Apache-2.0
 *
 * The wire type, and its serialised form on the way in and out:
 *
 *   module tailbound { @final struct Sample { unsigned long long seq; sequence<octet> payload; }; }
 *
 * as XCDR1: a header of 4 octets, `seq` (8), the length (4), the octets, and up to 3 of padding, whose number is in the
 * header. The same octets as those of the driver `cyclonedds`.
 */
#pragma once

#include <cstdint>

#include <fastdds/dds/topic/TopicDataType.hpp>

namespace tb {

/* Octets before the payload: header, `seq`, length. */
constexpr uint32_t HEAD = 16;

/* On the way out it points to the host's payload, on the way in into the payload that Fast DDS holds: nothing is copied
 * that Fast DDS does not copy itself. */
struct Sample {
    uint64_t seq;
    const uint8_t *data;
    uint64_t len;
    const uint8_t *whole; /* with the header; null for what cannot be read */
};

class SampleType : public eprosima::fastdds::dds::TopicDataType
{
public:
    explicit SampleType(const char *name);

    /* For the next end point: one type name has one type object, and Fast DDS reads both when it makes an end point. */
    void prepare(uint64_t max_len, bool bounded);

    bool serialize(void *data, eprosima::fastrtps::rtps::SerializedPayload_t *payload) override;
    bool deserialize(eprosima::fastrtps::rtps::SerializedPayload_t *payload, void *data) override;
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override;
    void *createData() override;
    void deleteData(void *data) override;
    bool getKey(void *, eprosima::fastrtps::rtps::InstanceHandle_t *, bool) override { return false; }
    bool is_bounded() const override { return bounded_; }

private:
    bool bounded_ = false;
};

} // namespace tb
