/* SPDX-License-Identifier: Apache-2.0
 *
 * A plain ping-pong over Fast DDS 2.9, against which the driver `fastdds` is measured. The program contains nothing of
 * Tailbound.
 *
 *   pingpong pong OWN PEER SECONDS
 *   pingpong ping OWN PEER SECONDS OCTETS FILE    stop-and-wait in the listener; writes round trips in us to FILE
 *
 * OWN and PEER are IPv4 addresses. UDP only, reliable, keep-last 1, synchronous publishing.
 */
#include "message.hpp"

#include <atomic>

/* Sends each message back (pong), or records the round trip and sends the next message (ping). */
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
    const double seconds = std::atof(argv[4]);
    auto *participant = ::participant(79, argv[2], argv[3]);
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
    wqos.durability().kind = VOLATILE_DURABILITY_QOS;
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

    const int64_t deadline = now_ns() + static_cast<int64_t>((seconds + 10) * 1e9);
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
        std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
        answer.over = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
        FILE *file = std::fopen(argv[6], "w");
        for (int64_t trip : answer.trips)
            std::fprintf(file, "%.3f\n", trip / 1e3);
        std::fclose(file);
    } else {
        /* Waits until the ping program has ended. */
        while (out.current_count > 0 && now_ns() < deadline) {
            std::this_thread::sleep_for(std::chrono::milliseconds(50));
            answer.writer->get_publication_matched_status(out);
        }
    }
    participant->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant);
    return 0;
}
