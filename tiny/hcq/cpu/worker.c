/* The CPU's command processor. Threads read packets from a ring and run them in order.

   Any thread may lead: the background workers, and the caller of tiny_wait, which executes small commands itself
   instead of waking another core for them. One thread leads at a time; the others help with commands that have
   several groups. The layouts (State, Execute, ...) come from packets.py and stand above this text.

   Memory order: the ring is published by a release store of State.written, a job by a release store of
   State.ticket, results by the release store of a Signal. Going to sleep and waking follow the usual pattern: the
   sleeper counts itself, fences and looks again; the waker publishes, fences and looks for sleepers. */

#define LOAD(p)       __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define STORE(p, v)   __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define ADD(p, v)     __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define FENCE()       __atomic_thread_fence(__ATOMIC_SEQ_CST)

enum { SPIN_NS = 50000, NAP_NS = 1000000, NAPS = 50, COPY_CHUNK = 1 << 18, CHUNKS_A_THREAD = 4 };
enum { CONTINUE, IDLE, REACHED, REFUSED, FAULTED };            /* why a leader goes on or stops */
enum { BAD_OPCODE = 1, KERNEL_FAULT = 2, ABORTED = 3 };        /* State.error, see ErrorCode in engine.py */
enum { ABORT_SIGNAL = 52 };                                    /* sent to a thread whose command is given up */
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

/* The leader is 1 if it is a caller of tiny_wait, 2 if it is a background thread. */
static u32 try_lead(State *s, Agent *agent)
{
    u32 nobody = 0;
    return !LOAD(&s->leader) &&
           __atomic_compare_exchange_n(&s->leader, &nobody, agent ? 2 : 1, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

/* Mark that the thread runs something that may have to be given up; returns what to hand to leave(). */
static u32 enter(State *s, Agent *agent)
{
    if (!agent)
        return ADD(&s->callers, 1);
    u32 before = agent->inside;
    STORE(&agent->inside, 1);
    return before;
}

static void leave(State *s, Agent *agent, u32 before)
{
    if (agent)
        STORE(&agent->inside, before);
    else
        ADD(&s->callers, -1);
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

/* -- jobs: a command with several groups, cut into chunks that any thread may take ------------------------------ */

static void close_job(State *s)
{
    STORE(&s->ticket, ((LOAD(&s->ticket) >> 32) + 1) << 32 | 0xffffffffu);
    FENCE();
}

static u32 job_is_open(State *s)
{
    return (u32)LOAD(&s->ticket) < LOAD(&s->chunks);
}

/* Take chunks of the open job until none is left; 1 if there was any. The fields are valid for the ticket they were
   read with: a new job first makes the ticket impossible, and the exchange fails if the ticket has changed. */
static u32 help(State *s, Agent *agent)
{
    u32 helped = 0;
    u64 ticket = LOAD(&s->ticket);
    for (;;) {
        u64 index = (u32)ticket;
        Kernel kernel = (Kernel)LOAD(&s->kernel);
        const u64 *arguments = (const u64 *)LOAD(&s->arguments);
        u64 groups = LOAD(&s->groups), chunk = LOAD(&s->chunk);
        if (index >= LOAD(&s->chunks) || (!agent && !LOAD(&s->trusted)))
            return helped;
        if (!__atomic_compare_exchange_n(&s->ticket, &ticket, ticket + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            continue;
        u64 begin = index * chunk, end = begin + chunk < groups ? begin + chunk : groups;
        u32 before = enter(s, agent);
        kernel(arguments, begin, end);
        ADD(&s->done, 1);
        leave(s, agent, before);
        helped = 1;
        ticket = LOAD(&s->ticket);
    }
}

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
    close_job(s);                                              /* no chunk can be taken while the job changes */
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
    help(s, agent);
    for (u32 turns = 0; LOAD(&s->done) != chunks; turns++)
        turns < 4096 ? relax() : (void)sched_yield();
}

static void copy_chunks(const u64 *arguments, u64 begin, u64 end)
{
    u64 first = begin * COPY_CHUNK, last = end * COPY_CHUNK < arguments[2] ? end * COPY_CHUNK : arguments[2];
    memcpy((char *)arguments[0] + first, (const char *)arguments[1] + first, last - first);
}

/* -- commands ----------------------------------------------------------------------------------------------------- */

static u32 fail(State *s, u32 code)
{
    STORE(&s->error_at, s->consumed);
    STORE(&s->error, code);
    FENCE();
    if (LOAD(&s->sleeping))
        wake(s, 0x7fffffff);
    return FAULTED;
}

/* A caller does not run a program that has never finished before, or took long the last time: its own limit could
   not be kept then. A background thread leads instead, and the caller helps with chunks. */
static u32 execute(State *s, Agent *agent, const Execute *p)
{
    ProgramRecord *program = (ProgramRecord *)p->program;
    if (!agent && (!program->launches || program->ticks > ticks_in_2_ms()))
        return REFUSED;
    u64 start = ticks();
    run(s, agent, (Kernel)program->entry, (const u64 *)(p + 1), p->groups, program->launches != 0);
    program->ticks = ticks() - start;
    program->launches++;
    if (Execute_checked(p) && LOAD(&s->fault_code))
        return fail(s, KERNEL_FAULT);
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
        return CONTINUE;
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

/* Run commands until there are none, until `word` has reached `value` (a caller), or until one cannot be run. */
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
        u32 before = enter(s, agent);
        u32 result = size ? perform(s, agent, command) : fail(s, BAD_OPCODE);
        leave(s, agent, before);
        if (result != CONTINUE)
            return result;
        STORE(&s->consumed, at + size);
    }
}

/* -- threads ------------------------------------------------------------------------------------------------------ */

/* Lead if there is work: urgent work, or after a nap any. 1 if something was done. */
static u32 drive(State *s, Agent *agent, u32 everything)
{
    u64 limit = everything ? LOAD(&s->written) : LOAD(&s->urgent);
    if (LOAD(&s->consumed) >= limit || LOAD(&s->error) || !try_lead(s, agent))
        return 0;
    u32 result = lead(s, agent, 0, 0);
    STORE(&s->leader, 0);
    return result != FAULTED;
}

static void nap(State *s, u32 deep)
{
    u32 seen = LOAD(&s->event);
    ADD(&s->sleeping, 1);
    if (deep)
        ADD(&s->deep, 1);
    FENCE();
    u64 limit = deep ? LOAD(&s->written) : LOAD(&s->urgent);
    u32 work = LOAD(&s->consumed) < limit && !LOAD(&s->leader) && !LOAD(&s->error);
    if (!work && !job_is_open(s) && !LOAD(&s->stop))
        sleep_on_event(s, seen, deep ? 0 : NAP_NS);
    if (deep)
        ADD(&s->deep, -1);
    ADD(&s->sleeping, -1);
}

/* After work, look for more for SPIN_NS, then nap NAPS times for NAP_NS each, then sleep until woken. */
static void serve(State *s, Agent *agent)
{
    u32 naps = 0;
    u64 spin_until = now() + SPIN_NS;
    set_float_mode(DEFAULT_FLOAT_MODE);
    while (!LOAD(&s->stop)) {
        if (help(s, agent) | drive(s, agent, naps > 0)) {
            naps = 0;
            spin_until = now() + SPIN_NS;
        } else if (naps == 0 && now() < spin_until) {
            for (u32 i = 0; i < 16; i++)
                relax();
        } else {
            nap(s, naps >= NAPS);
            naps = naps >= NAPS ? 1 : naps + 1;
        }
    }
}

static void *background(void *argument)
{
    Agent *agent = argument;
    State *s = (State *)agent->state;
    agent->thread = (u32)syscall(SYS_GETTID);
#if defined(__x86_64__)
    (void)__builtin_setjmp((void **)&agent->jump_0);           /* tiny_abort makes the thread go on here */
#endif
    STORE(&agent->inside, 0);
    serve(s, agent);
    ADD(&s->alive, -1);
    return 0;
}

/* Start a thread for each of the agents, with signals blocked but for ABORT_SIGNAL and those that a fault raises.
   The number started. */
u32 tiny_start(State *s, Agent *agents)
{
    u64 old[16], blocked[16];
    for (u32 i = 0; i < 16; i++)
        blocked[i] = ~0ull;
    blocked[0] &= ~(1ull << 3 | 1ull << 4 | 1ull << 5 | 1ull << 6 | 1ull << 7 | 1ull << 10);
    blocked[0] &= ~(1ull << (ABORT_SIGNAL - 1));
    pthread_sigmask(2, blocked, old);                          /* SIG_SETMASK; ILL TRAP ABRT BUS FPE SEGV stay */
    u32 started = 0;
    for (; started < s->background; started++) {
        u64 thread;
        ADD(&s->alive, 1);
        agents[started].state = (u64)s;
        if (pthread_create(&thread, 0, background, &agents[started])) {
            ADD(&s->alive, -1);
            break;
        }
        pthread_detach(thread);
    }
    pthread_sigmask(2, old, 0);
    return started;
}

/* Ask the threads to end and wait up to limit_ns; the number still alive. */
u32 tiny_stop(State *s, u64 limit_ns)
{
    struct timespec pause = { 0, 20000 };
    STORE(&s->stop, 1);
    FENCE();
    for (u64 end = now() + limit_ns; LOAD(&s->alive) && now() < end; nanosleep(&pause, 0))
        wake(s, 0x7fffffff);
    return LOAD(&s->alive);
}

/* The ring holds `written` bytes now. urgent: worth waking another core; else the caller will soon wait, and runs
   the commands itself, or a napping thread finds them within NAP_NS. */
void tiny_doorbell(State *s, u64 written, u32 urgent)
{
    STORE(&s->written, written);
    if (urgent)
        STORE(&s->urgent, written);
    nudge(s);
}

static u32 wait_until(State *s, const u64 *word, u64 value, u64 deadline)
{
    u64 refused = ~0ull, spin_until = now() + SPIN_NS;
    for (;;) {
        if (LOAD(word) >= value)
            return WAIT_REACHED;
        if (LOAD(&s->error))
            return WAIT_ERROR;
        u64 at = LOAD(&s->consumed);
        u32 helped = help(s, 0);
        if (at < LOAD(&s->written) && at != refused && try_lead(s, 0)) {
            u32 result = lead(s, 0, word, value);
            if (result == REFUSED) {
                refused = s->consumed;
                STORE(&s->urgent, LOAD(&s->written));
            }
            STORE(&s->leader, 0);
            nudge(s);
            helped = 1;
        }
        u64 time = now();
        if (time >= deadline)
            return LOAD(word) >= value ? WAIT_REACHED : WAIT_TIME_PASSED;
        if (helped) {
            spin_until = time + SPIN_NS;
        } else if (time < spin_until) {
            for (u32 i = 0; i < 16; i++)
                relax();
        } else {
            u32 seen = LOAD(&s->event);
            ADD(&s->sleeping, 1);
            ADD(&s->waiting, 1);
            FENCE();
            if (LOAD(word) < value && !LOAD(&s->error) && !(job_is_open(s) && LOAD(&s->trusted)))
                sleep_on_event(s, seen, deadline - time < NAP_NS ? deadline - time : NAP_NS);
            ADD(&s->waiting, -1);
            ADD(&s->sleeping, -1);
        }
    }
}

/* Wait until *word >= value, running commands meanwhile. Returns after about limit_ns, or when a command failed. */
u32 tiny_wait(State *s, const u64 *word, u64 value, u64 limit_ns)
{
    if (LOAD(word) >= value)
        return WAIT_REACHED;
    u32 mode = float_mode();
    set_float_mode(DEFAULT_FLOAT_MODE);
    u32 result = wait_until(s, word, value, now() + limit_ns);
    set_float_mode(mode);
    return result;
}

/* -- after an error ------------------------------------------------------------------------------------------------ */

#if defined(__x86_64__)
static void jump_out(int number, char *info, void *context)
{
    Agent *agent = *(Agent **)(info + 24);                     /* siginfo_t.si_value */
    (void)number, (void)context;
    if (LOAD(&agent->inside))
        __builtin_longjmp((void **)&agent->jump_0, 1);
}

/* Make background threads that are inside a command leave it. */
static void interrupt_agents(State *s, Agent *agents)
{
    struct { void *handler; u64 mask[16]; int flags; void *restorer; } action = { (void *)jump_out, { 0 }, 0, 0 };
    action.flags = 0x40000004;                                 /* SA_SIGINFO | SA_NODEFER */
    sigaction(ABORT_SIGNAL, &action, 0);
    for (u32 i = 0; i < s->background; i++) {
        u64 info[16] = { ABORT_SIGNAL, (u32)-1, 0, (u64)&agents[i] };          /* si_code: SI_QUEUE */
        if (LOAD(&agents[i].inside))
            syscall(SYS_RT_TGSIGQUEUEINFO, getpid(), agents[i].thread, ABORT_SIGNAL, info);
    }
}
#else
static void interrupt_agents(State *s, Agent *agents) { (void)s, (void)agents; }
#endif

static u32 all_outside(State *s, Agent *agents)
{
    u32 inside = LOAD(&s->callers);
    for (u32 i = 0; i < s->background; i++)
        inside += LOAD(&agents[i].inside);
    return !inside;
}

/* Give up what is in the ring, also a command that never ends, and let the timeline reach `completed`. 0 if a
   thread could not be brought out of its command within limit_ns; the queue is of no use then. */
u32 tiny_abort(State *s, Agent *agents, u64 completed, u64 limit_ns)
{
    u64 start = now(), interrupt_at = start + 1000000;
    u32 none = 0;
    __atomic_compare_exchange_n(&s->error, &none, ABORTED, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    wake(s, 0x7fffffff);
    while (!all_outside(s, agents)) {
        u64 time = now();
        if (time >= start + limit_ns)
            return 0;
        if (time >= interrupt_at) {
            close_job(s);
            interrupt_agents(s, agents);
            interrupt_at = time + 10000000;
        }
        sched_yield();
    }
    close_job(s);
    STORE(&s->consumed, s->written);
    STORE(&s->urgent, s->written);
    STORE(&s->completed, completed);
    STORE(&s->fault_code, 0);
    STORE(&s->leader, 0);
    FENCE();
    STORE(&s->error, 0);
    return 1;
}
