/* SPDX-License-Identifier: Apache-2.0
 *
 * Samples that a reader lends to the loading program: pointers into payloads of Fast DDS, which `release` returns.
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

/* One lent sample, or memory for one. */
struct Loan {
    eprosima::fastdds::dds::LoanableSequence<Sample> data;
    eprosima::fastdds::dds::SampleInfoSeq info;
    Loan *next = nullptr;
    bool out = false;
};

class Loans
{
public:
    /* Allocates memory for loans before the hot path needs it. */
    void prepare(size_t count);

    Loan *get();
    void put(Loan *loan);
    size_t out() const { return out_.load(); }

    /* Returns to Fast DDS the samples that the loading program did not release. */
    void return_all(eprosima::fastdds::dds::DataReader &reader);

private:
    std::mutex mutex_;
    std::deque<Loan> all_;
    Loan *free_ = nullptr;
    std::atomic<size_t> out_{0};
};

/* Takes at most `cap` samples without blocking; each sample is lent until `release`. */
int take(Endpoint &endpoint, tb_view *out, uint32_t cap, uint32_t *n);

/* Releases samples that were taken. */
int release(Endpoint &endpoint, tb_view *views, uint32_t n);

/* Passes all samples in the reader to the loading program. Every arriving sample leads to a call of this function. */
void deliver(Endpoint &endpoint, eprosima::fastdds::dds::DataReader &reader);

} // namespace tb
