/* What `plant.c` and the driver `held` share: a file of orders per end, in the order of time. */
#include <stdint.h>

enum { ORDERS = 128, SLEEP = 1, HOLD_LOCK = 2, READ_PAGES = 3 };
#define KEEPER "keeper"

struct order {
    int64_t from_ns, until_ns, kind;
    /* Written by the driver. */
    int64_t began_ns, ended_ns;
};
