/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples that a reader lends to the host: pointers into the payloads that Fast DDS holds, given back by `release`.
 */
#pragma once

#include <atomic>
#include <deque>
#include <mutex>

#include <fastdds/dds/core/LoanableSequence.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>

#include "sample.hpp"
#include "tailbound_driver.h"

namespace tb {

class Endpoint;

/* One sample, or none. */
struct Loan {
    eprosima::fastdds::dds::LoanableSequence<Sample> data;
    eprosima::fastdds::dds::SampleInfoSeq info;
    Loan *next = nullptr;
    bool out = false;
};

class Loans
{
public:
    /* Made before the hot path needs them. */
    void prepare(size_t count);

    Loan *get();
    void put(Loan *loan);
    size_t out() const { return out_.load(); }

    /* Gives back what the host never did. */
    void return_all(eprosima::fastdds::dds::DataReader &reader);

private:
    std::mutex mutex_;
    std::deque<Loan> all_;
    Loan *free_ = nullptr;
    std::atomic<size_t> out_{0};
};

/* Takes up to `cap` samples without blocking; each is lent until `release`. */
int take(Endpoint &endpoint, tb_view *out, uint32_t cap, uint32_t *n);

/* Gives taken samples back. */
int release(Endpoint &endpoint, tb_view *views, uint32_t n);

/* Hands all that is in the reader to the host. Every arrival leads here. */
void deliver(Endpoint &endpoint, eprosima::fastdds::dds::DataReader &reader);

} // namespace tb
