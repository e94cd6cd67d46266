"""What the CPU's command processor reads: its packets, and the memory it shares with Python.

The same declarations make the header of the C source that runs them (`c_header`), so a layout is written
once. Packets lie in a ring of bytes; every packet is a multiple of 8 bytes, so 64-bit fields are aligned.
"""
from tiny.hcq.layout import Layout, Packet, Struct, bits, length, tail, u32, u64


class Command(Packet, key="op"):
    """The family of all commands. count: dwords of the packet, the header included."""
    op = bits(0, 0, 8)
    count = length(0, 8, 24)


class Nop(Command, op=0, dwords=2):
    """Skipped; fills the ring up to its end when the next packets would not fit in one piece."""
    padding = tail(2)


class Execute(Command, op=1, dwords=6):
    """Call the program for groups 0 ... groups-1, divided among the workers, and wait for all of them.

    program: address of a ProgramRecord. arguments: what the kernel finds in args[0], args[1], ...: they
    stay in the ring, so launching copies nothing. checked: look at State.fault_code afterwards and stop if
    it is set.
    """
    checked = bits(1, 0, 1)
    program = u64(2)
    groups = u64(4)
    arguments = tail(6, "Q")


class Copy(Command, op=2, dwords=8):
    """Copy nbytes; large copies are divided among the workers. The ranges must not overlap."""
    destination = u64(2)
    source = u64(4)
    nbytes = u64(6)


class Signal(Command, op=3, dwords=6):
    """Store the value at the address after everything before it has finished, and wake who waits for it."""
    address = u64(2)
    value = u64(4)


class Wait(Command, op=4, dwords=6):
    """Hold the queue until the 64-bit word at the address is at least the value."""
    address = u64(2)
    value = u64(4)


class Timestamp(Command, op=5, dwords=4):
    """Store the clock, CLOCK_MONOTONIC in nanoseconds, at the address."""
    address = u64(2)


class Barrier(Command, op=6, dwords=2):
    """Nothing: commands of this queue never overlap. Kept so that a trace shows what was asked for."""


class ProgramRecord(Struct, dwords=6):
    """What Execute.program points to.

    entry: the kernel; launches: how often it has finished; ticks: how long it took the last time.
    """
    entry = u64(0)
    launches = u64(2)
    ticks = u64(4)


class State(Struct, dwords=192):
    """Memory shared by the Python side and the workers, in cache lines (16 dwords) by who writes them.

    written    bytes ever put into the ring; storing it is the doorbell
    urgent     up to here, start at once              consumed   bytes ever taken, moved on after each command
    completed  the queue's timeline                   leader     1 while a thread reads the ring
    error      see ErrorCode                          error_at   position of the command that failed
    ticket     job number << 32 | next chunk to take  done       chunks finished
    event      futex that sleepers wait on, counted up to wake them
    sleeping   threads asleep, `deep` of them without a limit, `waiting` of them callers of tiny_wait
    callers    commands that callers of tiny_wait are inside of
    fault_*    written by a kernel in checked mode: a code that is not 0, then what it has to say
    """
    written = u64(0)
    urgent = u64(2)
    consumed = u64(16)
    completed = u64(32)
    leader = u32(48)
    ticket = u64(64)
    done = u64(80)
    kernel = u64(96)
    arguments = u64(98)
    groups = u64(100)
    chunk = u64(102)
    chunks = u64(104)
    trusted = u64(106)
    event = u32(112)
    sleeping = u32(128)
    deep = u32(129)
    waiting = u32(130)
    alive = u32(131)
    stop = u32(132)
    callers = u32(133)
    ring = u64(144)
    ring_mask = u64(146)
    background = u32(148)
    threads = u32(149)
    error_at = u64(150)
    error = u32(152)
    fault_code = u64(160)
    fault_0 = u64(162)
    fault_1 = u64(164)
    fault_2 = u64(166)


class Agent(Struct, dwords=32):
    """One background thread.

    thread: its number in the system; leading: it reads the ring; inside: above 0 while it takes commands or
    chunks; jump: where it continues when a command is given up.
    """
    state = u64(0)
    thread = u32(2)
    leading = u32(3)
    inside = u32(14)
    jump_0 = u64(4)
    jump_1 = u64(6)
    jump_2 = u64(8)
    jump_3 = u64(10)
    jump_4 = u64(12)


PACKETS = (Nop, Execute, Copy, Signal, Wait, Timestamp, Barrier)


def c_header() -> str:
    """The declarations of this file in C: a struct for each, accessors for bit fields, opcodes."""
    parts = [_c_struct(layout) for layout in (Command, *PACKETS, ProgramRecord, State, Agent)]
    parts += [f"#define {packet.__name__.upper()} {packet.fixed['op']}" for packet in PACKETS]
    return "\n".join(parts) + "\n"


def _c_struct(layout: type[Layout]) -> str:
    """Words that are one field get its name, words of several bit fields an accessor macro for each."""
    words, accessors, dword = [], [], 0
    while dword < layout.dwords:
        inside = [field for field in layout.fields.values() if field.dword == dword and not field.tail]
        if len(inside) == 1 and inside[0].width in (32, 64):
            words.append(f"u{inside[0].width} {inside[0].name};")
        else:
            words.append(f"u32 word{dword};")
            accessors += [f"#define {layout.__name__}_{f.name}(p) ((p)->word{dword} >> {f.low} & "
                          f"{(1 << f.width) - 1:#x}u)" for f in inside]
        dword += 2 if inside and inside[0].width == 64 else 1
    return "\n".join([f"typedef struct {{ {' '.join(words)} }} {layout.__name__};", *accessors])
