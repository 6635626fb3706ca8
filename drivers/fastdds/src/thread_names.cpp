/* SPDX-License-Identifier: Apache-2.0
 *
 * Gives names to the threads of Fast DDS before 2.13, which does not name them. Fast DDS makes its threads with std::thread. This file defines again the
 * function of libstdc++ that starts a thread. libfastrtps finds this definition first, because this object loaded
 * libfastrtps and libstdc++ and so precedes libstdc++ in the search order of symbols. Each start of a thread thus calls
 * this function first, with an object whose type names the member function that the thread will run; the thread sets
 * its name and then runs as usual. If the program itself is linked with libstdc++, the loader uses the function of
 * libstdc++: then the threads have no names, and nothing else changes.
 */
#include "versions.hpp"

#if !TB_FASTDDS_NAMES_THREADS

#include <dlfcn.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <tuple>
#include <typeinfo>

namespace tb::threads {

using State = std::thread::_State;

/* State of the thread of a UDP or shared-memory channel, which runs `object.listen(locator)`. */
struct Channel : State {
    struct Object;
    std::tuple<void (Object::*)(Locator), Object *, Locator> call;
};

/* Types of channel threads. The whole type name is compared, because the members of the object are read. */
static const char *const CHANNELS[] = {
    "NSt6thread11_State_implINS_8_InvokerISt5tupleIJMN8eprosima7fastdds4rtps18UDPChannelResourceEFvNS3_8fastrtps4rtps9"
    "Locator_tEEPS6_S9_EEEEEE",
    "NSt6thread11_State_implINS_8_InvokerISt5tupleIJMN8eprosima7fastdds4rtps24SharedMemChannelResourceEFvNS3_8fastrtps4"
    "rtps9Locator_tEEPS6_S9_EEEEEE",
};

static const struct {
    const char *part, *name;
} OTHERS[] = {
    {"rtps19DataSharingListener", "fdds.recv"},   {"rtps13ResourceEvent", "fdds.event"},
    {"rtps18FlowControllerImpl", "fdds.send"},    {"rtps17SharedMemWatchdog", "fdds.watch"},
    {"detail12LogResources", "fdds.log"},
};

static const char *name_of(const State &state)
{
    const char *type = typeid(state).name();
    for (const char *channel : CHANNELS)
        if (std::strcmp(type, channel) == 0) {
            /* By the rules of RTPS ports, discovery listens on even ports and user data on odd ports. */
            uint32_t port = std::get<2>(static_cast<const Channel &>(state).call).port;
            return port % 2 ? "fdds.recv" : "fdds.meta";
        }
    for (const auto &other : OTHERS)
        if (std::strstr(type, other.part))
            return other.name;
    return nullptr;
}

class Named : public State
{
public:
    Named(std::unique_ptr<State> run, const char *name) : run_(std::move(run)), name_(name) {}

private:
    void _M_run() override
    {
        pthread_setname_np(pthread_self(), name_);
        run_->_M_run();
    }
    std::unique_ptr<State> run_;
    const char *name_;
};

#define START_THREAD "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE"
using Start = void (*)(std::thread *, std::unique_ptr<State> *, void (*)());

static Start next()
{
    static const Start start = [] {
        void *library = dlopen("libstdc++.so.6", RTLD_NOW | RTLD_NOLOAD);
        void *found = library ? dlsym(library, START_THREAD) : nullptr;
        if (!found)
            std::abort(); /* cannot happen: this object is linked against libstdc++ */
        return reinterpret_cast<Start>(found);
    }();
    return start;
}

} // namespace tb::threads

/* The arguments have the form of std::thread::_M_start_thread: the compiler passes an owning pointer by its address. */
extern "C" __attribute__((visibility("default"))) void
tailbound_start_thread(std::thread *thread, std::unique_ptr<std::thread::_State> *state,
                       void (*depend)()) asm(START_THREAD);

void tailbound_start_thread(std::thread *thread, std::unique_ptr<std::thread::_State> *state, void (*depend)())
{
    using namespace tb::threads;
    if (const char *name = *state ? name_of(**state) : nullptr)
        *state = std::make_unique<Named>(std::move(*state), name);
    next()(thread, state, depend);
}

#endif
