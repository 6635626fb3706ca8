/* SPDX-License-Identifier: Apache-2.0 */
#include "log.hpp"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include <fastdds/dds/log/Log.hpp>

using eprosima::fastdds::dds::Log;
using eprosima::fastdds::dds::LogConsumer;

namespace tb::log {

/* The state of the log. It is never destroyed, because the log's thread may outlive the static variables of this
 * object. */
struct State {
    std::mutex mutex;
    std::vector<tb_host> hosts;
    std::vector<std::string> kept;
    int captures = 0;
};

static State &state()
{
    static State *state = new State;
    return *state;
}

class Consumer : public LogConsumer
{
    void Consume(const Log::Entry &entry) override
    {
        State &s = state();
        std::string text = std::string(entry.context.category ? entry.context.category : "") + ": " + entry.message;
        std::lock_guard<std::mutex> lock(s.mutex);
        if (s.captures && s.kept.size() < 100 && entry.kind != Log::Kind::Info)
            s.kept.push_back(text);
        for (const tb_host &host : s.hosts)
            if (host.log)
                host.log(host.ctx, static_cast<int>(entry.kind), text.c_str());
    }
};

void install()
{
    static std::once_flag once;
    std::call_once(once, [] { Log::SetVerbosity(Log::Kind::Warning); });
    /* A file of profiles, which Fast DDS may read by itself, can add consumers that print. */
    Log::ClearConsumers();
    Log::RegisterConsumer(std::make_unique<Consumer>());
}

void listen(const tb_host &host)
{
    std::lock_guard<std::mutex> lock(state().mutex);
    state().hosts.push_back(host);
}

void forget(const tb_host &host)
{
    State &s = state();
    std::lock_guard<std::mutex> lock(s.mutex);
    auto same = [&](const tb_host &other) { return other.ctx == host.ctx && other.log == host.log; };
    auto found = std::find_if(s.hosts.begin(), s.hosts.end(), same);
    if (found != s.hosts.end())
        s.hosts.erase(found);
}

Capture::Capture()
{
    std::lock_guard<std::mutex> lock(state().mutex);
    if (state().captures++ == 0)
        state().kept.clear();
}

Capture::~Capture()
{
    std::lock_guard<std::mutex> lock(state().mutex);
    state().captures--;
}

std::string Capture::complaints(const std::string &otherwise)
{
    Log::Flush();
    std::lock_guard<std::mutex> lock(state().mutex);
    std::string all;
    for (const std::string &text : state().kept)
        all += (all.empty() ? "" : "; ") + text;
    return all.empty() ? otherwise : all;
}

} // namespace tb::log
