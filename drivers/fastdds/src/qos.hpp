/* SPDX-License-Identifier: Apache-2.0
 *
 * QoS policies: from strings to Fast DDS, and back from what an entity really has. The strings that are read back are the
 * strings that are accepted, so that asked and effective can be compared.
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

namespace tb {

constexpr int64_t INFINITE = INT64_MAX;

/* A checked set of policies; what is not given has its default. */
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

    /* Sets all policies, or with `only_given` those that were named: the rest is the user's own configuration. */
    template <class Qos> void apply(Qos &qos, bool only_given) const;

private:
    void set(const tb_kv &kv, bool writer);
};

namespace qos {

std::string effective(const eprosima::fastdds::dds::DataWriterQos &qos);
std::string effective(const eprosima::fastdds::dds::DataReaderQos &qos);

/* The policies that discovery tells of a remote end point. */
std::map<std::string, std::string> discovered(const eprosima::fastdds::dds::WriterQos &qos);
std::map<std::string, std::string> discovered(const eprosima::fastdds::dds::ReaderQos &qos);

/* The same of an own end point. */
std::map<std::string, std::string> own(const eprosima::fastdds::dds::DataWriterQos &qos);
std::map<std::string, std::string> own(const eprosima::fastdds::dds::DataReaderQos &qos);

/* Name of a policy by its number in Fast DDS. */
std::string policy_name(uint32_t id);

/* For `describe`. */
std::string described();

} // namespace qos
} // namespace tb
