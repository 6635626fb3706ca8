/* SPDX-License-Identifier: Apache-2.0
 *
 * Makes rmw_cyclonedds_cpp lend memory for every type, for a test that loads this library before it (LD_PRELOAD). Each process
 * counts what it lent, what came back published and what came back unused in a file of the directory $LENT, named by the process
 * id: three numbers of 64 bits.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <rmw/rmw.h>
#include <rosidl_typesupport_introspection_cpp/message_introspection.hpp>

namespace {

using Members = rosidl_typesupport_introspection_cpp::MessageMembers;

struct Counts {
    std::atomic<uint64_t> lent, published, returned;
};

Counts &counts()
{
    static Counts &counts = *[] {
        const std::string path = std::string(std::getenv("LENT")) + "/" + std::to_string(getpid());
        const int file = open(path.c_str(), O_RDWR | O_CREAT, 0600);
        if (file < 0 || ftruncate(file, sizeof(Counts)) != 0)
            std::abort();
        return static_cast<Counts *>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
    }();
    return counts;
}

/* The function of the same name in the middleware below. */
template <class Function> Function *below(const char *name, Function *)
{
    static void *library = dlopen("librmw_cyclonedds_cpp.so", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<Function *>(dlsym(library, name));
}
#define BELOW(function) below(#function, &function)

/* What a lent message needs before its memory is released: the members of its type are kept in front of it. */
struct alignas(16) Head {
    const Members *members;
};

void release(void *message)
{
    Head *head = static_cast<Head *>(message) - 1;
    head->members->fini_function(message);
    std::free(head);
}

} // namespace

extern "C" rmw_publisher_t *rmw_create_publisher(const rmw_node_t *node, const rosidl_message_type_support_t *type,
                                                 const char *topic, const rmw_qos_profile_t *qos,
                                                 const rmw_publisher_options_t *options)
{
    rmw_publisher_t *made = BELOW(rmw_create_publisher)(node, type, topic, qos, options);
    if (made)
        made->can_loan_messages = true;
    return made;
}

extern "C" rmw_ret_t rmw_borrow_loaned_message(const rmw_publisher_t *, const rosidl_message_type_support_t *type,
                                               void **message)
{
    const auto *support = type->func(type, "rosidl_typesupport_introspection_cpp");
    const auto *members = static_cast<const Members *>(support->data);
    auto *head = static_cast<Head *>(std::aligned_alloc(16, sizeof(Head) + (members->size_of_ + 15) / 16 * 16));
    head->members = members;
    members->init_function(head + 1, rosidl_runtime_cpp::MessageInitialization::ALL);
    *message = head + 1;
    counts().lent++;
    return RMW_RET_OK;
}

extern "C" rmw_ret_t rmw_publish_loaned_message(const rmw_publisher_t *publisher, void *message,
                                                rmw_publisher_allocation_t *allocation)
{
    const rmw_ret_t result = BELOW(rmw_publish)(publisher, message, allocation);
    release(message);
    counts().published++;
    return result;
}

extern "C" rmw_ret_t rmw_return_loaned_message_from_publisher(const rmw_publisher_t *, void *message)
{
    release(message);
    counts().returned++;
    return RMW_RET_OK;
}
