/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain ping-pong over Fast DDS 2.9, to measure the driver `fastdds` against: nothing of Tailbound is in it.
 *
 *   pingpong pong OWN PEER SECONDS
 *   pingpong ping OWN PEER SECONDS OCTETS FILE    stop-and-wait from the listener; round trips in us go to FILE
 *
 * OWN and PEER are IPv4 addresses. UDP only, reliable, keep-last 1, synchronous publishing.
 */
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>
#include <fastrtps/utils/IPLocator.h>

using namespace eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

struct Message {
    uint64_t number = 0;
    std::vector<uint8_t> octets;
};

/* struct { unsigned long long number; sequence<octet> octets; } in plain CDR, little-endian. */
struct MessageType : TopicDataType {
    explicit MessageType(uint32_t most)
    {
        setName("bench::Message");
        m_typeSize = 4 + 8 + 4 + most + 4;
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }
    bool serialize(void *data, rtps::SerializedPayload_t *to) override
    {
        const auto &m = *static_cast<Message *>(data);
        const uint32_t n = static_cast<uint32_t>(m.octets.size());
        if (to->max_size < 16 + n)
            return false;
        const uint8_t head[4] = {0, CDR_LE, 0, 0};
        std::memcpy(to->data, head, 4);
        std::memcpy(to->data + 4, &m.number, 8);
        std::memcpy(to->data + 12, &n, 4);
        std::memcpy(to->data + 16, m.octets.data(), n);
        to->encapsulation = CDR_LE;
        to->length = 16 + n;
        return true;
    }
    bool deserialize(rtps::SerializedPayload_t *from, void *data) override
    {
        auto &m = *static_cast<Message *>(data);
        uint32_t n = 0;
        if (from->length < 16)
            return false;
        std::memcpy(&m.number, from->data + 4, 8);
        std::memcpy(&n, from->data + 12, 4);
        if (n > from->length - 16)
            return false;
        m.octets.resize(n);
        std::memcpy(m.octets.data(), from->data + 16, n);
        return true;
    }
    std::function<uint32_t()> getSerializedSizeProvider(void *data) override
    {
        return [data] { return static_cast<uint32_t>(16 + static_cast<Message *>(data)->octets.size()); };
    }
    void *createData() override { return new Message; }
    void deleteData(void *data) override { delete static_cast<Message *>(data); }
    bool getKey(void *, rtps::InstanceHandle_t *, bool) override { return false; }
};

static int64_t now_ns()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Sends each message on, or counts the round trip and sends the next. */
struct Answer : DataReaderListener {
    DataWriter *writer = nullptr;
    bool ping = false;
    Message message;
    int64_t begin = 0;
    std::vector<int64_t> trips;
    std::atomic<bool> over{false};

    void send()
    {
        begin = now_ns();
        writer->write(&message);
    }
    void on_data_available(DataReader *reader) override
    {
        SampleInfo info;
        while (reader->take_next_sample(&message, &info) == ReturnCode_t::RETCODE_OK) {
            if (!info.valid_data)
                continue;
            if (!ping) {
                writer->write(&message);
                continue;
            }
            const int64_t end = now_ns();
            if (trips.size() < trips.capacity())
                trips.push_back(end - begin);
            message.number++;
            if (!over)
                send();
        }
    }
};

int main(int argc, char **argv)
{
    const bool ping = argc == 7 && std::string(argv[1]) == "ping";
    if (!ping && !(argc == 5 && std::string(argv[1]) == "pong")) {
        std::fprintf(stderr, "pingpong ping OWN PEER SECONDS OCTETS FILE | pingpong pong OWN PEER SECONDS\n");
        return 2;
    }
    const int seconds = std::atoi(argv[4]);
    auto *factory = DomainParticipantFactory::get_instance();

    DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
    qos.transport().use_builtin_transports = false;
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->interfaceWhiteList = {argv[2]};
    udp->non_blocking_send = false;
    qos.transport().user_transports.push_back(udp);
    rtps::Locator_t peer(LOCATOR_KIND_UDPv4, 0);
    rtps::IPLocator::setIPv4(peer, std::string(argv[3]));
    qos.wire_protocol().builtin.initialPeersList.push_back(peer);
    auto *participant = factory->create_participant(79, qos);
    if (!participant)
        return 1;
    TypeSupport type(new MessageType(65000));
    type.register_type(participant);
    auto *to = participant->create_topic(ping ? "there" : "back", "bench::Message", TOPIC_QOS_DEFAULT);
    auto *from = participant->create_topic(ping ? "back" : "there", "bench::Message", TOPIC_QOS_DEFAULT);

    DataWriterQos wqos = DATAWRITER_QOS_DEFAULT;
    wqos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    wqos.history().kind = KEEP_LAST_HISTORY_QOS;
    wqos.history().depth = 1;
    wqos.data_sharing().off();
    wqos.publish_mode().kind = SYNCHRONOUS_PUBLISH_MODE;
    DataReaderQos rqos = DATAREADER_QOS_DEFAULT;
    rqos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    rqos.history().kind = KEEP_LAST_HISTORY_QOS;
    rqos.history().depth = 1;
    rqos.data_sharing().off();

    Answer answer;
    answer.ping = ping;
    answer.message.octets.resize(ping ? std::atoi(argv[5]) : 65000);
    answer.trips.reserve(ping ? 2000000 : 0);
    answer.writer = participant->create_publisher(PUBLISHER_QOS_DEFAULT)->create_datawriter(to, wqos);
    auto *reader = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT)->create_datareader(from, rqos, &answer);
    if (!answer.writer || !reader)
        return 1;

    const int64_t deadline = now_ns() + (seconds + 10) * 1000000000LL;
    PublicationMatchedStatus out;
    SubscriptionMatchedStatus in;
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
        answer.writer->get_publication_matched_status(out);
        reader->get_subscription_matched_status(in);
    } while ((out.current_count == 0 || in.current_count == 0) && now_ns() < deadline);
    if (out.current_count == 0 || in.current_count == 0) {
        std::fprintf(stderr, "the other end was not found\n");
        return 1;
    }
    if (ping) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        answer.send();
        std::this_thread::sleep_for(std::chrono::seconds(seconds));
        answer.over = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        FILE *file = std::fopen(argv[6], "w");
        for (int64_t trip : answer.trips)
            std::fprintf(file, "%.3f\n", trip / 1e3);
        std::fclose(file);
    } else {
        /* Until the ping is gone. */
        while (out.current_count > 0 && now_ns() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            answer.writer->get_publication_matched_status(out);
        }
    }
    participant->delete_contained_entities();
    factory->delete_participant(participant);
    return 0;
}
