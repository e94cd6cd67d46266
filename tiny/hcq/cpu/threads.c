/* -- threads ------------------------------------------------------------------------------------------- */

/* Lead if there is work: urgent work, or after a nap any. 1 if something was done. */
static u32 drive(State *s, Agent *agent, u32 everything)
{
    u64 limit = everything ? LOAD(&s->written) : LOAD(&s->urgent);
    if (LOAD(&s->consumed) >= limit || LOAD(&s->error) || !try_lead(s, agent))
        return 0;
    u32 result = lead(s, agent, 0, 0);
    stop_leading(s, agent);
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
    (void)__builtin_setjmp((void **)&agent->jump_0);           /* who left a command by a jump goes on here */
#endif
    STORE(&agent->inside, 0);
    if (LOAD(&agent->leading)) {
        STORE(&agent->leading, 0);
        STORE(&s->leader, 0);
    }
    serve(s, agent);
    ADD(&s->alive, -1);
    return 0;
}

/* Start a thread for each of the agents, with signals blocked but for those of recovery.c. The number
   started. */
u32 tiny_start(State *s, Agent *agents)
{
    catch_crashes(s, agents);
    u64 old[16], blocked[16];
    for (u32 i = 0; i < 16; i++)
        blocked[i] = ~0ull;
    for (u32 i = 0; i < sizeof recovery_signals / sizeof *recovery_signals; i++)
        blocked[0] &= ~(1ull << (recovery_signals[i] - 1));
    pthread_sigmask(2, blocked, old);                          /* SIG_SETMASK */
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

/* The ring holds `written` bytes now. urgent: worth waking another core; else the caller will soon wait,
   and runs the commands itself, or a napping thread finds them within NAP_NS. */
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
            stop_leading(s, 0);
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

/* Wait until *word >= value, running commands meanwhile. Returns after about limit_ns, or when a command
   failed. */
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
