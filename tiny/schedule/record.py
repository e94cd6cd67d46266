"""A schedule as plain data, to be kept on disk and used in another process for the same kernel."""
from tiny.ir.node import toposort
from tiny.schedule import tensorcore
from tiny.schedule.kernel import Kernel
from tiny.schedule.loops import Loop, Pack, Schedule, ScheduleError, check, reduced_axes


def to_data(kernel: Kernel, schedule: Schedule) -> dict:
    """{"loops": [[axis number, step, kind]], "packs": [[operand, depth, layout]], "matrix": name of an
    instruction or None, "streaming": bool}, fit for JSON. operand: its number among the nodes of the value,
    in topological order.
    """
    axes = (*kernel.axes, *reduced_axes(kernel))
    nodes = toposort(kernel.value)
    return {"loops": [[axes.index(loop.axis), loop.step, loop.kind] for loop in schedule.loops],
            "packs": [[nodes.index(pack.operand), pack.depth, list(pack.layout)] for pack in schedule.packs],
            "matrix": None if schedule.matrix is None else schedule.matrix.name,
            "streaming": schedule.streaming}


def from_data(kernel: Kernel, data: dict) -> Schedule:
    """The schedule that `to_data` wrote for an equal kernel. ScheduleError if it is none for this one."""
    axes = (*kernel.axes, *reduced_axes(kernel))
    nodes = toposort(kernel.value)
    try:
        loops = tuple(Loop(axes[axis], step, kind) for axis, step, kind in data["loops"])
        packs = tuple(Pack(nodes[node], depth, tuple(layout)) for node, depth, layout in data["packs"])
        name = data.get("matrix")
        matrix = None if name is None else tensorcore.named(name)
        schedule = Schedule(loops, packs, matrix, bool(data.get("streaming")))
        check(kernel, schedule)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise ScheduleError(f"a recorded schedule that does not fit the kernel: {error}") from None
    return schedule

