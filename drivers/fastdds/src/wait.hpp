/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for samples: sets of read conditions, and the two guard conditions that end a wait.
 */
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <fastdds/dds/core/condition/GuardCondition.hpp>
#include <fastdds/dds/core/condition/WaitSet.hpp>

namespace tb {

class Endpoint;

/* CLOCK_MONOTONIC, ns. */
int64_t now_ns();

/* What ends the waits of a session: `wake` was called; an end point is being destroyed. */
struct Guards {
    eprosima::fastdds::dds::GuardCondition woken, closing;
};

/* A set over readers, and room for its answer. One thread waits on it at a time. */
struct Set {
    Set(std::vector<eprosima::fastdds::dds::Condition *> conditions, Guards &guards);

    const std::vector<eprosima::fastdds::dds::Condition *> conditions;
    eprosima::fastdds::dds::WaitSet native;
    eprosima::fastdds::dds::ConditionSeq active;
    std::atomic<bool> busy{false};
};

/* The sets over several readers that were asked for, kept for the session's life. */
class Sets
{
public:
    Set &of(Endpoint *const *readers, size_t n, Guards &guards);

    /* Forgets those that hold an end point that is gone. */
    void without(const Endpoint *endpoint);

private:
    std::mutex mutex_;
    std::vector<std::pair<std::vector<Endpoint *>, std::unique_ptr<Set>>> all_;
};

/* Blocks until one of the readers has a sample (bit i is reader i), or `wake`. */
int wait(Sets &sets, Guards &guards, Endpoint *const *readers, size_t n, int64_t deadline_ns, uint64_t *ready);

} // namespace tb
