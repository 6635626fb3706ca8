/* SPDX-License-Identifier: Apache-2.0
 *
 * Waiting for samples: waitsets of read conditions, and the two guard conditions that end a wait.
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

/* Reads the time of CLOCK_MONOTONIC, in ns. */
int64_t now_ns();

/* Guard conditions that end the waits of a session: `wake` was called, or an end point is being destroyed. */
struct Guards {
    eprosima::fastdds::dds::GuardCondition woken, closing;
};

/* A waitset for readers, with memory for its result. Only one thread at a time may wait on it. */
struct Set {
    Set(std::vector<eprosima::fastdds::dds::Condition *> conditions, Guards &guards);

    const std::vector<eprosima::fastdds::dds::Condition *> conditions;
    eprosima::fastdds::dds::WaitSet native;
    eprosima::fastdds::dds::ConditionSeq active;
    std::atomic<bool> busy{false};
};

/* The waitsets for several readers that were requested so far; the waitsets exist as long as the session. */
class Sets
{
public:
    Set &of(Endpoint *const *readers, size_t n, Guards &guards);

    /* Deletes the waitsets that contain a destroyed end point. */
    void without(const Endpoint *endpoint);

private:
    std::mutex mutex_;
    std::vector<std::pair<std::vector<Endpoint *>, std::unique_ptr<Set>>> all_;
};

/* Blocks until one of the readers has a sample (bit i of `ready` is reader i), or until `wake` is called. */
int wait(Sets &sets, Guards &guards, Endpoint *const *readers, size_t n, int64_t deadline_ns, uint64_t *ready);

} // namespace tb
