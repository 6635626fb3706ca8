/* SPDX-License-Identifier: Apache-2.0
 *
 * One data writer or reader of Fast DDS: its entities, its matched peers and its end.
 */
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>

#include "loans.hpp"
#include "options.hpp"
#include "participant.hpp"
#include "qos.hpp"
#include "wait.hpp"

namespace tb {

/* The end point that the loading program wants `create` to make. */
struct Wanted {
    int kind, mode;
    std::string topic;
    uint64_t max_len;
    const tb_kv *qos;
    size_t qos_count;
    uint64_t tag;
};

/* An end point. The end point stays in memory until its session ends, so that late calls find it closed. */
class Endpoint : public eprosima::fastdds::dds::DataWriterListener, public eprosima::fastdds::dds::DataReaderListener
{
public:
    using Writer = eprosima::fastdds::dds::DataWriter;
    using Reader = eprosima::fastdds::dds::DataReader;

    /* Makes the topic, then the writer or reader, then the entities for blocking. If this throws, no entity remains. */
    Endpoint(uint32_t id, const Wanted &wanted, const tb_host &host, const Options &options, Participant &participant,
             Guards &guards);
    ~Endpoint() override;

    int wait_matched(uint32_t peers, int64_t deadline_ns);
    int wait_acked(int64_t deadline_ns);

    /* Ends running calls, then deletes the entities. A reader whose samples are still lent is not deleted. */
    void close();

    /* Deletes the entities that `close` could not delete. All lent samples must have been released before. */
    void finish();

    std::vector<Guid> matched() const;

    const uint32_t id;
    const int kind, mode;
    const uint64_t max_len, tag;
    const tb_host host;
    const std::string topic;
    const Options &options;
    Participant &participant;
    bool never_blocks = false;

    Writer *writer = nullptr;
    Reader *reader = nullptr;
    std::unique_ptr<Set> waits; /* for this reader alone */
    eprosima::fastdds::dds::ReadCondition *condition = nullptr;
    Loans loans;

    std::atomic<bool> closed{false};
    std::atomic<uint32_t> inside{0}; /* number of calls that use the entities now */
    std::atomic<uint64_t> sent{0}, received{0}, damaged{0}, overwritten{0};

private:
    void make_writer(const Policies &policies);
    void make_reader(const Policies &policies);
    void make_waits();
    void delete_entities();
    bool counts(const Guid &peer) const;
    void set_matched(const Guid &peer, bool there);

    void on_data_available(Reader *) override;
    void on_publication_matched(Writer *, const eprosima::fastdds::dds::PublicationMatchedStatus &status) override;
    void on_subscription_matched(Reader *, const eprosima::fastdds::dds::SubscriptionMatchedStatus &status) override;

    Guards &guards_;
    eprosima::fastdds::dds::Topic *topic_ = nullptr;
    mutable std::mutex matched_mutex_;
    std::condition_variable matched_changed_;
    std::vector<Guid> matched_;
};

/* Guard: keeps the entities of an end point alive during a call. */
class Inside
{
public:
    explicit Inside(Endpoint &endpoint) : endpoint_(endpoint) { endpoint_.inside.fetch_add(1); }
    ~Inside() { endpoint_.inside.fetch_sub(1); }
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;
    bool open() const { return !endpoint_.closed.load(); }

private:
    Endpoint &endpoint_;
};

/* Stores the text for a closed end point and returns TB_ECLOSED. */
int closed(uint32_t id);

} // namespace tb
