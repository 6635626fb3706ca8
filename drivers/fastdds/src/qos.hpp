/* SPDX-License-Identifier: Apache-2.0
 *
 * Converts QoS policies from strings to Fast DDS, and from an entity back to strings. Strings that are read back have
 * the form of strings that are accepted, so requested and effective policies can be compared.
 */
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include <fastdds/dds/publisher/qos/DataWriterQos.hpp>
#include <fastdds/dds/subscriber/qos/DataReaderQos.hpp>

#include "json.hpp"
#include "tailbound_driver.h"
#include "versions.hpp"

namespace tb {

constexpr int64_t INFINITE = INT64_MAX;

/* A checked set of QoS policies; policies that are not given have their defaults. */
struct Policies {
    bool reliable = true;
    int64_t max_blocking_time_ns = 100000000;
    bool transient_local = false;
    bool keep_all = false;
    int32_t depth = 1;
    int64_t deadline_ns = INFINITE;
    int64_t latency_budget_ns = 0;
    int32_t transport_priority = 0;
    int64_t lifespan_ns = INFINITE;
    int32_t max_samples = -1; /* unlimited */
    std::set<std::string> given;

    static Policies parse(const tb_kv *kv, size_t n, bool writer);

    /* Sets all policies. With `only_given`, only the given policies are set, because the user's own configuration
     * sets the others. */
    template <class Qos> void apply(Qos &qos, bool only_given) const;

private:
    void set(const tb_kv &kv, bool writer);
};

namespace qos {

std::string effective(const eprosima::fastdds::dds::DataWriterQos &qos);
std::string effective(const eprosima::fastdds::dds::DataReaderQos &qos);

/* The QoS policies of a remote end point, as discovery reports them. */
std::map<std::string, std::string> discovered(const EndpointData &data);

/* The QoS policies of an end point of this session. */
std::map<std::string, std::string> own(const eprosima::fastdds::dds::DataWriterQos &qos);
std::map<std::string, std::string> own(const eprosima::fastdds::dds::DataReaderQos &qos);

/* Name of a QoS policy from its number in Fast DDS. */
std::string policy_name(uint32_t id);

/* Describes the QoS policies for `describe`, as JSON. */
std::string described();

} // namespace qos
} // namespace tb
