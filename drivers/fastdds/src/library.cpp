/* SPDX-License-Identifier: Apache-2.0 */
#include "library.hpp"

#include <cstdlib>
#include <mutex>

#include "fail.hpp"
#include "log.hpp"
#include "versions.hpp"

namespace tb::library {

using fdds::DomainParticipantFactory;

static std::mutex mutex;
static uint32_t sessions = 0;
static LibrarySettings current;
/* Fast DDS keeps profiles until the process ends: a text is loaded once, and no other text can be loaded. */
static std::string loaded;
static LibrarySettings of_loaded;

/* Refuses environment variables that Fast DDS would use, because such settings could contradict the options. */
static void refuse_environment()
{
    for (const char *name : {"ROS_DISCOVERY_SERVER", "FASTDDS_ENVIRONMENT_FILE"}) {
        const char *value = std::getenv(name);
        if (value && *value)
            throw Fail{TB_EINVAL, std::string("the environment variable ") + name +
                                      " is set and Fast DDS would use it: unset it, and use the option "
                                      "discovery_server or config"};
    }
}

static void load(const std::string &config)
{
    if (loaded == config)
        return;
    if (!loaded.empty())
        throw Fail{TB_EINVAL, "config: this process has already read another configuration; use the same one for all "
                              "ends of the process"};
    if (config.find("is_default_profile") == std::string::npos)
        throw Fail{TB_EINVAL, "config: no profile says is_default_profile=\"true\", so none would be used: mark those of "
                              "participant, data_writer and data_reader"};
    log::Capture capture;
    library_settings(LibrarySettings());
    auto *factory = DomainParticipantFactory::get_instance();
    uint32_t code = number(factory->load_XML_profiles_string(config.data(), config.size()));
    of_loaded = library_settings();
    /* Open sessions keep their settings. */
    library_settings(current);
    if (code != RET_OK)
        throw Fail{TB_EINVAL, "config: " + capture.complaints("Fast DDS refuses the XML")};
    loaded = config;
    /* For this object, Fast DDS reads the default profile again. */
    factory->set_default_participant_qos(fdds::PARTICIPANT_QOS_DEFAULT);
}

void enter(const Options &options)
{
    std::lock_guard<std::mutex> lock(mutex);
    refuse_environment();
    log::install();
    auto *factory = DomainParticipantFactory::get_instance();
    /* Otherwise Fast DDS loads profiles with the first participant, and a file could replace the settings that are
     * made here. */
    factory->load_profiles();
    log::install();
    LibrarySettings wanted;
    if (options.config.empty()) {
        bool full = options.transport == Transport::intra_process;
        wanted.intraprocess_delivery = full ? INTRAPROCESS_FULL : INTRAPROCESS_OFF;
    } else {
        load(options.config);
        log::install();
        wanted = of_loaded;
    }
    if (sessions && !(wanted == current))
        throw Fail{TB_EINVAL, std::string("transport=") + options.transport_name() +
                                  ": other sessions of this process have another setting of delivery inside the process, "
                                  "which Fast DDS sets for all sessions; use the same transport, or separate processes"};
    library_settings(wanted);
    current = wanted;
    sessions++;
}

void leave()
{
    std::lock_guard<std::mutex> lock(mutex);
    sessions--;
}

const char *intra_process()
{
    std::lock_guard<std::mutex> lock(mutex);
    switch (library_settings().intraprocess_delivery) {
    case INTRAPROCESS_OFF:
        return "off";
    case INTRAPROCESS_USER_DATA_ONLY:
        return "user-data";
    default:
        return "full";
    }
}

} // namespace tb::library
