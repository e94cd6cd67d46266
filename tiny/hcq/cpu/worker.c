/* The CPU's command processor. Threads read packets from a ring and run them in order.

   Any thread may lead: the background workers, and the caller of tiny_wait, which executes small commands
   itself instead of waking another core for them. One thread leads at a time; the others help with
   commands that have several groups. The layouts (State, Execute, ...) come from packets.py and stand
   above this text.

   Memory order: the ring is published by a release store of State.written, a job by a release store of
   State.ticket, results by the release store of a Signal. Going to sleep and waking follow the usual
   pattern: the sleeper counts itself, fences and looks again; the waker publishes, fences and looks for
   sleepers. */

#define LOAD(p)       __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v)   __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define ADD(p, v)     __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define FENCE()       __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define EXCHANGE(p, old, new) __atomic_compare_exchange_n(p, old, new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)

enum { SPIN_NS = 50000, NAP_NS = 1000000, NAPS = 50, COPY_CHUNK = 1 << 18, CHUNKS_A_THREAD = 4 };
enum { CONTINUE, IDLE, REACHED, REFUSED, FAULTED };            /* why a leader goes on or stops */
enum { BAD_OPCODE = 1, KERNEL_FAULT, ABORTED, CRASHED };       /* State.error, see ErrorCode in engine.py */
enum { WAIT_REACHED, WAIT_TIME_PASSED, WAIT_ERROR };           /* results of tiny_wait */

typedef void (*Kernel)(const u64 *arguments, u64 begin, u64 end);
struct timespec { long seconds, nanoseconds; };

long syscall(long number, ...);
int clock_gettime(int clock, struct timespec *now);
int nanosleep(const struct timespec *time, struct timespec *rest);
int sched_yield(void);
void *memcpy(void *destination, const void *source, u64 size);
int pthread_create(u64 *thread, const void *attributes, void *(*start)(void *), void *argument);
int pthread_detach(u64 thread);
int pthread_sigmask(int how, const u64 *set, u64 *old);
int sigaction(int number, const void *action, void *old);
int getpid(void);

/* `agent` below is the background thread that runs a function, 0 where a caller of tiny_wait runs it. */

#if defined(__x86_64__)
enum { SYS_FUTEX = 202, SYS_GETTID = 186, SYS_RT_TGSIGQUEUEINFO = 297 };
static void relax(void) { __builtin_ia32_pause(); }
static u64 ticks(void) { return __builtin_ia32_rdtsc(); }
static u64 ticks_in_2_ms(void) { return 4000000; }             /* at 2 GHz */
static u32 float_mode(void) { return __builtin_ia32_stmxcsr(); }
static void set_float_mode(u32 mode) { __builtin_ia32_ldmxcsr(mode); }
enum { DEFAULT_FLOAT_MODE = 0x1f80 };                          /* round to nearest, no trap, keep denormals */
#elif defined(__aarch64__)
enum { SYS_FUTEX = 98, SYS_GETTID = 178, SYS_RT_TGSIGQUEUEINFO = 240 };
static void relax(void) { __asm__ volatile("yield"); }
static u64 ticks(void) { u64 t; __asm__ volatile("mrs %0, cntvct_el0" : "=r"(t)); return t; }
static u64 ticks_in_2_ms(void) { u64 f; __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(f)); return f / 500; }
static u32 float_mode(void) { u64 mode; __asm__ volatile("mrs %0, fpcr" : "=r"(mode)); return (u32)mode; }
static void set_float_mode(u32 mode) { __asm__ volatile("msr fpcr, %0" : : "r"((u64)mode)); }
enum { DEFAULT_FLOAT_MODE = 0 };
#else
#error "the CPU device knows x86-64 and AArch64"
#endif

static u64 now(void)
{
    struct timespec t;
    clock_gettime(1, &t);                                      /* CLOCK_MONOTONIC */
    return (u64)t.seconds * 1000000000u + (u64)t.nanoseconds;
}

static void wake(State *s, u32 count)
{
    ADD(&s->event, 1);
    syscall(SYS_FUTEX, &s->event, 129, count, 0, 0, 0);        /* FUTEX_WAKE | FUTEX_PRIVATE_FLAG */
}

/* Sleep until someone counts `event` on from `seen`, or until limit_ns have passed (0: no limit). */
static void sleep_on_event(State *s, u32 seen, u64 limit_ns)
{
    struct timespec limit = { (long)(limit_ns / 1000000000u), (long)(limit_ns % 1000000000u) };
    syscall(SYS_FUTEX, &s->event, 128, seen, limit_ns ? &limit : 0, 0, 0);      /* FUTEX_WAIT | PRIVATE */
}

/* Before a thread takes commands or chunks it says so, then looks for an error; tiny_abort sets the
   error, then waits until nobody is inside. `inside` counts, for a leader also helps. */
static void enter(State *s, Agent *agent)
{
    ADD(agent ? &agent->inside : &s->callers, 1);
}

static void leave(State *s, Agent *agent)
{
    ADD(agent ? &agent->inside : &s->callers, -1);
}

static u32 try_lead(State *s, Agent *agent)
{
    if (LOAD(&s->leader) || __atomic_exchange_n(&s->leader, 1, __ATOMIC_ACQUIRE))
        return 0;
    if (agent)
        STORE(&agent->leading, 1);
    enter(s, agent);
    return 1;
}

static void stop_leading(State *s, Agent *agent)
{
    leave(s, agent);
    if (agent)
        STORE(&agent->leading, 0);
    STORE(&s->leader, 0);
}

/* Wake a background thread if commands are waiting that it would not look at by itself in time. */
static void nudge(State *s)
{
    FENCE();
    if (!LOAD(&s->sleeping))
        return;
    if (LOAD(&s->consumed) < LOAD(&s->urgent) || LOAD(&s->deep) == s->background)
        wake(s, 1);
}

/* -- jobs: a command with several groups, cut into chunks that any thread may take --------------------- */

static void close_job(State *s)
{
    STORE(&s->ticket, ((LOAD(&s->ticket) >> 32) + 1) << 32 | 0xffffffffu);
    FENCE();
}

static u32 job_is_open(State *s)
{
    return (u32)LOAD(&s->ticket) < LOAD(&s->chunks);
}

/* Take chunks of the open job until none is left; 1 if there was any. The fields are valid for the ticket
   they were read with: a new job first makes the ticket impossible, and the exchange fails if the ticket
   has changed. */
static u32 take_chunks(State *s, Agent *agent)
{
    u32 helped = 0;
    u64 ticket = LOAD(&s->ticket);
    while (!LOAD(&s->error)) {
        u64 index = (u32)ticket;
        Kernel kernel = (Kernel)LOAD(&s->kernel);
        const u64 *arguments = (const u64 *)LOAD(&s->arguments);
        u64 groups = LOAD(&s->groups), chunk = LOAD(&s->chunk);
        if (index >= LOAD(&s->chunks) || (!agent && !LOAD(&s->trusted)))
            return helped;
        if (!EXCHANGE(&s->ticket, &ticket, ticket + 1))
            continue;
        u64 begin = index * chunk, end = begin + chunk < groups ? begin + chunk : groups;
        kernel(arguments, begin, end);
        ADD(&s->done, 1);
        helped = 1;
        ticket = LOAD(&s->ticket);
    }
    return helped;
}

static u32 help(State *s, Agent *agent)
{
    if (!job_is_open(s))
        return 0;
    enter(s, agent);
    u32 helped = take_chunks(s, agent);
    leave(s, agent);
    return helped;
}

/* Run all groups. Returns early if another thread failed; the leader then stops at the error. */
static void run(State *s, Agent *agent, Kernel kernel, const u64 *arguments, u64 groups, u32 trusted)
{
    if (groups <= 1 || s->threads == 1) {
        if (groups)
            kernel(arguments, 0, groups);
        return;
    }
    u64 wanted = (u64)s->threads * CHUNKS_A_THREAD;
    u64 chunk = groups < wanted ? 1 : (groups + wanted - 1) / wanted;
    u64 chunks = (groups + chunk - 1) / chunk;
    close_job(s);                                              /* nobody takes chunks while the job changes */
    STORE(&s->kernel, (u64)kernel);
    STORE(&s->arguments, (u64)arguments);
    STORE(&s->groups, groups);
    STORE(&s->chunk, chunk);
    STORE(&s->chunks, chunks);
    STORE(&s->trusted, trusted);
    STORE(&s->done, 0);
    STORE(&s->ticket, LOAD(&s->ticket) & ~0xffffffffull);
    FENCE();
    if (LOAD(&s->sleeping))
        wake(s, (u32)chunks - 1);
    take_chunks(s, agent);
    for (u32 turns = 0; LOAD(&s->done) != chunks && !LOAD(&s->error); turns++)
        turns < 4096 ? relax() : (void)sched_yield();
    if (LOAD(&s->error))
        close_job(s);
}

static void copy_chunks(const u64 *arguments, u64 begin, u64 end)
{
    u64 first = begin * COPY_CHUNK, last = end * COPY_CHUNK < arguments[2] ? end * COPY_CHUNK : arguments[2];
    memcpy((char *)arguments[0] + first, (const char *)arguments[1] + first, last - first);
}

/* -- commands ------------------------------------------------------------------------------------------ */

/* The first error stays. */
static u32 fail(State *s, u32 code)
{
    u32 none = 0;
    if (EXCHANGE(&s->error, &none, code))
        STORE(&s->error_at, s->consumed);
    FENCE();
    if (LOAD(&s->sleeping))
        wake(s, 0x7fffffff);
    return FAULTED;
}

/* A caller does not run a program that has never finished before, or took long the last time: its own
   limit could not be kept then. A background thread leads instead, and the caller helps with chunks. */
static u32 execute(State *s, Agent *agent, const Execute *p)
{
    ProgramRecord *program = (ProgramRecord *)p->program;
    if (!agent && (!program->launches || program->ticks > ticks_in_2_ms()))
        return REFUSED;
    u64 start = ticks();
    run(s, agent, (Kernel)program->entry, (const u64 *)(p + 1), p->groups, program->launches != 0);
    if (Execute_checked(p) && LOAD(&s->fault_code))
        return fail(s, KERNEL_FAULT);
    if (LOAD(&s->error))
        return FAULTED;
    program->ticks = ticks() - start;
    program->launches++;
    return CONTINUE;
}

static void signal(State *s, const Signal *p)
{
    STORE((u64 *)p->address, p->value);
    FENCE();
    if (LOAD(&s->waiting))
        wake(s, 0x7fffffff);
}

static u32 wait_for_word(State *s, Agent *agent, const Wait *p)
{
    struct timespec pause = { 0, 20000 };
    for (u32 turns = 0; LOAD((const u64 *)p->address) < p->value; turns++) {
        if (!agent && turns > 1000)
            return REFUSED;
        if (LOAD(&s->stop) || LOAD(&s->error))
            return IDLE;
        turns < 1000 ? relax() : (void)nanosleep(&pause, 0);
    }
    return CONTINUE;
}

static u32 perform(State *s, Agent *agent, const Command *command)
{
    switch (Command_op(command)) {
    case NOP:
    case BARRIER:
        return CONTINUE;
    case EXECUTE:
        return execute(s, agent, (const Execute *)command);
    case COPY: {
        const Copy *p = (const Copy *)command;
        run(s, agent, copy_chunks, &p->destination, (p->nbytes + COPY_CHUNK - 1) / COPY_CHUNK, 1);
        return LOAD(&s->error) ? FAULTED : CONTINUE;
    }
    case SIGNAL:
        signal(s, (const Signal *)command);
        return CONTINUE;
    case WAIT:
        return wait_for_word(s, agent, (const Wait *)command);
    case TIMESTAMP:
        STORE((u64 *)((const Timestamp *)command)->address, now());
        return CONTINUE;
    default:
        return fail(s, BAD_OPCODE);
    }
}

/* Run commands until there are none, until `word` has reached `value` (a caller), or until one cannot be
   run. */
static u32 lead(State *s, Agent *agent, const u64 *word, u64 value)
{
    for (;;) {
        u64 at = s->consumed;
        if (LOAD(&s->error))
            return FAULTED;
        if (at >= LOAD(&s->written))
            return IDLE;
        if (!agent && LOAD(word) >= value)
            return REACHED;
        const Command *command = (const Command *)(s->ring + (at & s->ring_mask));
        u64 size = 4ull * Command_count(command);
        u32 result = size ? perform(s, agent, command) : fail(s, BAD_OPCODE);
        if (result != CONTINUE)
            return result;
        STORE(&s->consumed, at + size);
    }
}
