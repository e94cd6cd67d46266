"""CREATE_QUEUE as the kernel checks it, and the doorbells of a process.

Source: kfd_chardev.c, set_queue_properties_from_user; kfd_queue.c, kfd_queue_acquire_buffers; kfd_doorbell.c;
Linux 6.12.
"""
import errno
from dataclasses import dataclass

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.kernel.cards import PAGE, Card
from tiny.emulator.amd.kernel.events import KernelError
from tiny.emulator.amd.kernel.memory import MemoryObject, PageTable

DOORBELL_SLICE = 2 * PAGE  # of a process on one card: 1024 doorbells of 8 bytes
SDMA_DOORBELLS = 0x100                                       # doorbells from here on belong to copy engines
MOST_QUEUES = 4096                                           # of a card, KFD_MAX_NUM_OF_QUEUES_PER_DEVICE
SDMA_QUEUES = 8                                              # of a copy engine, num_sdma_queues_per_engine
COMPUTE_TYPES = (kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL)
SDMA_TYPES = (
    kfd.KFD_IOC_QUEUE_TYPE_SDMA,
    kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI,
    kfd.KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID,
)
USER_BITS = 47                                               # of a process's addresses, access_ok on x86-64
ENOTSUPP = 524  # the kernel's own number, include/linux/errno.h


@dataclass(eq=False, slots=True)
class Queue:
    """A user queue. Addresses are GPU addresses; sizes in bytes; doorbell: its byte offset in the process's
    slice.
    """

    id: int
    gpu_id: int
    type: int
    ring: int
    ring_size: int
    write_pointer: int
    read_pointer: int
    doorbell: int
    percentage: int
    buffers: list[MemoryObject]
    dead: str = ""  # why it runs no more


def check_properties(args) -> None:
    """The checks that need no memory. args: struct kfd_ioctl_create_queue_args."""
    known = (*COMPUTE_TYPES, *SDMA_TYPES)
    if args.queue_type not in known:
        raise KernelError(ENOTSUPP, f"CREATE_QUEUE: there is no queue type {args.queue_type}")
    if args.queue_percentage & 0xFF > kfd.KFD_MAX_QUEUE_PERCENTAGE:
        raise KernelError(errno.EINVAL, f"CREATE_QUEUE: a percentage of {args.queue_percentage & 0xFF}")
    if args.queue_priority > kfd.KFD_MAX_QUEUE_PRIORITY:
        raise KernelError(errno.EINVAL, f"CREATE_QUEUE: a priority of {args.queue_priority}, at most 15")
    if args.ring_size and args.ring_size & (args.ring_size - 1):
        raise KernelError(errno.EINVAL, f"CREATE_QUEUE: a ring of {args.ring_size} bytes is no power of two")
    for name in ("ring_base_address", "read_pointer_address", "write_pointer_address"):
        if getattr(args, name) >> USER_BITS:
            raise KernelError(errno.EFAULT, f"CREATE_QUEUE: {name} is an address of the kernel's")


def check_count(kind: int, existing: list[int], card: Card) -> None:
    """Whether a card has a queue of a type left. existing: the types of those there are."""
    if len(existing) >= MOST_QUEUES:
        raise KernelError(errno.EPERM, f"CREATE_QUEUE: a card has {MOST_QUEUES} queues at most")
    if kind == kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI:            # allocate_sdma_queue, kfd_device_queue_manager.c
        raise KernelError(errno.ENOMEM, "CREATE_QUEUE: the card has no SDMA engine for XGMI")
    most = card.sdma_engines * SDMA_QUEUES
    if kind in SDMA_TYPES and sum(other in SDMA_TYPES for other in existing) >= most:
        raise KernelError(errno.ENOMEM, f"CREATE_QUEUE: all {most} SDMA queues of the card are taken")


def acquire_buffers(args, card: Card, table: PageTable) -> list[MemoryObject]:
    """The objects a queue stands on, each checked to start where the argument says and to have the size it
    must.
    """
    found = [
        _whole(table, pointer & ~(PAGE - 1), PAGE, name)
        for name, pointer in (
            ("write pointer", args.write_pointer_address),
            ("read pointer", args.read_pointer_address),
        )
    ]
    found.append(
        _whole(table, args.ring_base_address, max(args.ring_size, kfd.KFD_MIN_QUEUE_RING_SIZE), "ring")
    )
    if args.queue_type not in COMPUTE_TYPES:
        return found
    if args.eop_buffer_address:
        if args.eop_buffer_size < PAGE:
            raise KernelError(
                errno.EINVAL, f"CREATE_QUEUE: an end-of-pipe buffer of {args.eop_buffer_size} bytes"
            )
        size = -(-args.eop_buffer_size // PAGE) * PAGE
        found.append(_whole(table, args.eop_buffer_address, size, "end-of-pipe buffer"))
    if args.ctl_stack_size != card.control_stack_size:
        raise KernelError(
            errno.EINVAL,
            f"CREATE_QUEUE: a control stack of {args.ctl_stack_size} bytes; this card's has "
            f"{card.control_stack_size}",
        )
    if args.ctx_save_restore_size < card.save_area_size:
        raise KernelError(
            errno.EINVAL,
            f"CREATE_QUEUE: a save area of {args.ctx_save_restore_size} bytes; this card's has "
            f"{card.save_area_size}",
        )
    size = (args.ctx_save_restore_size + card.debugger_size) * card.xccs
    found.append(_whole(table, args.ctx_save_restore_address, -(-size // PAGE) * PAGE, "save area"))
    return found


def _whole(table: PageTable, address: int, size: int, name: str) -> MemoryObject:
    """The object whose mapping starts in this page and has this size; less than a page fits any."""
    address, pages = address & ~(PAGE - 1), size // PAGE
    memory = table.find(address)
    if memory is None or memory.address != address or (pages and memory.page_bytes != pages * PAGE):
        held = "nothing" if memory is None else f"{memory.page_bytes} bytes at {memory.address:#x}"
        raise KernelError(
            errno.EINVAL,
            f"CREATE_QUEUE: the {name} must be a mapping of its own, {size} bytes at "
            f"{address:#x}; {held} is mapped there",
        )
    return memory


def doorbell_for(kind: int, taken: set[int]) -> int:
    """A free doorbell's byte offset: copy engines have theirs from a fixed place on. EBUSY when none is left.
    """
    numbers = (
        range(SDMA_DOORBELLS, 2 * SDMA_DOORBELLS)
        if kind in SDMA_TYPES
        else (*range(8, SDMA_DOORBELLS), *range(2 * SDMA_DOORBELLS, DOORBELL_SLICE // 8))
    )
    offset = next((number * 8 for number in numbers if number * 8 not in taken), None)
    if offset is None:
        raise KernelError(errno.EBUSY, "CREATE_QUEUE: no doorbell is left")
    return offset
