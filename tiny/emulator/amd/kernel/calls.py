"""The ioctls of /dev/kfd, one function each, as Linux 6.12 answers them (kfd_chardev.c).

A call's argument is a struct of tiny.autogen.kfd_6_12. As in the kernel, a shorter one is filled with zeros
and a longer one cut: only the number of the request counts. KernelError carries the errno.
"""
import errno
import itertools
import time
from collections.abc import Callable

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.isa.clock import realtime
from tiny.emulator.amd.kernel import queues
from tiny.emulator.amd.kernel.cards import PAGE
from tiny.emulator.amd.kernel.events import WITH_SLOT, KernelError
from tiny.emulator.amd.kernel.memory import MemoryObject, make_pages
from tiny.emulator.amd.kernel.topology import SYSTEM_MEMORY

CALLS: dict[int, tuple[str, Callable]] = {}                  # number -> (struct's name, function)
TYPES = (
    kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM,
    kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT,
    kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR,
    kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL,
    kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP,
)
HOST_TYPES = (kfd.KFD_IOC_ALLOC_MEM_FLAGS_GTT, kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR)
SYSTEM_LIMIT = SYSTEM_MEMORY // 16 * 15  # amdgpu_amdkfd_gpuvm.c, amdgpu_amdkfd_gpuvm_init_mem_limits
LDS_APERTURE, SCRATCH_APERTURE = 1 << 48, 2 << 48  # kfd_flat_memory.c, gfx9 and later
GPUVM_BASE, GPUVM_LIMIT = 0x1000, (1 << 47) - 1
EVENTS_OFFSET = 2 << 62  # of the event page when /dev/kfd is mapped: kfd_priv.h, KFD_MMAP_TYPE_EVENTS
TILE_MODES, MACRO_TILE_MODES = 32, 16  # amdgpu_gfx.h, struct amdgpu_gfx_config


def call(request: int, struct: str):
    """Register the function of an ioctl."""

    def register(function: Callable) -> Callable:
        CALLS[request & 0xFF] = f"struct kfd_ioctl_{struct}_args", function
        return function

    return register


@call(kfd.AMDKFD_IOC_GET_VERSION, "get_version")
def get_version(driver, args) -> None:
    args.major_version, args.minor_version = kfd.KFD_IOCTL_MAJOR_VERSION, kfd.KFD_IOCTL_MINOR_VERSION


@call(kfd.AMDKFD_IOC_ACQUIRE_VM, "acquire_vm")
def acquire_vm(driver, args) -> None:
    gpu = driver.gpu(args.gpu_id, "ACQUIRE_VM")
    if driver.render_gpus.get(args.drm_fd) is not gpu:
        raise KernelError(
            errno.EINVAL, f"ACQUIRE_VM: file descriptor {args.drm_fd} is no render node of this card"
        )
    if gpu.vm_fd not in (None, args.drm_fd):
        raise KernelError(errno.EBUSY, "ACQUIRE_VM: the process has a VM on this card, from another file")
    gpu.vm_fd = args.drm_fd


@call(kfd.AMDKFD_IOC_GET_PROCESS_APERTURES_NEW, "get_process_apertures_new")
def get_process_apertures(driver, args) -> None:
    gpus = list(driver.gpus.values())
    if args.num_of_nodes > len(gpus) + 1:  # the CPU is a node, too
        raise KernelError(errno.EINVAL, f"GET_PROCESS_APERTURES_NEW: {args.num_of_nodes} nodes, there are "
                                        f"{len(gpus) + 1}")
    if not args.num_of_nodes:
        args.num_of_nodes = len(gpus)
        return
    gpus = gpus[: args.num_of_nodes]
    where = args.kfd_process_device_apertures_ptr
    with driver.client(where, "struct kfd_process_device_apertures", len(gpus), write=True) as table:
        for entry, gpu in zip(table, gpus, strict=True):
            entry.lds_base, entry.lds_limit = LDS_APERTURE, LDS_APERTURE | 0xFFFFFFFF
            entry.scratch_base, entry.scratch_limit = SCRATCH_APERTURE, SCRATCH_APERTURE | 0xFFFFFFFF
            entry.gpuvm_base, entry.gpuvm_limit, entry.gpu_id = GPUVM_BASE, GPUVM_LIMIT, gpu.gpu_id
    args.num_of_nodes = len(gpus)


@call(kfd.AMDKFD_IOC_GET_CLOCK_COUNTERS, "get_clock_counters")
def get_clock_counters(driver, args) -> None:
    args.gpu_clock_counter = realtime() if args.gpu_id in driver.gpus else 0
    args.cpu_clock_counter = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
    args.system_clock_counter = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    args.system_clock_freq = 10**9


@call(kfd.AMDKFD_IOC_SET_MEMORY_POLICY, "set_memory_policy")
def set_memory_policy(driver, args) -> None:
    driver.gpu(args.gpu_id, "SET_MEMORY_POLICY")
    policies = (kfd.KFD_IOC_CACHE_POLICY_COHERENT, kfd.KFD_IOC_CACHE_POLICY_NONCOHERENT)
    if args.default_policy not in policies or args.alternate_policy not in policies:
        raise KernelError(errno.EINVAL, "SET_MEMORY_POLICY: an unknown policy")


@call(kfd.AMDKFD_IOC_SET_SCRATCH_BACKING_VA, "set_scratch_backing_va")
def set_scratch_backing_va(driver, args) -> None:
    driver.gpu(args.gpu_id, "SET_SCRATCH_BACKING_VA")


@call(kfd.AMDKFD_IOC_SET_TRAP_HANDLER, "set_trap_handler")
def set_trap_handler(driver, args) -> None:
    driver.gpu(args.gpu_id, "SET_TRAP_HANDLER")


@call(kfd.AMDKFD_IOC_SET_XNACK_MODE, "set_xnack_mode")
def set_xnack_mode(driver, args) -> None:
    if args.xnack_enabled > 0:
        raise KernelError(errno.EPERM, "SET_XNACK_MODE: no emulated card retries faults")
    args.xnack_enabled = 0


@call(kfd.AMDKFD_IOC_GET_TILE_CONFIG, "get_tile_config")
def get_tile_config(driver, args) -> None:
    """How pictures are tiled. The tables are of cards before gfx9; later ones leave them 0."""
    gpu = driver.gpu(args.gpu_id, "GET_TILE_CONFIG")
    args.gb_addr_config = gpu.card.tiling
    args.num_banks = args.num_ranks = 0
    args.num_tile_configs = min(args.num_tile_configs, TILE_MODES)
    args.num_macro_tile_configs = min(args.num_macro_tile_configs, MACRO_TILE_MODES)
    for address, count in ((args.tile_config_ptr, args.num_tile_configs),
                           (args.macro_tile_config_ptr, args.num_macro_tile_configs)):
        with driver.client(address, "uint32_t", count, write=True) as table:
            for number in range(count):
                table[number] = 0


@call(kfd.AMDKFD_IOC_RUNTIME_ENABLE, "runtime_enable")
def runtime_enable(driver, args) -> None:
    enabling = bool(args.mode_mask & 1)
    if enabling and driver.runtime_enabled:
        raise KernelError(errno.EBUSY, "RUNTIME_ENABLE: it is enabled already")
    if enabling and driver.queues:
        raise KernelError(errno.EEXIST, "RUNTIME_ENABLE: queues exist already")
    driver.runtime_enabled = enabling


# -- memory --------------------------------------------------------------------------------------------------
@call(kfd.AMDKFD_IOC_ALLOC_MEMORY_OF_GPU, "alloc_memory_of_gpu")
def alloc_memory(driver, args) -> None:
    gpu = driver.gpu(args.gpu_id, "ALLOC_MEMORY_OF_GPU")
    kind = args.flags & sum(TYPES)
    if not args.size or kind not in TYPES or gpu.vm_fd is None:
        why = (
            "a size of 0"
            if not args.size
            else f"flags {args.flags:#x} name no one type of memory"
            if kind not in TYPES
            else "ACQUIRE_VM has not been called"
        )
        raise KernelError(errno.EINVAL, f"ALLOC_MEMORY_OF_GPU: {why}")
    fixed = {
        kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL: queues.DOORBELL_SLICE,
        kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP: PAGE,
    }.get(kind)
    if fixed is not None and args.size != fixed:
        raise KernelError(errno.EINVAL, f"ALLOC_MEMORY_OF_GPU: {args.size} bytes; this type has {fixed}")
    client_memory = kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR
    if client_memory and not args.mmap_offset:
        raise KernelError(errno.EINVAL, "ALLOC_MEMORY_OF_GPU: USERPTR without the address, in mmap_offset")
    size = -(-args.size // PAGE) * PAGE
    twice = bool(args.flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM)
    if twice and size % (2 * PAGE):
        raise KernelError(errno.EINVAL, f"ALLOC_MEMORY_OF_GPU: {size} bytes that are mapped twice")
    held = size // 2 if twice else size
    _check_room(driver, gpu, kind, held, args.flags)
    fd, offset = _pages(driver, gpu, kind, args.mmap_offset, held)
    handle = driver.new_handle(gpu)
    memory = MemoryObject(handle, args.gpu_id, args.va_addr, size, args.flags, fd, offset)
    driver.memory[handle] = memory
    driver.user_addresses[handle] = args.mmap_offset
    if kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
        gpu.vram_used += held
    elif kind in HOST_TYPES:
        driver.system_used += held
    args.handle = handle
    args.mmap_offset = args.mmap_offset if client_memory else driver.mmap_offset(memory, gpu, kind)


def _pages(driver, gpu, kind: int, user_address: int, size: int) -> tuple[int, int]:
    """(file descriptor, offset) of the pages of a new object."""
    if kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_USERPTR:
        return driver.process.user_pages(user_address, size)
    if kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL:
        return gpu.doorbells.fd, 0
    if kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP:
        return gpu.registers_fd, 0
    return make_pages("gpu-memory", size), 0


def _check_room(driver, gpu, kind: int, size: int, flags: int) -> None:
    """Refuse what does not fit, and video memory that the host can reach where the BAR is small."""
    if kind == kfd.KFD_IOC_ALLOC_MEM_FLAGS_VRAM:
        if flags & kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC and not gpu.card.large_bar:
            raise KernelError(errno.EINVAL, "ALLOC_MEMORY_OF_GPU: PUBLIC video memory, and a small BAR")
        if gpu.vram_used + size > gpu.card.vram:
            raise KernelError(errno.ENOMEM, f"ALLOC_MEMORY_OF_GPU: {size} bytes; {gpu.vram_used} of "
                                            f"{gpu.card.vram} are used")
    elif kind in HOST_TYPES and driver.system_used + size > SYSTEM_LIMIT:
        raise KernelError(errno.ENOMEM, f"ALLOC_MEMORY_OF_GPU: {size} bytes; {driver.system_used} of "
                                        f"{SYSTEM_LIMIT} bytes of host memory are used")


@call(kfd.AMDKFD_IOC_FREE_MEMORY_OF_GPU, "free_memory_of_gpu")
def free_memory(driver, args) -> None:
    memory = driver.object(args.handle, errno.EINVAL, "FREE_MEMORY_OF_GPU")
    if memory.mapped:
        raise KernelError(errno.EBUSY, "FREE_MEMORY_OF_GPU: the object is still mapped")
    driver.forget(memory)


@call(kfd.AMDKFD_IOC_MAP_MEMORY_TO_GPU, "map_memory_to_gpu")
def map_memory(driver, args) -> None:
    memory, gpus = _memory_and_gpus(driver, args, "MAP_MEMORY_TO_GPU")
    for gpu in gpus[args.n_success :]:
        if gpu.gpu_id not in memory.mapped:
            if not memory.mapped:
                driver.process.place(memory, driver.user_addresses[memory.handle])
            try:
                gpu.table.insert(memory)
            except ValueError as error:
                raise KernelError(errno.EINVAL, f"MAP_MEMORY_TO_GPU: {error}") from None
            memory.mapped.add(gpu.gpu_id)
        args.n_success += 1


@call(kfd.AMDKFD_IOC_UNMAP_MEMORY_FROM_GPU, "unmap_memory_from_gpu")
def unmap_memory(driver, args) -> None:
    memory, gpus = _memory_and_gpus(driver, args, "UNMAP_MEMORY_FROM_GPU")
    if memory.used:
        raise KernelError(
            errno.EBUSY, "UNMAP_MEMORY_FROM_GPU: a queue stands on the object; destroy the queue first"
        )
    for gpu in gpus[args.n_success :]:
        if gpu.gpu_id in memory.mapped:
            gpu.table.remove(memory)
            memory.mapped.discard(gpu.gpu_id)
        args.n_success += 1


def _memory_and_gpus(driver, args, name: str):
    if not args.n_devices or args.n_success > args.n_devices:
        raise KernelError(errno.EINVAL, f"{name}: {args.n_devices} devices, {args.n_success} done")
    memory = driver.object(args.handle, errno.ENOMEM, name)
    with driver.client(args.device_ids_array_ptr, "uint32_t", args.n_devices) as ids:
        return memory, [driver.gpu(number, name) for number in ids]


@call(kfd.AMDKFD_IOC_AVAILABLE_MEMORY, "get_available_memory")
def available_memory(driver, args) -> None:
    gpu = driver.gpu(args.gpu_id, "AVAILABLE_MEMORY")
    args.available = gpu.card.vram - gpu.vram_used


# -- queues --------------------------------------------------------------------------------------------------
@call(kfd.AMDKFD_IOC_CREATE_QUEUE, "create_queue")
def create_queue(driver, args) -> None:
    queues.check_properties(args)
    gpu = driver.gpu(args.gpu_id, "CREATE_QUEUE")
    mine = [queue for queue in driver.queues.values() if queue.gpu_id == args.gpu_id]
    queues.check_count(args.queue_type, [queue.type for queue in mine], gpu.card)
    buffers = queues.acquire_buffers(args, gpu.card, gpu.table)
    taken = {queue.doorbell for queue in mine}
    doorbell = queues.doorbell_for(args.queue_type, taken)
    number = next(n for n in itertools.count() if n not in driver.queues)
    queue = queues.Queue(
        number,
        args.gpu_id,
        args.queue_type,
        args.ring_base_address,
        max(args.ring_size, kfd.KFD_MIN_QUEUE_RING_SIZE),
        args.write_pointer_address,
        args.read_pointer_address,
        doorbell,
        args.queue_percentage & 0xFF,
        buffers,
    )
    for memory in buffers:
        memory.used += 1
    driver.queues[number] = queue
    gpu.doorbells.clear(doorbell)
    driver.start(queue, gpu)
    args.queue_id = number
    args.doorbell_offset = driver.doorbell_offset(gpu) + doorbell


@call(kfd.AMDKFD_IOC_UPDATE_QUEUE, "update_queue")
def update_queue(driver, args) -> None:
    queue = _queue(driver, args.queue_id, "UPDATE_QUEUE")
    if (
        args.queue_percentage & 0xFF > kfd.KFD_MAX_QUEUE_PERCENTAGE
        or args.queue_priority > kfd.KFD_MAX_QUEUE_PRIORITY
    ):
        raise KernelError(errno.EINVAL, "UPDATE_QUEUE: percentage or priority out of range")
    queue.percentage = args.queue_percentage & 0xFF
    if args.ring_base_address:
        queue.ring, queue.ring_size = args.ring_base_address, args.ring_size


@call(kfd.AMDKFD_IOC_DESTROY_QUEUE, "destroy_queue")
def destroy_queue(driver, args) -> None:
    queue = _queue(driver, args.queue_id, "DESTROY_QUEUE")
    driver.stop(queue)
    for memory in queue.buffers:
        memory.used -= 1
    del driver.queues[args.queue_id]


def _queue(driver, number: int, name: str) -> queues.Queue:
    if number not in driver.queues:
        raise KernelError(errno.EINVAL, f"{name}: there is no queue {number}")
    return driver.queues[number]


# -- events --------------------------------------------------------------------------------------------------
@call(kfd.AMDKFD_IOC_CREATE_EVENT, "create_event")
def create_event(driver, args) -> None:
    if args.event_page_offset:
        memory = driver.object(args.event_page_offset, errno.EINVAL, "CREATE_EVENT")
        driver.events.set_page(memory)
    event = driver.events.create(args.event_type, bool(args.auto_reset))
    args.event_id = args.event_trigger_data = event.id
    with_slot = args.event_type in WITH_SLOT
    args.event_slot_index = event.id if with_slot else 0
    args.event_page_offset = EVENTS_OFFSET if with_slot else 0


@call(kfd.AMDKFD_IOC_DESTROY_EVENT, "destroy_event")
def destroy_event(driver, args) -> None:
    driver.events.destroy(args.event_id)


@call(kfd.AMDKFD_IOC_SET_EVENT, "set_event")
def set_event(driver, args) -> None:
    driver.events.set(driver.events.get(args.event_id, "SET_EVENT"))


@call(kfd.AMDKFD_IOC_RESET_EVENT, "reset_event")
def reset_event(driver, args) -> None:
    driver.events.get(args.event_id, "RESET_EVENT").signaled = False


@call(kfd.AMDKFD_IOC_WAIT_EVENTS, "wait_events")
def wait_events(driver, args) -> None:
    with driver.client(args.events_ptr, "struct kfd_event_data", args.num_events, write=True) as table:
        numbers = [entry.event_id for entry in table]
        ages = [entry.signal_event_data.last_event_age for entry in table]
        driver.run()  # what a queue waited for may have happened since
        try:
            args.wait_result, ready = driver.events.wait(numbers, ages, bool(args.wait_for_all), args.timeout)
        except KernelError:
            args.wait_result = kfd.KFD_IOC_WAIT_RESULT_FAIL
            raise
        signaled = {event.id: event for event in ready}
        for entry, age in zip(table, ages, strict=True):
            if entry.event_id in signaled:
                _tell(entry, signaled[entry.event_id], age)


def _tell(entry, event, age: int) -> None:
    """Fill in what a client learns of a signalled event. age: the one it knew; 0: it does not count them."""
    if event.type == kfd.KFD_IOC_EVENT_MEMORY:
        data = entry.memory_exception_data
        data.va, data.gpu_id, data.ErrorType = (
            event.data.get(key, 0) for key in ("va", "gpu_id", "error_type")
        )
        data.failure.NotPresent = event.data.get("not_present", 0)
        data.failure.ReadOnly = event.data.get("read_only", 0)
    elif event.type == kfd.KFD_IOC_EVENT_HW_EXCEPTION:
        data = entry.hw_exception_data
        data.reset_cause, data.memory_lost, data.gpu_id = (
            event.data.get(key, 0) for key in ("reset_cause", "memory_lost", "gpu_id")
        )
    elif event.type == kfd.KFD_IOC_EVENT_SIGNAL and age:
        entry.signal_event_data.last_event_age = event.age
