/* SPDX-License-Identifier: Apache-2.0 */
#include "loans.hpp"

#include <cstring>

#include "endpoint.hpp"
#include "fail.hpp"

namespace tb {

void Loans::prepare(size_t count)
{
    while (count--) {
        all_.emplace_back();
        all_.back().next = free_;
        free_ = &all_.back();
    }
}

Loan *Loans::get()
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (!free_)
        prepare(1); /* the loading program holds more samples than there is memory for */
    Loan *loan = free_;
    free_ = loan->next;
    loan->out = true;
    out_.fetch_add(1);
    return loan;
}

void Loans::put(Loan *loan)
{
    std::lock_guard<std::mutex> lock(mutex_);
    loan->out = false;
    loan->next = free_;
    free_ = loan;
    out_.fetch_sub(1);
}

void Loans::return_all(fdds::DataReader &reader)
{
    for (Loan &loan : all_)
        if (loan.out) {
            reader.return_loan(loan.data, loan.info);
            put(&loan);
        }
}

/* Makes a number from a GUID. Two writers with equal numbers are unlikely: this needs about 2^32 writers. */
static uint64_t number_of(const Guid &guid)
{
    uint64_t first = 0;
    uint32_t third = 0, entity = 0;
    std::memcpy(&first, guid.guidPrefix.value + 4, 8);
    std::memcpy(&third, guid.guidPrefix.value, 4);
    std::memcpy(&entity, guid.entityId.value, 4);
    uint64_t mixed = (first ^ third) * 0x9e3779b97f4a7c15u + entity;
    return mixed ? mixed : 1;
}

/* Fills the view of a valid sample. Returns false if the entry only reports the end of a writer, is damaged, or was
 * overwritten. */
static bool fill(Endpoint &e, const fdds::DataReader &reader, const Sample &sample, const fdds::SampleInfo &info,
                 tb_view &view)
{
    if (!info.valid_data)
        return false;
    if (!sample.whole) {
        e.damaged.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    /* Fast DDS expects the address after its header of 4 bytes. Only with data sharing may a writer have overwritten
     * the sample. */
    if (!reader.is_sample_valid(sample.whole + 4, &info)) {
        e.overwritten.fetch_add(1, std::memory_order_relaxed);
        return false;
    }
    const Guid &writer = info.sample_identity.writer_guid();
    bool local = e.options.transport == Transport::intra_process && e.options.config.empty();
    view = tb_view{};
    view.size = sizeof view;
    view.flags = local ? TB_VIEW_LOCAL : 0;
    view.seq = sample.seq;
    view.data = sample.data;
    view.len = sample.len;
    view.writer = number_of(writer);
    view.source_ns = info.source_timestamp.to_ns();
    return true;
}

int take(Endpoint &e, tb_view *out, uint32_t cap, uint32_t *n)
{
    *n = 0;
    if (!e.reader)
        return fail(TB_EINVAL, "end point %u is a writer", e.id);
    while (*n < cap) {
        Loan *loan = e.loans.get();
        uint32_t code = number(e.reader->take(loan->data, loan->info, 1));
        if (code != RET_OK) {
            e.loans.put(loan);
            if (code == RET_NO_DATA)
                break;
            return fail(TB_EIO, "take: Fast DDS returned code %u", code);
        }
        if (!fill(e, *e.reader, loan->data[0], loan->info[0], out[*n])) {
            e.reader->return_loan(loan->data, loan->info);
            e.loans.put(loan);
            continue;
        }
        out[*n].loan = reinterpret_cast<uintptr_t>(loan);
        (*n)++;
        e.received.fetch_add(1, std::memory_order_relaxed);
    }
    return TB_OK;
}

int release(Endpoint &e, tb_view *views, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        auto *loan = reinterpret_cast<Loan *>(static_cast<uintptr_t>(views[i].loan));
        if (!loan || !e.reader)
            continue;
        e.reader->return_loan(loan->data, loan->info);
        e.loans.put(loan);
        views[i].loan = 0;
    }
    return TB_OK;
}

void deliver(Endpoint &e, fdds::DataReader &reader)
{
    constexpr int32_t AT_ONCE = 16;
    fdds::LoanableSequence<Sample> data;
    fdds::SampleInfoSeq info;
    int32_t got = AT_ONCE;
    while (got == AT_ONCE && number(reader.take(data, info, AT_ONCE)) == RET_OK) {
        got = data.length();
        for (int32_t i = 0; i < got; i++) {
            tb_view view;
            if (!fill(e, reader, data[i], info[i], view))
                continue;
            e.received.fetch_add(1, std::memory_order_relaxed);
            e.host.on_sample(e.host.ctx, e.tag, &view);
        }
        reader.return_loan(data, info);
    }
}

} // namespace tb
