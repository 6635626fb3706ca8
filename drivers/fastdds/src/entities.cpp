/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes the writer or reader of an end point.
 */
#include <algorithm>

#include "endpoint.hpp"
#include "fail.hpp"
#include "flow.hpp"
#include "log.hpp"

namespace tb {

/* Number of samples that the loading program may hold before lending a sample allocates memory. */
constexpr size_t HELD = 64;

/* Number of samples of `size` bytes for which memory is allocated in advance: at least 2, at most `most`, and up to
 * 16 MiB. */
static int32_t ahead(uint64_t size, int64_t most)
{
    int64_t fit = static_cast<int64_t>((16u << 20) / (size + 1));
    return static_cast<int32_t>(std::max<int64_t>(2, std::min(fit, most)));
}

/* Sets the memory of a history: it is allocated before the first sample and grows if necessary. With a limit on
 * samples, which data sharing needs, the memory cannot grow. */
template <class Qos> static void memory(const Endpoint &e, Qos &qos)
{
    bool keep_all = qos.history().kind == fdds::KEEP_ALL_HISTORY_QOS;
    bool shared = qos.data_sharing().kind() != fdds::DataSharingKind::OFF;
    auto &limits = qos.resource_limits();
    /* With data sharing all memory is allocated with the writer, so the history must have a limit. */
    if (shared && keep_all && limits.max_samples <= 0)
        limits.max_samples = ahead(e.max_len + HEAD, 1000);
    limits.allocated_samples = ahead(e.max_len + HEAD, keep_all ? 1000 : 16);
    if (limits.max_samples > 0)
        limits.allocated_samples = std::min(limits.allocated_samples, limits.max_samples);
    limits.extra_samples = ahead(e.max_len + HEAD, 16);
    limits.max_instances = 1;
    limits.max_samples_per_instance = limits.max_samples;
    qos.endpoint().history_memory_policy = shared ? rtps::PREALLOCATED_MEMORY_MODE : rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
}

template <class Qos> static void share(const Endpoint &e, const Policies &policies, Qos &qos)
{
    if (e.options.transport != Transport::data_sharing) {
        qos.data_sharing().off();
        return;
    }
    if (policies.keep_all && policies.max_samples <= 0 && policies.given.count("resource_limits.max_samples"))
        throw Fail{TB_EQOS, "resource_limits.max_samples=unlimited: with history=keep-all data sharing needs a number, "
                            "because its memory is allocated in advance"};
    qos.data_sharing().on("");
    qos.data_sharing().add_domain_id(memory_identity());
}

template <class Qos> static bool is_bounded(const Qos &qos)
{
    return qos.data_sharing().kind() != fdds::DataSharingKind::OFF;
}

void Endpoint::make_writer(const Policies &policies)
{
    bool own = !options.config.empty();
    fdds::DataWriterQos qos = own ? participant.publisher->get_default_datawriter_qos() : fdds::DATAWRITER_QOS_DEFAULT;
    policies.apply(qos, own);
    if (!own) {
        qos.publish_mode().kind =
            options.async ? fdds::ASYNCHRONOUS_PUBLISH_MODE : fdds::SYNCHRONOUS_PUBLISH_MODE;
        heartbeat_period(qos.reliable_writer_qos().times) =
            Duration(static_cast<int32_t>(options.heartbeat_ms / 1000), options.heartbeat_ms % 1000 * 1000000);
        limit_unacked(options, policies, qos);
        share(*this, policies, qos);
        memory(*this, qos);
    }
    log::Capture capture;
    participant.prepare_type(max_len, is_bounded(qos));
    writer = participant.publisher->create_datawriter(topic_, qos, this, fdds::StatusMask::publication_matched());
    if (!writer)
        throw Fail{TB_EIO, "create_datawriter: " + capture.complaints("Fast DDS refuses and does not say why")};
}

void Endpoint::make_reader(const Policies &policies)
{
    bool own = !options.config.empty();
    fdds::DataReaderQos qos = own ? participant.subscriber->get_default_datareader_qos() : fdds::DATAREADER_QOS_DEFAULT;
    policies.apply(qos, own);
    if (!own) {
        share(*this, policies, qos);
        memory(*this, qos);
        auto &limits = qos.reader_resource_limits();
        limits.outstanding_reads_allocation.initial = HELD;
        limits.sample_infos_allocation.initial = HELD;
    }
    loans.prepare(HELD);
    log::Capture capture;
    participant.prepare_type(max_len, is_bounded(qos));
    fdds::StatusMask mask = fdds::StatusMask::subscription_matched();
    if (mode == TB_LISTENER)
        mask << fdds::StatusMask::data_available();
    reader = participant.subscriber->create_datareader(topic_, qos, this, mask);
    if (!reader)
        throw Fail{TB_EIO, "create_datareader: " + capture.complaints("Fast DDS refuses and does not say why")};
    if (mode == TB_BLOCK)
        make_waits();
}

void Endpoint::make_waits()
{
    condition = reader->create_readcondition(fdds::ANY_SAMPLE_STATE, fdds::ANY_VIEW_STATE, fdds::ANY_INSTANCE_STATE);
    if (!condition)
        throw Fail{TB_EIO, "create_readcondition: Fast DDS refuses and does not say why"};
    waits = std::make_unique<Set>(std::vector<fdds::Condition *>{condition}, guards_);
}

} // namespace tb
