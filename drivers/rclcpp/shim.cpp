/* SPDX-License-Identifier: Apache-2.0
 *
 * Nodes, executors, publishers and subscriptions of rclcpp behind the functions of shim.h.
 */
#include "shim.h"

#include <pthread.h>
#include <time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <tailbound_msgs/msg/sample.hpp>

#if __has_include(<rclcpp/experimental/executors/events_executor/events_executor.hpp>)
#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>
#define HAS_EVENTS_EXECUTOR 1
#endif

namespace {

using Sample = tailbound_msgs::msg::Sample;
using Serialized = rclcpp::SerializedMessage;

/* Bytes of a serialized message before the payload: encapsulation, number of the message, length of the payload. */
constexpr size_t NUMBER = 4, LENGTH = 12, PAYLOAD = 16;
/* Messages that can wait for the timer. */
constexpr size_t WAITING = 64;

thread_local std::string error_text;
/* When the executor took the message for which it runs a callback now; 0 = it did not take one from the middleware. */
thread_local int64_t taken_ns = 0;

int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Runs a function that may throw; an exception becomes a text and the result `failed`. */
template <class Result, class Run> Result guarded(Result failed, Run run)
{
    try {
        return run();
    } catch (const std::exception &e) {
        error_text = e.what();
    } catch (...) {
        error_text = "an exception of unknown type";
    }
    return failed;
}

/* A subscription that knows when its messages were taken. */
class Timed final : public rclcpp::Subscription<Sample>
{
public:
    using Subscription::Subscription;

    void handle_message(std::shared_ptr<void> &message, const rclcpp::MessageInfo &info) override
    {
        taken_ns = now_ns();
        Subscription::handle_message(message, info);
        taken_ns = 0;
    }

    void handle_serialized_message(const std::shared_ptr<Serialized> &message, const rclcpp::MessageInfo &info) override
    {
        taken_ns = now_ns();
        Subscription::handle_serialized_message(message, info);
        taken_ns = 0;
    }

    void handle_loaned_message(void *message, const rclcpp::MessageInfo &info) override
    {
        taken_ns = now_ns();
        Subscription::handle_loaned_message(message, info);
        taken_ns = 0;
    }
};

/* What the middleware said about peers with incompatible QoS. */
struct Incompatible {
    std::atomic<int32_t> total{-1}, policy{0};

    template <class Info> void set(const Info &info)
    {
        policy = info.last_policy_kind;
        total = info.total_count;
    }
};

struct Session {
    explicit Session(const tbr_options &wanted);
    ~Session();
    rclcpp::CallbackGroup::SharedPtr group();

    const tbr_options options;
    rclcpp::Context::SharedPtr context;
    rclcpp::Node::SharedPtr node;
    std::unique_ptr<rclcpp::Executor> executor;
    std::atomic<bool> ended{false};
    std::thread thread;
};

/* A publisher or subscription. */
struct End {
    explicit End(Session &session) : session(session), incompatible(std::make_shared<Incompatible>()) {}
    virtual ~End() = default;
    virtual void status(tbr_status &status) const = 0;

    Session &session;
    std::shared_ptr<Incompatible> incompatible;
};

/* Drops something that the executor may hold, and waits until the executor has dropped it too, at most for a second: it holds
 * what it waits for until it looks at its nodes again. */
template <class Held> void release(Session &session, std::shared_ptr<Held> &held)
{
    std::weak_ptr<Held> left = held;
    held.reset();
    session.node->get_node_base_interface()->get_notify_guard_condition().trigger();
    for (int looks = 0; !left.expired() && looks < 10000; looks++)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
}

/* A session whose messages stay inside the process has its context in common with the other sessions of its domain. */
rclcpp::Context::SharedPtr context_of(const tbr_options &options)
{
    static std::mutex mutex;
    static std::map<uint64_t, std::weak_ptr<rclcpp::Context>> shared;
    std::lock_guard<std::mutex> lock(mutex);
    if (options.intra_process)
        if (auto context = shared[options.domain].lock())
            return context;
    auto context = std::make_shared<rclcpp::Context>();
    rclcpp::InitOptions init;
    init.set_domain_id(options.domain);
    init.auto_initialize_logging(false);
    init.shutdown_on_signal = false;
    context->init(0, nullptr, init);
    if (options.intra_process)
        shared[options.domain] = context;
    return context;
}

std::unique_ptr<rclcpp::Executor> executor_of(const tbr_options &options, const rclcpp::Context::SharedPtr &context)
{
    rclcpp::ExecutorOptions executor;
    executor.context = context;
    switch (options.executor) {
    case 0:
        return std::make_unique<rclcpp::executors::SingleThreadedExecutor>(executor);
    case 1:
        return std::make_unique<rclcpp::executors::MultiThreadedExecutor>(executor, options.threads);
    default:
#ifdef HAS_EVENTS_EXECUTOR
        using namespace rclcpp::experimental::executors;
        return std::make_unique<EventsExecutor>(std::make_unique<SimpleEventsQueue>(), false, executor);
#else
        throw std::runtime_error("executor=events: this rclcpp has no EventsExecutor; it came with Iron");
#endif
    }
}

Session::Session(const tbr_options &wanted) : options(wanted), context(context_of(options))
{
    rclcpp::NodeOptions node_options;
    node_options.context(context).use_intra_process_comms(options.intra_process != 0);
    node = std::make_shared<rclcpp::Node>(options.node, node_options);
    executor = executor_of(options, context);
    executor->add_node(node);
    thread = std::thread([this] {
        /* Threads that the executor makes get the same name. */
        pthread_setname_np(pthread_self(), "rclcpp.exec");
        guarded(0, [this] {
            executor->spin();
            return 0;
        });
        ended = true;
    });
}

Session::~Session()
{
    /* An executor that has not begun to spin does not remember that it was cancelled. */
    while (!ended) {
        executor->cancel();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    thread.join();
    executor->remove_node(node, false);
    executor.reset();
    node.reset();
    if (!options.intra_process)
        context->shutdown("the session ends");
}

/* The callback group of a new publisher or subscription; null = the group of the node. */
rclcpp::CallbackGroup::SharedPtr Session::group()
{
    if (options.callback_groups == 0)
        return nullptr;
    auto type = options.callback_groups == 1 ? rclcpp::CallbackGroupType::MutuallyExclusive
                                             : rclcpp::CallbackGroupType::Reentrant;
    return node->create_callback_group(type);
}

class Writer final : public End
{
public:
    Writer(Session &session, const std::string &topic, const rclcpp::QoS &qos, uint64_t max_len) : End(session)
    {
        auto make = [&](bool events) {
            rclcpp::PublisherOptions options;
            options.use_default_callbacks = false;
            options.callback_group = group_ = session.group();
            if (events)
                options.event_callbacks.incompatible_qos_callback =
                    [known = incompatible](rclcpp::QOSOfferedIncompatibleQoSInfo &info) { known->set(info); };
            return session.node->create_publisher<Sample>(topic, qos, options);
        };
        /* The executor may run the callback before this thread goes on. */
        incompatible->total = 0;
        try {
            publisher_ = make(true);
        } catch (const rclcpp::UnsupportedEventTypeException &) {
            incompatible->total = -1;
            publisher_ = make(false);
        }
        if (session.options.loan && !publisher_->can_loan_messages())
            throw std::runtime_error("loan=on: this middleware lends no memory for messages whose size is not fixed, such as "
                                     "tailbound_msgs/msg/Sample");
        if (session.options.serialized) {
            serialized_.reserve(PAYLOAD + max_len);
        } else {
            sample_.payload.reserve(max_len);
        }
        if (session.options.send_by == 1) {
            for (Waiting &place : waiting_)
                place.data.reserve(max_len);
            /* The timer runs from the beginning, before this thread knows it. */
            timer_ = session.node->create_wall_timer(
                std::chrono::nanoseconds(0),
                [this] {
                    if (begun_)
                        publish_waiting();
                },
                group_);
            timer_->cancel();
            begun_ = true;
        }
    }

    ~Writer() override
    {
        if (timer_) {
            timer_->cancel();
            release(session, timer_);
        }
        release(session, publisher_);
    }

    int send(uint64_t seq, const uint8_t *data, uint64_t len)
    {
        if (!timer_) {
            std::lock_guard<std::mutex> lock(publishing_);
            publish(seq, data, len);
            return TBR_OK;
        }
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (count_ == WAITING)
                return TBR_FULL;
            Waiting &place = waiting_[(first_ + count_++) % WAITING];
            place.seq = seq;
            place.data.assign(data, data + len);
        }
        timer_->reset();
        return TBR_OK;
    }

    int acked(int64_t timeout_ns)
    {
        const auto until = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
        for (bool sent = false; !sent;) {
            {
                std::lock_guard<std::mutex> lock(mutex_);
                sent = count_ == 0;
            }
            if (!sent && std::chrono::steady_clock::now() >= until)
                return TBR_TIMED_OUT;
            if (!sent)
                std::this_thread::sleep_for(std::chrono::microseconds(100));
        }
        const auto left = until - std::chrono::steady_clock::now();
        const auto wait = std::max<std::chrono::nanoseconds>(left, std::chrono::nanoseconds(0));
        return publisher_->wait_for_all_acked(wait) ? TBR_OK : TBR_TIMED_OUT;
    }

    void status(tbr_status &status) const override
    {
        status.qos = publisher_->get_actual_qos().get_rmw_qos_profile();
        status.matched = publisher_->get_subscription_count();
        status.matched_inside = publisher_->get_intra_process_subscription_count();
        status.discovered = session.node->count_subscribers(publisher_->get_topic_name());
        status.failed = failed_;
    }

private:
    struct Waiting {
        uint64_t seq = 0;
        std::vector<uint8_t> data;
    };

    static void fill(Sample &sample, uint64_t seq, const uint8_t *data, uint64_t len)
    {
        sample.seq = seq;
        sample.payload.assign(data, data + len);
    }

    void publish(uint64_t seq, const uint8_t *data, uint64_t len)
    {
        if (session.options.serialized) {
            auto &raw = serialized_.get_rcl_serialized_message();
            const uint8_t head[NUMBER] = {0, 1, 0, 0}; /* plain CDR, the least significant byte first */
            const auto bytes = static_cast<uint32_t>(len);
            std::memcpy(raw.buffer, head, NUMBER);
            std::memcpy(raw.buffer + NUMBER, &seq, sizeof seq);
            std::memcpy(raw.buffer + LENGTH, &bytes, sizeof bytes);
            std::memcpy(raw.buffer + PAYLOAD, data, len);
            raw.buffer_length = PAYLOAD + len;
            publisher_->publish(serialized_);
        } else if (session.options.loan) {
            auto lent = publisher_->borrow_loaned_message();
            fill(lent.get(), seq, data, len);
            publisher_->publish(std::move(lent));
        } else if (session.options.intra_process) {
            auto own = std::make_unique<Sample>();
            fill(*own, seq, data, len);
            publisher_->publish(std::move(own));
        } else {
            fill(sample_, seq, data, len);
            publisher_->publish(sample_);
        }
    }

    /* Publishes what waits, in the callback of the timer. */
    void publish_waiting()
    {
        /* Before the first look, so that a message that comes meanwhile starts the timer again. */
        timer_->cancel();
        std::lock_guard<std::mutex> publishing(publishing_);
        for (;;) {
            Waiting *next;
            {
                std::lock_guard<std::mutex> lock(mutex_);
                if (count_ == 0)
                    return;
                next = &waiting_[first_];
            }
            if (guarded(TBR_FAILED, [&] {
                    publish(next->seq, next->data.data(), next->data.size());
                    return TBR_OK;
                }) != TBR_OK)
                failed_++;
            std::lock_guard<std::mutex> lock(mutex_);
            first_ = (first_ + 1) % WAITING;
            count_--;
        }
    }

    rclcpp::CallbackGroup::SharedPtr group_;
    rclcpp::Publisher<Sample>::SharedPtr publisher_;
    std::mutex publishing_; /* held while a message is written and published */
    Sample sample_;
    Serialized serialized_;
    rclcpp::TimerBase::SharedPtr timer_;
    std::atomic<bool> begun_{false};
    std::mutex mutex_; /* of the messages that wait */
    std::array<Waiting, WAITING> waiting_;
    size_t first_ = 0, count_ = 0;
    std::atomic<uint64_t> failed_{0};
};

/* The receiver of messages, which the callback of the subscription keeps. */
class Target
{
public:
    Target(tbr_on_message on_message, void *context, tbr_drop drop)
        : on_message_(on_message), context_(context), drop_(drop)
    {
    }
    ~Target() { drop_(context_); }
    Target(const Target &) = delete;
    Target &operator=(const Target &) = delete;

    void give(uint64_t seq, const uint8_t *data, uint64_t len, const rclcpp::MessageInfo &info) const
    {
        const rmw_message_info_t &rmw = info.get_rmw_message_info();
        uint64_t halves[2];
        static_assert(sizeof rmw.publisher_gid.data >= sizeof halves, "an identity has at least 16 bytes");
        std::memcpy(halves, rmw.publisher_gid.data, sizeof halves);
        const int64_t source_ns = rmw.source_timestamp > 0 ? rmw.source_timestamp : 0;
        const tbr_message message{seq, data, len, halves[0] ^ halves[1], source_ns, taken_ns};
        on_message_(context_, &message);
    }

    /* Messages of another program can be anything. */
    void give(const Serialized &serialized, const rclcpp::MessageInfo &info) const
    {
        const auto &raw = serialized.get_rcl_serialized_message();
        uint64_t seq;
        uint32_t len;
        if (raw.buffer_length < PAYLOAD || raw.buffer[1] != 1)
            return;
        std::memcpy(&seq, raw.buffer + NUMBER, sizeof seq);
        std::memcpy(&len, raw.buffer + LENGTH, sizeof len);
        if (len <= raw.buffer_length - PAYLOAD)
            give(seq, raw.buffer + PAYLOAD, len, info);
    }

private:
    const tbr_on_message on_message_;
    void *const context_;
    const tbr_drop drop_;
};

class Reader final : public End
{
public:
    Reader(Session &session, const std::string &topic, const rclcpp::QoS &qos, std::shared_ptr<Target> target)
        : End(session)
    {
        rclcpp::SubscriptionOptions options;
        options.use_default_callbacks = false;
        options.callback_group = group_ = session.group();
        options.event_callbacks.incompatible_qos_callback =
            [known = incompatible](rclcpp::QOSRequestedIncompatibleQoSInfo &info) { known->set(info); };
        rclcpp::AnySubscriptionCallback<Sample> callback(*options.get_allocator());
        if (session.options.serialized) {
            callback.set([target](std::shared_ptr<const Serialized> message, const rclcpp::MessageInfo &info) {
                target->give(*message, info);
            });
        } else {
            callback.set([target](std::shared_ptr<const Sample> message, const rclcpp::MessageInfo &info) {
                target->give(message->seq, message->payload.data(), message->payload.size(), info);
            });
        }
        auto make = [&] {
            rclcpp::SubscriptionFactory factory{[&](rclcpp::node_interfaces::NodeBaseInterface *base,
                                                    const std::string &name, const rclcpp::QoS &policies) {
                auto made = std::make_shared<Timed>(
                    base, rclcpp::get_message_type_support_handle<Sample>(), name, policies, callback, options,
                    rclcpp::message_memory_strategy::MessageMemoryStrategy<Sample>::create_default());
                made->post_init_setup(base, policies, options);
                return std::static_pointer_cast<rclcpp::SubscriptionBase>(made);
            }};
            return session.node->get_node_topics_interface()->create_subscription(topic, factory, qos);
        };
        incompatible->total = 0;
        try {
            subscription_ = make();
        } catch (const rclcpp::UnsupportedEventTypeException &) {
            incompatible->total = -1;
            options.event_callbacks = {};
            subscription_ = make();
        }
        session.node->get_node_topics_interface()->add_subscription(subscription_, group_);
    }

    ~Reader() override { release(session, subscription_); }

    void status(tbr_status &status) const override
    {
        status.qos = subscription_->get_actual_qos().get_rmw_qos_profile();
        status.matched = subscription_->get_publisher_count();
        status.discovered = session.node->count_publishers(subscription_->get_topic_name());
    }

private:
    rclcpp::CallbackGroup::SharedPtr group_;
    rclcpp::SubscriptionBase::SharedPtr subscription_;
};

rclcpp::QoS policies(const rmw_qos_profile_t &profile)
{
    return rclcpp::QoS(rclcpp::QoSInitialization::from_rmw(profile), profile);
}

const char *last_error()
{
    return error_text.c_str();
}

void *open_session(const tbr_options *options)
{
    return guarded<void *>(nullptr, [&] { return new Session(*options); });
}

void close_session(void *session)
{
    guarded(0, [&] {
        delete static_cast<Session *>(session);
        return 0;
    });
}

void *create_writer(void *session, const char *topic, const rmw_qos_profile_t *qos, uint64_t max_len)
{
    return guarded<void *>(nullptr, [&]() -> void * {
        End *made = new Writer(*static_cast<Session *>(session), topic, policies(*qos), max_len);
        return made;
    });
}

void *create_reader(void *session, const char *topic, const rmw_qos_profile_t *qos, tbr_on_message on_message,
                    void *context, tbr_drop drop)
{
    return guarded<void *>(nullptr, [&]() -> void * {
        auto target = std::make_shared<Target>(on_message, context, drop);
        End *made = new Reader(*static_cast<Session *>(session), topic, policies(*qos), std::move(target));
        return made;
    });
}

Writer &writer(void *end)
{
    return static_cast<Writer &>(*static_cast<End *>(end));
}

int send_sample(void *end, uint64_t seq, const uint8_t *data, uint64_t len)
{
    return guarded(TBR_FAILED, [&] { return writer(end).send(seq, data, len); });
}

int acked(void *end, int64_t timeout_ns)
{
    return guarded(TBR_FAILED, [&] { return writer(end).acked(timeout_ns); });
}

int status(void *end, tbr_status *status)
{
    return guarded(TBR_FAILED, [&] {
        const End &known = *static_cast<End *>(end);
        *status = tbr_status{};
        known.status(*status);
        status->incompatible = known.incompatible->total;
        status->policy = known.incompatible->policy;
        return TBR_OK;
    });
}

void destroy(void *end)
{
    guarded(0, [&] {
        delete static_cast<End *>(end);
        return 0;
    });
}

constexpr tbr_table TABLE = {
    TBR_VERSION, 0,      DISTRIBUTION, RCLCPP_VERSION, last_error, open_session, close_session, create_writer, create_reader,
    send_sample, acked,  status,       destroy,
};

} // namespace

const tbr_table *tailbound_rclcpp_v1(void)
{
    return &TABLE;
}
