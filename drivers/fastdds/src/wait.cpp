/* SPDX-License-Identifier: Apache-2.0 */
#include "wait.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "endpoint.hpp"
#include "fail.hpp"

namespace tb {

int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

Set::Set(std::vector<fdds::Condition *> conditions, Guards &guards) : conditions(std::move(conditions))
{
    for (const fdds::Condition *condition : this->conditions)
        native.attach_condition(*condition);
    native.attach_condition(guards.woken);
    native.attach_condition(guards.closing);
    active.reserve(this->conditions.size() + 2);
}

static std::unique_ptr<Set> over(Endpoint *const *readers, size_t n, Guards &guards)
{
    std::vector<fdds::Condition *> conditions;
    for (size_t i = 0; i < n; i++)
        conditions.push_back(readers[i]->condition);
    return std::make_unique<Set>(std::move(conditions), guards);
}

Set &Sets::of(Endpoint *const *readers, size_t n, Guards &guards)
{
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto &[of, set] : all_)
        if (std::equal(of.begin(), of.end(), readers, readers + n))
            return *set;
    all_.emplace_back(std::vector<Endpoint *>(readers, readers + n), over(readers, n, guards));
    return *all_.back().second;
}

void Sets::without(const Endpoint *endpoint)
{
    std::lock_guard<std::mutex> lock(mutex_);
    auto holds = [&](const auto &entry) {
        return std::find(entry.first.begin(), entry.first.end(), endpoint) != entry.first.end();
    };
    all_.erase(std::remove_if(all_.begin(), all_.end(), holds), all_.end());
}

/* Time until the deadline, but at most one hour, so that TB_FOREVER has a finite step too. */
static Duration left(int64_t deadline_ns)
{
    constexpr int64_t HOUR = int64_t{3600} * 1000000000;
    int64_t ns = std::min(HOUR, std::max(int64_t{0}, deadline_ns - now_ns()));
    return Duration(static_cast<int32_t>(ns / 1000000000), static_cast<uint32_t>(ns % 1000000000));
}

static int wait_on(Set &set, Guards &guards, Endpoint *const *readers, size_t n, int64_t deadline_ns, uint64_t *ready)
{
    for (;;) {
        uint32_t code = number(set.native.wait(set.active, left(deadline_ns)));
        for (size_t i = 0; i < n; i++)
            if (readers[i]->closed.load())
                return closed(readers[i]->id);
        if (code == RET_TIMEOUT) {
            if (now_ns() < deadline_ns)
                continue;
            return fail(TB_ETIMEDOUT, "no sample arrived until the deadline");
        }
        if (code != RET_OK)
            return fail(TB_EIO, "wait: Fast DDS returned code %u", code);
        for (const fdds::Condition *condition : set.active) {
            if (condition == &guards.woken) {
                guards.woken.set_trigger_value(false);
                return TB_WOKEN;
            }
            auto found = std::find(set.conditions.begin(), set.conditions.end(), condition);
            if (found != set.conditions.end())
                *ready |= uint64_t{1} << (found - set.conditions.begin());
        }
        if (*ready)
            return TB_OK;
        usleep(100); /* another end point is closing, which takes only a short time */
    }
}

int wait(Sets &sets, Guards &guards, Endpoint *const *readers, size_t n, int64_t deadline_ns, uint64_t *ready)
{
    for (size_t i = 0; i < n; i++)
        if (!readers[i]->condition)
            return fail(TB_EINVAL, "end point %u is not a reader with receive mode block", readers[i]->id);
    Set &set = n == 1 ? *readers[0]->waits : sets.of(readers, n, guards);
    if (set.busy.exchange(true)) {
        /* Two threads wait on the same readers: Fast DDS allows one thread for each waitset. */
        std::unique_ptr<Set> another = over(readers, n, guards);
        return wait_on(*another, guards, readers, n, deadline_ns, ready);
    }
    int code = wait_on(set, guards, readers, n, deadline_ns, ready);
    set.busy.store(false);
    return code;
}

} // namespace tb
