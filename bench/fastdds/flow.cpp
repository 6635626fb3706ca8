/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain publisher and subscriber over Fast DDS 2.9, against which the flows of the driver `fastdds` are measured. The
 * program contains nothing of Tailbound.
 *
 *   flow pub OWN PEER SECONDS OCTETS UNACKED    writes for SECONDS, as fast as back-pressure allows
 *   flow sub OWN PEER SECONDS OCTETS UNACKED    takes in the listener, until the publisher has ended
 *
 * OWN and PEER are IPv4 addresses, or both `shm`. Reliable, keep-all, synchronous publishing. Each program prints, ten
 * times a second, the time, the number of its messages and its CPU time so far: `ns messages cpu_ns`.
 */
#include "message.hpp"

#include <algorithm>
#include <atomic>

static std::atomic<uint64_t> messages{0};
static std::atomic<uint64_t> out_of_sequence{0};

static int64_t cpu_ns()
{
    timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void tell()
{
    std::printf("%lld %llu %lld\n", static_cast<long long>(now_ns()),
                static_cast<unsigned long long>(messages.load(std::memory_order_relaxed)),
                static_cast<long long>(cpu_ns()));
    std::fflush(stdout);
}

struct Count : DataReaderListener {
    Message message;
    void on_data_available(DataReader *reader) override
    {
        SampleInfo info;
        while (reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK) {
            if (!info.valid_data)
                continue;
            uint64_t n = messages.load(std::memory_order_relaxed);
            if (message.number != n)
                out_of_sequence.store(out_of_sequence.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
            messages.store(n + 1, std::memory_order_relaxed);
        }
    }
};

/* Memory is allocated for the same number of samples as in the driver, so that the allocator favours neither side. */
template <class Qos> static void memory(Qos &qos, int octets, int max_samples)
{
    auto &limits = qos.resource_limits();
    limits.max_samples = limits.max_samples_per_instance = max_samples;
    limits.max_instances = 1;
    const int fit = (16 << 20) / (octets + 17);
    limits.allocated_samples = std::max(2, std::min(fit, max_samples > 0 ? std::min(1000, max_samples) : 1000));
    limits.extra_samples = std::max(2, std::min(fit, 16));
    qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    qos.history().kind = KEEP_ALL_HISTORY_QOS;
    qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    /* The default of a writer is transient-local: then acknowledged samples would stay until there is no room. */
    qos.durability().kind = VOLATILE_DURABILITY_QOS;
    qos.data_sharing().off();
}

static void publish(DataWriter *writer, double seconds, int octets)
{
    Message message;
    message.octets.resize(octets);
    std::atomic<bool> over{false};
    std::thread teller([&over] {
        for (; !over; std::this_thread::sleep_for(std::chrono::milliseconds(100)))
            tell();
    });
    for (const int64_t end = now_ns() + static_cast<int64_t>(seconds * 1e9); now_ns() < end;) {
        if (!writer->write(&message))
            continue;
        message.number++;
        messages.store(message.number, std::memory_order_relaxed);
    }
    over = true;
    teller.join();
}

int main(int argc, char **argv)
{
    const std::string mode = argc == 7 ? argv[1] : "";
    if (mode != "pub" && mode != "sub") {
        std::fprintf(stderr, "flow pub|sub OWN PEER SECONDS OCTETS UNACKED\n");
        return 2;
    }
    const double seconds = std::atof(argv[4]);
    const int octets = std::atoi(argv[5]);
    auto *participant = ::participant(79, argv[2], argv[3]);
    if (!participant)
        return 1;
    TypeSupport type(new MessageType(octets));
    type.register_type(participant);
    auto *topic = participant->create_topic("flow", "bench::Message", TOPIC_QOS_DEFAULT);
    const int64_t deadline = now_ns() + static_cast<int64_t>((seconds + 10) * 1e9);
    const auto pause = std::chrono::milliseconds(10);
    if (mode == "pub") {
        DataWriterQos qos = DATAWRITER_QOS_DEFAULT;
        qos.publish_mode().kind = SYNCHRONOUS_PUBLISH_MODE;
        qos.reliability().max_blocking_time = eprosima::fastrtps::Duration_t(10, 0);
        memory(qos, octets, std::atoi(argv[6]));
        auto *writer = participant->create_publisher(PUBLISHER_QOS_DEFAULT)->create_datawriter(topic, qos);
        PublicationMatchedStatus matched;
        for (; writer && matched.current_count == 0 && now_ns() < deadline; std::this_thread::sleep_for(pause))
            writer->get_publication_matched_status(matched);
        if (matched.current_count == 0)
            return std::fprintf(stderr, "the subscriber was not found\n"), 1;
        publish(writer, seconds, octets);
        writer->wait_for_acknowledgments(eprosima::fastrtps::Duration_t(5, 0));
    } else {
        DataReaderQos qos = DATAREADER_QOS_DEFAULT;
        memory(qos, octets, -1);
        Count count;
        auto *reader = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT)->create_datareader(topic, qos, &count);
        SubscriptionMatchedStatus matched;
        for (; reader && matched.current_count == 0 && now_ns() < deadline; std::this_thread::sleep_for(pause))
            reader->get_subscription_matched_status(matched);
        if (matched.current_count == 0)
            return std::fprintf(stderr, "the publisher was not found\n"), 1;
        for (int64_t next = now_ns(); matched.current_count > 0 && now_ns() < deadline; std::this_thread::sleep_for(pause)) {
            reader->get_subscription_matched_status(matched);
            if (now_ns() >= next) {
                tell();
                next += 100000000;
            }
        }
        if (out_of_sequence != 0)
            return std::fprintf(stderr, "%llu messages out of sequence\n",
                                static_cast<unsigned long long>(out_of_sequence.load())), 1;
        reader->set_listener(nullptr);
    }
    participant->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant);
    return 0;
}
