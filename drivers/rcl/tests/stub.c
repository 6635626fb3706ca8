// A small stand-in for rcl and a middleware of ROS 2, for tests on machines without ROS 2. Messages stay inside the process.
//
//     cc -shared -fPIC -o librcl.so stub.c                    every function that the driver needs
//     cc -shared -fPIC -DTYPES -o libstd_msgs__rosidl_typesupport_c.so stub.c
//
// Variants of librcl.so: -DLOCKS (the middleware holds a lock during the callback that a take needs), -DNO_RMW (the middleware
// cannot be loaded), -DNO_CALLBACKS, -DWIDE_INFO, -DWIDE_HANDLE (another layout: a structure is longer), -DOTHER_PROFILE (other defaults),
// -DFAIL_TAKES (no message can be taken after the first ones), -DHUMBLE (sizes of structures as in the headers of Humble).
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef RMW
#define RMW "rmw_stub_cpp"
#endif

#ifdef TYPES
static const int type = 1;
const void *rosidl_typesupport_c__get_message_type_support_handle__std_msgs__msg__UInt8MultiArray(void) { return &type; }
#else

typedef struct { void *(*allocate)(size_t, void *); void (*deallocate)(void *, void *); void *more[2], *state; } Allocator;
typedef struct { uint64_t s, ns; } Time;
typedef struct {
  int history; size_t depth; int reliability, durability; Time deadline, lifespan; int liveliness; Time lease; bool avoid;
} Profile;
#ifdef HUMBLE
#define REST 64
#define GID 24
#else
#define REST 72
#define GID 16
#endif
typedef struct { Profile profile; char rest[REST]; } Options; // 160 bytes, as since Iron
typedef struct { uint8_t *buffer; size_t length, capacity; Allocator allocator; } Serialized;
typedef struct { char text[1024]; } ErrorString;
typedef struct { int64_t source_ns, received_ns; uint64_t numbers[2]; const char *implementation; uint8_t gid[GID]; bool inside; } Info;

typedef struct Message { struct Message *next; size_t length; int64_t source_ns; uint64_t writer; uint8_t bytes[]; } Message;
typedef void (*OnMessages)(const void *, size_t);
typedef struct End {
  struct End *next;
  bool is_writer;
  size_t domain;
  char topic[256];
  Profile profile;
  // Of a subscription: messages, oldest first; the callback with its argument, the lock that is held while it runs, and the number
  // of publishers that use it now.
  Message *first, *last;
  OnMessages callback;
  const void *argument;
  pthread_mutex_t during;
  int users;
} End;
typedef struct { bool set; } Guard;
typedef struct { void *impl[2]; uint64_t id; } Context;
typedef struct { Context *context; void *impl; } InContext;
typedef struct { End *impl; } Handle;
typedef struct { Handle **subscriptions; size_t n; InContext **guards; size_t guards_n; size_t others[8]; void *impl; } WaitSet;
typedef struct { int32_t total, change; int policy; } Refused;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static End *ends;
static _Thread_local ErrorString error;
static void (*output)(const void *, int, const char *, int64_t, const char *, va_list *);

static int failed(const char *text)
{
  if (error.text[0]) fprintf(stderr, "the error `%s` is being overwritten by `%s`\n", error.text, text);
  snprintf(error.text, sizeof error.text, "%s", text);
  return 1;
}

static void say(int severity, const char *format, ...)
{
  va_list arguments;
  va_start(arguments, format);
  if (output) output(NULL, severity, "stub", 0, format, &arguments);
  va_end(arguments);
}

static int64_t now_ns(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *allocate(size_t bytes, void *state) { (void)state; return malloc(bytes); }
static void deallocate(void *p, void *state) { (void)state; free(p); }
Allocator rcutils_get_default_allocator(void) { return (Allocator){allocate, deallocate, {0}, 0}; }
ErrorString rcutils_get_error_string(void) { return error; }
void rcutils_reset_error(void) { error.text[0] = 0; }
void rcutils_logging_set_output_handler(void (*f)(const void *, int, const char *, int64_t, const char *, va_list *)) { output = f; }
const char *rmw_get_implementation_identifier(void)
{
#ifdef NO_RMW
  failed("failed to load shared library 'librmw_missing_cpp.so'");
  return NULL;
#else
  return RMW;
#endif
}

int rcl_init_options_init(void **o, Allocator a) { (void)a; *o = calloc(1, sizeof(size_t)); return 0; }
int rcl_init_options_set_domain_id(void **o, size_t domain) { *(size_t *)*o = domain; return 0; }
int rcl_init_options_fini(void **o) { free(*o); *o = NULL; return 0; }
int rcl_init(int n, const char *const *arguments, void *const *o, Context *c)
{
  (void)n; (void)arguments;
  c->impl[1] = malloc(sizeof(size_t));
  *(size_t *)c->impl[1] = *(size_t *)*o;
  return 0;
}
int rcl_shutdown(Context *c) { return c->impl[1] ? 0 : failed("no context"); }
int rcl_context_fini(Context *c) { free(c->impl[1]); c->impl[1] = NULL; return 0; }

typedef struct { char room[152]; } NodeOptions;
NodeOptions rcl_node_get_default_options(void) { NodeOptions o; memset(&o, 0, sizeof o); return o; }
int rcl_node_init(InContext *node, const char *name, const char *space, Context *c, const NodeOptions *o)
{
  (void)space; (void)o;
  say(20, "node %s in domain %zu", name, *(size_t *)c->impl[1]);
  node->context = c;
  return 0;
}
int rcl_node_fini(InContext *node) { (void)node; return 0; }

static Options defaults(void)
{
  Options o;
  memset(&o, 0, sizeof o);
  o.profile = (Profile){.history = 1, .depth = 10, .reliability = 1, .durability = 2};
#ifdef OTHER_PROFILE
  o.profile.depth = 1000;
#endif
  return o;
}
Options rcl_publisher_get_default_options(void) { return defaults(); }
Options rcl_subscription_get_default_options(void) { return defaults(); }

static int make(Handle *h, const InContext *node, const char *topic, const Options *o, bool is_writer)
{
  End *e = calloc(1, sizeof *e);
  e->is_writer = is_writer;
  e->domain = *(size_t *)node->context->impl[1];
  e->profile = o->profile;
  snprintf(e->topic, sizeof e->topic, "%s", topic);
  pthread_mutex_init(&e->during, NULL);
  h->impl = e;
#ifdef WIDE_HANDLE
  memset(h + 1, 0, 16);
#endif
  pthread_mutex_lock(&lock);
  e->next = ends;
  ends = e;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}

static int destroy(Handle *h)
{
  pthread_mutex_lock(&lock);
  for (End **e = &ends; *e; e = &(*e)->next)
    if (*e == h->impl) { *e = h->impl->next; break; }
  while (h->impl->users) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
  for (Message *m = h->impl->first, *next; m; m = next) { next = m->next; free(m); }
  free(h->impl);
  h->impl = NULL;
  return 0;
}

int rcl_publisher_init(Handle *h, const InContext *n, const void *t, const char *topic, const Options *o) { (void)t; return make(h, n, topic, o, true); }
int rcl_subscription_init(Handle *h, const InContext *n, const void *t, const char *topic, const Options *o) { (void)t; return make(h, n, topic, o, false); }
int rcl_publisher_fini(Handle *h, InContext *node) { (void)node; return destroy(h); }
int rcl_subscription_fini(Handle *h, InContext *node) { (void)node; return destroy(h); }
const Profile *rcl_publisher_get_actual_qos(const Handle *h) { return &h->impl->profile; }
const Profile *rcl_subscription_get_actual_qos(const Handle *h) { return &h->impl->profile; }

static bool same_topic(const End *a, const End *b) { return a->is_writer != b->is_writer && a->domain == b->domain && !strcmp(a->topic, b->topic); }
// A best-effort publisher does not fit a reliable subscription.
static bool fits(const End *a, const End *b)
{
  const End *writer = a->is_writer ? a : b, *reader = a->is_writer ? b : a;
  return writer->profile.reliability == 1 || reader->profile.reliability == 2;
}
static size_t count(const End *e, bool matched)
{
  size_t n = 0;
  pthread_mutex_lock(&lock);
  for (const End *other = ends; other; other = other->next) n += same_topic(e, other) && fits(e, other) == matched;
  pthread_mutex_unlock(&lock);
  return n;
}
int rcl_publisher_get_subscription_count(const Handle *h, size_t *n) { *n = count(h->impl, true); return 0; }
int rcl_subscription_get_publisher_count(const Handle *h, size_t *n) { *n = count(h->impl, true); return 0; }
static int named(const InContext *node, const char *topic, bool writers, size_t *n)
{
  pthread_mutex_lock(&lock);
  *n = 0;
  for (const End *e = ends; e; e = e->next)
    *n += e->is_writer == writers && e->domain == *(size_t *)node->context->impl[1] && !strcmp(e->topic, topic);
  pthread_mutex_unlock(&lock);
  return 0;
}
int rcl_count_publishers(const InContext *node, const char *topic, size_t *n) { return named(node, topic, true, n); }
int rcl_count_subscribers(const InContext *node, const char *topic, size_t *n) { return named(node, topic, false, n); }

static int event(void **e, const Handle *h, int kind)
{
  if (kind != 2) return failed("the stub has no such event");
  *e = h->impl;
  return 0;
}
int rcl_publisher_event_init(void **e, const Handle *h, int kind) { return event(e, h, kind); }
int rcl_subscription_event_init(void **e, const Handle *h, int kind) { return event(e, h, kind); }
int rcl_take_event(void **e, void *status)
{
  int n = count(*e, false);
  *(Refused *)status = (Refused){n, n, 16};
  return 0;
}
int rcl_event_fini(void **e) { *e = NULL; return 0; }

int rcl_publisher_wait_for_all_acked(const Handle *h, int64_t ns) { (void)h; (void)ns; return 0; }
int rcl_publish_serialized_message(const Handle *h, const Serialized *s, void *more)
{
  (void)more;
  End *called[64];
  size_t n = 0;
  pthread_mutex_lock(&lock);
  for (End *e = ends; e; e = e->next) {
    if (!same_topic(h->impl, e) || !fits(h->impl, e)) continue;
    Message *m = malloc(sizeof *m + s->length);
    *m = (Message){NULL, s->length, now_ns(CLOCK_REALTIME), (uint64_t)(uintptr_t)h->impl};
    memcpy(m->bytes, s->buffer, s->length);
    if (e->last) e->last->next = m; else e->first = m;
    e->last = m;
    if (e->callback && n < 64) {
      called[n++] = e;
      e->users++;
    }
  }
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  for (size_t i = 0; i < n; i++) {
    pthread_mutex_lock(&called[i]->during);
    if (called[i]->callback) called[i]->callback(called[i]->argument, 1);
    pthread_mutex_unlock(&called[i]->during);
    pthread_mutex_lock(&lock);
    called[i]->users--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
  }
  return 0;
}

int rcl_subscription_set_on_new_message_callback(const Handle *h, OnMessages callback, const void *argument)
{
#ifdef NO_CALLBACKS
  return failed("callbacks are not supported");
#endif
  pthread_mutex_lock(&h->impl->during);
  pthread_mutex_lock(&lock);
  h->impl->callback = callback;
  h->impl->argument = argument;
  pthread_mutex_unlock(&lock);
  pthread_mutex_unlock(&h->impl->during);
  return 0;
}

int rcl_take_serialized_message(const Handle *h, Serialized *s, Info *info, void *more)
{
  (void)more;
#ifdef FAIL_TAKES
  static int taken;
  if (__atomic_add_fetch(&taken, 1, __ATOMIC_SEQ_CST) > 100) return failed("the queue is damaged");
#endif
#ifdef LOCKS
  pthread_mutex_lock(&h->impl->during);
#endif
  pthread_mutex_lock(&lock);
  Message *m = h->impl->first;
  if (m && !(h->impl->first = m->next)) h->impl->last = NULL;
  pthread_mutex_unlock(&lock);
#ifdef LOCKS
  pthread_mutex_unlock(&h->impl->during);
#endif
  if (!m) return 401;
  if (s->capacity < m->length) {
    free(s->buffer);
    s->buffer = malloc(s->capacity = m->length);
  }
  memcpy(s->buffer, m->bytes, s->length = m->length);
  *info = (Info){.source_ns = m->source_ns, .received_ns = now_ns(CLOCK_REALTIME), .implementation = "rmw_stub_cpp"};
  memcpy(info->gid, &m->writer, 8);
#ifdef WIDE_INFO
  memset(info + 1, 0, 32);
#endif
  free(m);
  return 0;
}

int rcl_guard_condition_init(InContext *g, Context *c, Allocator a) { (void)a; g->context = c; g->impl = calloc(1, sizeof(Guard)); return 0; }
int rcl_guard_condition_fini(InContext *g) { free(g->impl); return 0; }
int rcl_trigger_guard_condition(InContext *g)
{
  pthread_mutex_lock(&lock);
  ((Guard *)g->impl)->set = true;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return 0;
}

int rcl_wait_set_init(WaitSet *w, size_t subs, size_t guards, size_t t, size_t c, size_t s, size_t e, Context *context, Allocator a)
{
  (void)t; (void)c; (void)s; (void)e; (void)context; (void)a;
  *w = (WaitSet){.subscriptions = calloc(subs, sizeof(void *)), .n = subs, .guards = calloc(guards, sizeof(void *)), .guards_n = guards};
  return 0;
}
int rcl_wait_set_fini(WaitSet *w) { free(w->subscriptions); free(w->guards); return 0; }
int rcl_wait_set_clear(WaitSet *w)
{
  memset(w->subscriptions, 0, w->n * sizeof(void *));
  memset(w->guards, 0, w->guards_n * sizeof(void *));
  return 0;
}
static int add(void **places, size_t n, void *one)
{
  for (size_t i = 0; i < n; i++)
    if (!places[i]) { places[i] = one; return 0; }
  return failed("the wait set is full");
}
int rcl_wait_set_add_subscription(WaitSet *w, const Handle *h, size_t *i) { (void)i; return add((void **)w->subscriptions, w->n, (void *)h); }
int rcl_wait_set_add_guard_condition(WaitSet *w, const InContext *g, size_t *i) { (void)i; return add((void **)w->guards, w->guards_n, (void *)g); }
int rcl_wait(WaitSet *w, int64_t timeout_ns)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  int64_t ns = until.tv_nsec + timeout_ns % 1000000000;
  until.tv_sec += timeout_ns / 1000000000 + ns / 1000000000;
  until.tv_nsec = ns % 1000000000;
  int late = 0;
  pthread_mutex_lock(&lock);
  for (;;) {
    bool any = false;
    for (size_t i = 0; i < w->n; i++) any |= w->subscriptions[i] && w->subscriptions[i]->impl->first;
    for (size_t i = 0; i < w->guards_n; i++) any |= w->guards[i] && ((Guard *)w->guards[i]->impl)->set;
    if (any || late) break;
    late = pthread_cond_timedwait(&changed, &lock, &until);
  }
  for (size_t i = 0; i < w->n; i++)
    if (w->subscriptions[i] && !w->subscriptions[i]->impl->first) w->subscriptions[i] = NULL;
  for (size_t i = 0; i < w->guards_n; i++) {
    Guard *g = w->guards[i] ? w->guards[i]->impl : NULL;
    if (g && !g->set) w->guards[i] = NULL;
    if (g) g->set = false;
  }
  pthread_mutex_unlock(&lock);
  return late ? 2 : 0;
}
#endif
