/* SPDX-License-Identifier: Apache-2.0 */
#include "threads.hpp"

#include <dirent.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <vector>

#include "json.hpp"

namespace tb::threads {

struct CloseDirectory {
    void operator()(DIR *directory) const { closedir(directory); }
};

std::string json()
{
    std::vector<std::pair<int, std::string>> all;
    std::unique_ptr<DIR, CloseDirectory> tasks(opendir("/proc/self/task"));
    for (const dirent *entry; tasks && (entry = readdir(tasks.get()));) {
        std::string name;
        std::getline(std::ifstream(std::string("/proc/self/task/") + entry->d_name + "/comm"), name);
        auto fits = [&](const Role &role) { return fnmatch(role.name, name.c_str(), 0) == 0; };
        const Role *role = std::find_if(std::begin(ROLES), std::end(ROLES), fits);
        int tid = std::atoi(entry->d_name);
        if (role != std::end(ROLES))
            all.emplace_back(tid, Object().put("tid", tid).put("name", name).put("role", role->role).str());
    }
    std::sort(all.begin(), all.end());
    std::vector<std::string> rows;
    for (const auto &row : all)
        rows.push_back(row.second);
    return array(rows);
}

} // namespace tb::threads
