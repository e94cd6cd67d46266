/* Getting a thread out of a command that never ends or that crashed.

   Only background threads can be brought back: they continue in background() (threads.c), as if the
   command had returned. A caller of tiny_wait runs no program that has not finished before, so both
   seldom meet it. */

enum { SIGILL = 4, SIGTRAP = 5, SIGABRT = 6, SIGBUS = 7, SIGFPE = 8, SIGSEGV = 11, ABORT_SIGNAL = 52 };
static const u32 recovery_signals[] = { SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, ABORT_SIGNAL };

typedef void (*Handler)(int number, char *info, void *context);
struct action { Handler handler; u64 mask[16]; int flags; void *restorer; };   /* the C library's sigaction */

#if defined(__x86_64__)
static State *crash_state;                                     /* of the device this copy of it serves */
static Agent *crash_agents;
static struct action before_us[32];

static void catch_signal(int number, Handler handler, struct action *before)
{
    struct action action = { handler, { 0 }, 0x40000004, 0 };  /* SA_SIGINFO | SA_NODEFER */
    sigaction(number, &action, before);
}

/* siginfo_t.si_addr, or where another handler caught the fault first and raised the signal anew (si_code is not
   positive then), the processor's CR2 as ucontext_t keeps it: asm/sigcontext.h, struct sigcontext_64. */
static u64 faulting_address(char *info, void *context)
{
    return *(int *)(info + 8) > 0 ? *(u64 *)(info + 16) : *(u64 *)((char *)context + 216);
}

/* A fault of a background thread inside a command is the queue's error; any other one is handed on. */
static void crashed(int number, char *info, void *context)
{
    u32 thread = (u32)syscall(SYS_GETTID);
    for (u32 i = 0; i < crash_state->background; i++) {
        Agent *agent = &crash_agents[i];
        if (agent->thread != thread || !LOAD(&agent->inside))
            continue;
        if (!LOAD(&crash_state->error)) {
            crash_state->fault_0 = (u64)number;
            crash_state->fault_1 = faulting_address(info, context);
        }
        fail(crash_state, CRASHED);
        __builtin_longjmp((void **)&agent->jump_0, 1);
    }
    Handler next = before_us[number].handler;
    if ((u64)next > 1)                                         /* neither SIG_DFL nor SIG_IGN */
        next(number, info, context);
    else
        sigaction(number, &before_us[number], 0);              /* the instruction faults again */
}

static void catch_crashes(State *s, Agent *agents)
{
    static const int numbers[] = { SIGILL, SIGBUS, SIGFPE, SIGSEGV };
    crash_state = s;
    crash_agents = agents;
    for (u32 i = 0; i < 4; i++)
        catch_signal(numbers[i], crashed, &before_us[numbers[i]]);
}

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
    catch_signal(ABORT_SIGNAL, jump_out, 0);
    for (u32 i = 0; i < s->background; i++) {
        u64 info[16] = { ABORT_SIGNAL, (u32)-1, 0, (u64)&agents[i] };          /* si_code: SI_QUEUE */
        if (LOAD(&agents[i].inside))
            syscall(SYS_RT_TGSIGQUEUEINFO, getpid(), agents[i].thread, ABORT_SIGNAL, info);
    }
}
#else                                                          /* compilers have no __builtin_longjmp there */
static void catch_crashes(State *s, Agent *agents) { (void)s, (void)agents; }
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
    fail(s, ABORTED);
    while (!all_outside(s, agents) || LOAD(&s->leader)) {
        u64 time = now();
        if (time >= start + limit_ns)
            return 0;
        if (time >= interrupt_at) {
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
    FENCE();
    STORE(&s->error, 0);
    return 1;
}
