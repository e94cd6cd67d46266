"""What the emulated kernel refuses, with its errno, and what it accepts: as kfd_chardev.c of Linux 6.12."""
import errno
import os
import threading
import time
from dataclasses import replace

import pytest

from tiny.autogen import kfd_6_12 as kfd
from tiny.emulator.amd.kernel.calls import EVENTS_OFFSET
from tiny.emulator.amd.kernel.cards import CARDS, PAGE
from tiny.emulator.amd.kernel.memory import MemoryFault
from tiny.emulator.amd.kernel.provider import EmulatedRadeon
from tiny.emulator.amd.kernel.queues import DOORBELL_SLICE, ENOTSUPP, SDMA_QUEUES

ffi = kfd.ffi
VRAM, GTT, USERPTR = (getattr(kfd, f"KFD_IOC_ALLOC_MEM_FLAGS_{name}") for name in ("VRAM", "GTT", "USERPTR"))
WRITABLE, PUBLIC = kfd.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, kfd.KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC
DOORBELL, MMIO = kfd.KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, kfd.KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP
TWICE = kfd.KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM
RESERVE = dict(protection=0, flags=0x22 | 0x4000)
STRUCTS = {"AVAILABLE_MEMORY": "get_available_memory"}


class Client:
    """A process that talks to /dev/kfd with bare structs."""

    def __init__(self, *cards):
        self.io = EmulatedRadeon(list(cards) or [CARDS["gfx1100"]])
        self.fd = self.io.open("/dev/kfd")
        self.ids = list(self.io.gpus)
        self.gpu = self.ids[0]
        self.render = self.io.open("/dev/dri/renderD128")

    def call(self, name, given=None, **fields):
        """The struct after the call; given: its size as handed over, if not its own."""
        struct = f"struct kfd_ioctl_{STRUCTS.get(name, name.lower())}_args"
        args = ffi.new(struct + " *", fields)
        data = bytearray(ffi.buffer(args))[:given]
        data += bytes(max(0, (given or 0) - len(data)))
        try:
            self.io.ioctl(self.fd, getattr(kfd, f"AMDKFD_IOC_{name}"), data)
        finally:
            whole = bytes(data[:ffi.sizeof(struct)])
            ffi.memmove(args, whole, len(whole))
        return args

    def fails(self, number, name, **fields):
        with pytest.raises(OSError) as error:
            self.call(name, **fields)
        assert error.value.errno == number, error.value
        return str(error.value)

    def acquire(self):
        self.call("ACQUIRE_VM", gpu_id=self.gpu, drm_fd=self.render)
        return self

    def allocate(self, size, flags=GTT | WRITABLE, gpu=None):
        """A memory object at reserved addresses, not mapped."""
        address = self.io.mmap(size, **RESERVE)
        return address, self.call("ALLOC_MEMORY_OF_GPU", va_addr=address, size=size, gpu_id=gpu or self.gpu,
                                  flags=flags).handle

    def map(self, handle, *gpus, done=0, call="MAP_MEMORY_TO_GPU"):
        ids = ffi.new("uint32_t[]", list(gpus) or [self.gpu])
        return self.call(call, handle=handle, device_ids_array_ptr=int(ffi.cast("uintptr_t", ids)),
                         n_devices=len(ids), n_success=done)

    def mapped(self, size, flags=GTT | WRITABLE):
        address, handle = self.allocate(size, flags)
        assert self.map(handle).n_success == 1
        return address

    def queue_fields(self, kind=kfd.KFD_IOC_QUEUE_TYPE_COMPUTE, ring=PAGE):
        card = self.io.gpus[self.gpu].card
        pointers = self.mapped(PAGE)
        fields = dict(ring_base_address=self.mapped(ring), ring_size=ring, gpu_id=self.gpu, queue_type=kind,
                      write_pointer_address=pointers + 8, read_pointer_address=pointers, queue_percentage=100)
        if kind != kfd.KFD_IOC_QUEUE_TYPE_SDMA:
            size = (card.save_area_size + card.debugger_size) * card.xccs
            fields |= dict(eop_buffer_address=self.mapped(PAGE, VRAM), eop_buffer_size=PAGE,
                           ctx_save_restore_address=self.mapped(-(-size // PAGE) * PAGE),
                           ctx_save_restore_size=card.save_area_size, ctl_stack_size=card.control_stack_size)
        return fields


@pytest.fixture
def client():
    return Client().acquire()


def test_version_and_numbers_that_are_not_known(client):
    version = client.call("GET_VERSION")
    assert (version.major_version, version.minor_version) == (1, 17)
    for request in (0x4b7f, 0xc0084b55, 0xc0084602):
        with pytest.raises(OSError) as error:
            client.io.ioctl(client.fd, request, bytearray(8))
        assert error.value.errno == errno.ENOTTY


def test_only_the_number_of_a_request_counts_and_shorter_arguments_are_filled_with_zeros(client):
    fields = client.queue_fields()
    assert client.call("CREATE_QUEUE", given=88, **fields).queue_id == 0      # as before sdma_engine_id
    assert client.call("CREATE_QUEUE", given=200, **client.queue_fields()).queue_id == 1
    short = kfd.AMDKFD_IOC_CREATE_QUEUE & ~(0x3fff << 16) | 88 << 16
    data = bytearray(ffi.buffer(ffi.new("struct kfd_ioctl_create_queue_args *", client.queue_fields())))[:88]
    client.io.ioctl(client.fd, short, data)
    assert int.from_bytes(data[52:56], "little") == 2


def test_the_file_serves_only_who_opened_it(client):
    child = os.fork()
    if child == 0:
        try:
            client.call("GET_VERSION")
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == errno.EBADF


@pytest.mark.parametrize("name", ["ALLOC_MEMORY_OF_GPU", "AVAILABLE_MEMORY", "ACQUIRE_VM",
                                  "SET_MEMORY_POLICY", "SET_TRAP_HANDLER",
                                  "SET_SCRATCH_BACKING_VA"])
def test_a_card_that_is_not_there(client, name):
    more = dict(size=4096, flags=GTT) if name == "ALLOC_MEMORY_OF_GPU" else {}
    assert "999" in client.fails(errno.EINVAL, name, gpu_id=999, **more)


def test_acquire_vm():
    client = Client()
    other = client.io.open("/dev/dri/renderD128")
    client.fails(errno.EINVAL, "ALLOC_MEMORY_OF_GPU", gpu_id=client.gpu, size=4096, flags=GTT)
    client.fails(errno.EINVAL, "ACQUIRE_VM", gpu_id=client.gpu, drm_fd=77)
    client.acquire().acquire()
    client.fails(errno.EBUSY, "ACQUIRE_VM", gpu_id=client.gpu, drm_fd=other)


@pytest.mark.parametrize("fields", [
    dict(size=0, flags=GTT), dict(size=4096, flags=WRITABLE), dict(size=4096, flags=GTT | VRAM),
    dict(size=4096, flags=USERPTR), dict(size=4096, flags=DOORBELL), dict(size=8192, flags=MMIO)], ids=str)
def test_memory_that_is_asked_for_wrongly(client, fields):
    client.fails(errno.EINVAL, "ALLOC_MEMORY_OF_GPU", gpu_id=client.gpu, **fields)


def test_memory_that_is_not_there():
    client = Client(replace(CARDS["gfx1100"], large_bar=False)).acquire()
    client.fails(errno.EINVAL, "ALLOC_MEMORY_OF_GPU", gpu_id=client.gpu, size=4096, flags=VRAM | PUBLIC)
    client.fails(errno.ENOMEM, "ALLOC_MEMORY_OF_GPU", gpu_id=client.gpu, size=25 << 30, flags=VRAM)
    client.fails(errno.ENOMEM, "ALLOC_MEMORY_OF_GPU", gpu_id=client.gpu, size=65 << 30, flags=GTT)
    _, handle = client.allocate(20 << 30, VRAM)
    assert client.call("AVAILABLE_MEMORY", gpu_id=client.gpu).available == 4 << 30
    client.fails(errno.ENOMEM, "ALLOC_MEMORY_OF_GPU", gpu_id=client.gpu, size=5 << 30, flags=VRAM)
    client.call("FREE_MEMORY_OF_GPU", handle=handle)
    assert client.call("AVAILABLE_MEMORY", gpu_id=client.gpu).available == 24 << 30


def test_mapping_and_freeing(client):
    address, handle = client.allocate(8192)
    ids = ffi.new("uint32_t[]", [client.gpu])
    where = int(ffi.cast("uintptr_t", ids))
    for call in ("MAP_MEMORY_TO_GPU", "UNMAP_MEMORY_FROM_GPU"):
        client.fails(errno.EINVAL, call, handle=handle, device_ids_array_ptr=where, n_devices=0)
        client.fails(errno.EINVAL, call, handle=handle, device_ids_array_ptr=where, n_devices=1, n_success=2)
        client.fails(errno.ENOMEM, call, handle=handle + 99, device_ids_array_ptr=where, n_devices=1)
        client.fails(errno.EFAULT, call, handle=handle, n_devices=1)
    ids[0] = 999
    client.fails(errno.EINVAL, "MAP_MEMORY_TO_GPU", handle=handle, device_ids_array_ptr=where, n_devices=1)
    assert client.map(handle).n_success == client.map(handle).n_success == 1
    assert "mapped" in client.fails(errno.EBUSY, "FREE_MEMORY_OF_GPU", handle=handle)
    client.map(handle, call="UNMAP_MEMORY_FROM_GPU")
    client.call("FREE_MEMORY_OF_GPU", handle=handle)
    client.fails(errno.EINVAL, "FREE_MEMORY_OF_GPU", handle=handle)


def test_memory_under_a_queue_stays_mapped(client):
    fields = client.queue_fields()
    queue = client.call("CREATE_QUEUE", **fields)
    ring = next(memory for memory in client.io.memory.values()
                if memory.address == fields["ring_base_address"])
    with pytest.raises(OSError) as error:
        client.map(ring.handle, call="UNMAP_MEMORY_FROM_GPU")
    assert error.value.errno == errno.EBUSY
    client.call("DESTROY_QUEUE", queue_id=queue.queue_id)
    client.fails(errno.EINVAL, "DESTROY_QUEUE", queue_id=queue.queue_id)
    client.map(ring.handle, call="UNMAP_MEMORY_FROM_GPU")


@pytest.mark.parametrize("number, wrong", [
    (errno.EINVAL, dict(queue_percentage=101)), (errno.EINVAL, dict(queue_priority=16)),
    (errno.EINVAL, dict(ring_size=5000)), (errno.EFAULT, dict(ring_base_address=1 << 63)),
    (errno.EINVAL, dict(ring_base_address=0)), (errno.EFAULT, dict(read_pointer_address=1 << 63)),
    (errno.EINVAL, dict(write_pointer_address=0)), (errno.EINVAL, dict(read_pointer_address=0)),
    (ENOTSUPP, dict(queue_type=9)), (errno.EINVAL, dict(gpu_id=999)),
    (errno.EINVAL, dict(ring_size=2 * PAGE)), (errno.EINVAL, dict(eop_buffer_size=0)),
    (errno.EINVAL, dict(eop_buffer_size=2 * PAGE)), (errno.EINVAL, dict(ctl_stack_size=PAGE)),
    (errno.EINVAL, dict(ctx_save_restore_size=PAGE)), (errno.EINVAL, dict(ctx_save_restore_address=PAGE)),
    (errno.EINVAL, dict(read_pointer_address=0x10000)), (errno.EINVAL, dict(ring_base_address=0x10000)),
], ids=str)
def test_a_queue_that_is_asked_for_wrongly(client, number, wrong):
    client.fails(number, "CREATE_QUEUE", **client.queue_fields() | wrong)
    assert not client.io.queues


@pytest.mark.parametrize("delta", [-PAGE, PAGE])
def test_the_save_area_must_have_exactly_its_size(client, delta):
    fields = client.queue_fields()
    card = client.io.gpus[client.gpu].card
    size = -(-(card.save_area_size + card.debugger_size) // PAGE) * PAGE
    client.fails(errno.EINVAL, "CREATE_QUEUE",
                 **fields | dict(ctx_save_restore_address=client.mapped(size + delta)))


def test_a_ring_inside_a_larger_mapping_is_refused(client):
    larger = client.mapped(4 * PAGE)
    for ring in (larger, larger + PAGE):
        client.fails(errno.EINVAL, "CREATE_QUEUE", **client.queue_fields() | dict(ring_base_address=ring))
    client.fails(errno.EINVAL, "CREATE_QUEUE",
                 **client.queue_fields() | dict(write_pointer_address=client.mapped(2 * PAGE)))


def test_small_rings_are_raised_and_doorbells_differ(client):
    fields = client.queue_fields(kfd.KFD_IOC_QUEUE_TYPE_SDMA)
    offsets = {client.call("CREATE_QUEUE", **fields).doorbell_offset for _ in range(3)}
    assert len(offsets) == 3 and {offset >> 62 for offset in offsets} == {3}
    assert {offset >> 46 & 0xffff for offset in offsets} == {client.gpu}


def test_a_card_without_xgmi_engines_has_no_queue_for_them(client):
    """As the topology says of it: num_sdma_xgmi_engines is 0."""
    client.fails(errno.ENOMEM, "CREATE_QUEUE", **client.queue_fields(kfd.KFD_IOC_QUEUE_TYPE_SDMA_XGMI))


def test_queues_run_out(client):
    fields = client.queue_fields(kfd.KFD_IOC_QUEUE_TYPE_SDMA)
    for _ in range(CARDS["gfx1100"].sdma_engines * SDMA_QUEUES):
        client.call("CREATE_QUEUE", **fields)
    client.fails(errno.ENOMEM, "CREATE_QUEUE", **fields)
    fields = client.queue_fields()
    with pytest.raises(OSError) as error:
        for _ in range(1025):
            client.call("CREATE_QUEUE", **fields)
    assert error.value.errno == errno.EBUSY


def test_update_queue(client):
    queue = client.call("CREATE_QUEUE", **client.queue_fields()).queue_id
    client.fails(errno.EINVAL, "UPDATE_QUEUE", queue_id=queue, queue_percentage=101)
    client.fails(errno.EINVAL, "UPDATE_QUEUE", queue_id=queue, queue_priority=16)
    client.fails(errno.EINVAL, "UPDATE_QUEUE", queue_id=queue + 1)
    client.call("UPDATE_QUEUE", queue_id=queue, queue_percentage=0)
    assert client.io.queues[queue].percentage == 0


def test_events(client):
    _, small = client.allocate(PAGE)
    client.fails(errno.EINVAL, "CREATE_EVENT", event_page_offset=small)
    address, page = client.allocate(8 * 4096)
    client.map(page)
    memory = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_MEMORY, event_page_offset=page)
    assert memory.event_id >= 0x40000000 and bytes(client.io.view(address, 16)) == b"\xff" * 16
    assert memory.event_page_offset == 0
    client.fails(errno.EINVAL, "CREATE_EVENT", event_page_offset=page)
    signal = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1)
    assert 1 <= signal.event_id == signal.event_slot_index < 4096
    client.call("SET_EVENT", event_id=signal.event_id)
    assert waited(client, signal.event_id) == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
    assert waited(client, signal.event_id) == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
    client.call("SET_EVENT", event_id=signal.event_id)
    client.call("RESET_EVENT", event_id=signal.event_id)
    assert waited(client, signal.event_id) == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
    client.call("DESTROY_EVENT", event_id=signal.event_id)
    for call in ("DESTROY_EVENT", "SET_EVENT", "RESET_EVENT"):
        client.fails(errno.EINVAL, call, event_id=signal.event_id)
    assert waited(client, signal.event_id, errno.EINVAL) == kfd.KFD_IOC_WAIT_RESULT_FAIL


def test_a_client_without_an_event_page_gets_one_of_the_kernels(client):
    with pytest.raises(OSError, match="no such page"):
        client.io.mmap(8 * 4096, fd=client.fd, offset=EVENTS_OFFSET)
    first = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL)
    assert first.event_page_offset == EVENTS_OFFSET
    for _ in range(254):
        client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_DEBUG_EVENT)
    client.fails(errno.ENOSPC, "CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL)
    slots = client.io.view(client.io.mmap(8 * 4096, fd=client.fd, offset=EVENTS_OFFSET), 8 * 4096).cast("Q")
    assert client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL).event_id == 256
    slots[first.event_id] = first.event_id
    client.io.events.interrupt(first.event_id)
    assert waited(client, first.event_id) == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
    assert slots[first.event_id] == (1 << 64) - 1
    with pytest.raises(OSError, match="too many"):
        client.io.mmap(16 * 4096, fd=client.fd, offset=EVENTS_OFFSET)


def test_a_signal_reaches_everybody_who_waits_and_nobody_later(client):
    event = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1).event_id
    results = []
    wait = lambda: results.append(client.io.events.wait([event], [0], False, 5000)[0])
    threads = [threading.Thread(target=wait) for _ in range(3)]
    for thread in threads:
        thread.start()
    held = client.io.events.get(event, "test")
    while len(held.waiters) < 3:
        time.sleep(0.001)
    client.call("SET_EVENT", event_id=event)
    for thread in threads:
        thread.join()
    assert results == [kfd.KFD_IOC_WAIT_RESULT_COMPLETE] * 3
    assert waited(client, event) == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT and not held.waiters


def test_an_age_that_the_client_has_not_seen_counts_as_a_signal(client):
    event = client.call("CREATE_EVENT", event_type=kfd.KFD_IOC_EVENT_SIGNAL, auto_reset=1).event_id
    assert waited(client, event, age=1) == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT
    client.call("SET_EVENT", event_id=event)
    assert waited(client, event) == waited(client, event, age=1) == kfd.KFD_IOC_WAIT_RESULT_COMPLETE
    assert waited(client, event, age=2) == kfd.KFD_IOC_WAIT_RESULT_TIMEOUT


def waited(client, event_id, number=0, age=0):
    """wait_result of a poll for an event; number: the errno that is expected; age: the last one seen."""
    table = ffi.new("struct kfd_event_data[1]", [{"event_id": event_id}])
    table[0].signal_event_data.last_event_age = age
    args = ffi.new("struct kfd_ioctl_wait_events_args *",
                   {"events_ptr": int(ffi.cast("uintptr_t", table)), "num_events": 1})
    data = bytearray(ffi.buffer(args))
    try:
        client.io.ioctl(client.fd, kfd.AMDKFD_IOC_WAIT_EVENTS, data)
        assert number == 0
    except OSError as error:
        assert error.errno == number
    return int.from_bytes(data[20:24], "little")


def test_runtime_enable(client):
    client.call("RUNTIME_ENABLE", mode_mask=1)
    client.fails(errno.EBUSY, "RUNTIME_ENABLE", mode_mask=1)
    client.call("RUNTIME_ENABLE", mode_mask=0)
    client.call("CREATE_QUEUE", **client.queue_fields())
    client.fails(errno.EEXIST, "RUNTIME_ENABLE", mode_mask=1)


def test_doorbell_pages_have_one_size(client):
    queue = client.call("CREATE_QUEUE", **client.queue_fields())
    page = queue.doorbell_offset & ~(DOORBELL_SLICE - 1)
    for size in (PAGE, 2 * DOORBELL_SLICE):
        with pytest.raises(OSError) as error:
            client.io.mmap(size, fd=client.fd, offset=page)
        assert error.value.errno == errno.EINVAL
    assert client.io.mmap(DOORBELL_SLICE, fd=client.fd, offset=page)
    with pytest.raises(OSError) as error:
        client.io.mmap(PAGE, fd=client.render, offset=0x123000)
    assert error.value.errno == errno.EINVAL


def test_rings_that_are_mapped_twice(client):
    """AQL_QUEUE_MEM: half of the pages, behind one another; a queue's ring is the first half."""
    client.fails(errno.EINVAL, "ALLOC_MEMORY_OF_GPU", gpu_id=client.gpu, size=PAGE, flags=GTT | TWICE)
    used = client.io.system_used
    ring = client.mapped(4 * PAGE, GTT | WRITABLE | TWICE)
    assert client.io.system_used == used + 2 * PAGE
    table = client.io.gpus[client.gpu].table
    table.write_u32(ring + 2 * PAGE + 4, 7)
    assert table.read_u32(ring + 4) == 7
    fields = client.queue_fields(kfd.KFD_IOC_QUEUE_TYPE_COMPUTE_AQL, ring=2 * PAGE)
    client.call("CREATE_QUEUE", **fields | dict(ring_base_address=ring))


def test_what_the_kernel_takes_although_it_looks_wrong(client):
    """kfd_queue.c: no end-of-pipe buffer, a ring of less than a page; kfd_events.c: any type."""
    fields = client.queue_fields()
    assert client.call("CREATE_QUEUE", **fields | dict(eop_buffer_address=0, eop_buffer_size=0)).queue_id == 0
    assert client.call("CREATE_QUEUE", **client.queue_fields() | dict(ring_size=0)).queue_id == 1
    assert client.call("CREATE_EVENT", event_type=99).event_id >= 0x40000000
    counters = client.call("GET_CLOCK_COUNTERS", gpu_id=999)
    assert counters.gpu_clock_counter == 0 < counters.cpu_clock_counter
    assert client.call("GET_CLOCK_COUNTERS", gpu_id=client.gpu).gpu_clock_counter > 0


def test_user_memory_may_have_another_address_on_the_card(client):
    host = client.io.mmap(PAGE)
    address = client.io.mmap(PAGE, **RESERVE)
    handle = client.call("ALLOC_MEMORY_OF_GPU", va_addr=address, size=PAGE, gpu_id=client.gpu,
                         flags=USERPTR | WRITABLE, mmap_offset=host).handle
    client.map(handle)
    client.io.gpus[client.gpu].table.write(address + 8, b"seen")
    assert bytes(client.io.view(host, 12)) == bytes(8) + b"seen"


def test_additions_of_several_threads_all_count(client):
    address, rounds = client.mapped(PAGE), 20_000
    table = client.io.gpus[client.gpu].table
    table.write_u64(address + 8, 1 << 63)
    add = lambda step: [table.add_u64(address + 8, step) for _ in range(rounds)]
    threads = [threading.Thread(target=add, args=(step,)) for step in (1, -1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.read_u64(address + 8) == (1 << 63) + 5 * rounds
    assert table.add_u64(address + 8, 1 << 63) == (1 << 63) + 5 * rounds
    assert table.read_u64(address + 8) == 5 * rounds
    with pytest.raises(MemoryFault, match="not aligned"):
        table.add_u64(address + 4, 1)


def test_a_range_over_several_objects_is_one_to_the_card(client):
    start = client.io.mmap(4 * PAGE, **RESERVE)
    for number in range(4):
        flags = GTT | (WRITABLE if number != 3 else 0)
        handle = client.call("ALLOC_MEMORY_OF_GPU", va_addr=start + number * PAGE, size=PAGE,
                             gpu_id=client.gpu, flags=flags).handle
        client.map(handle)
    table = client.io.gpus[client.gpu].table
    data = os.urandom(2 * PAGE)
    table.write(start + 100, data)
    assert table.read(start + 100, 2 * PAGE) == data
    table.move(start, start + 100, 2 * PAGE)
    assert table.read(start, 2 * PAGE) == data
    held = table.read(start, 4 * PAGE)
    with pytest.raises(MemoryFault, match="read-only"):
        table.write(start + 2 * PAGE, bytes(2 * PAGE))
    with pytest.raises(MemoryFault, match="not mapped"):
        table.read(start + 3 * PAGE, 2 * PAGE)
    assert table.read(start, 4 * PAGE) == held


def test_tiling(client):
    tiles, macro = ffi.new("uint32_t[40]", [7] * 40), ffi.new("uint32_t[4]", [7] * 4)
    where = [int(ffi.cast("uintptr_t", table)) for table in (tiles, macro)]
    told = client.call("GET_TILE_CONFIG", gpu_id=client.gpu, tile_config_ptr=where[0], num_tile_configs=40,
                       macro_tile_config_ptr=where[1], num_macro_tile_configs=4)
    assert (told.num_tile_configs, told.num_macro_tile_configs) == (32, 4) and told.gb_addr_config
    assert list(tiles) == [0] * 32 + [7] * 8 and list(macro) == [0] * 4
    client.fails(errno.EINVAL, "GET_TILE_CONFIG", gpu_id=999)
    client.fails(errno.EFAULT, "GET_TILE_CONFIG", gpu_id=client.gpu, num_tile_configs=1)


def test_apertures_and_policies():
    client = Client(CARDS["gfx1100"], CARDS["gfx1201"]).acquire()
    table = ffi.new("struct kfd_process_device_apertures[3]")
    where = int(ffi.cast("uintptr_t", table))
    assert client.call("GET_PROCESS_APERTURES_NEW").num_of_nodes == 2
    client.fails(errno.EINVAL, "GET_PROCESS_APERTURES_NEW", num_of_nodes=4,
                 kfd_process_device_apertures_ptr=where)
    args = client.call("GET_PROCESS_APERTURES_NEW", num_of_nodes=3, kfd_process_device_apertures_ptr=where)
    assert args.num_of_nodes == 2 and [entry.gpu_id for entry in table] == [*client.ids, 0]
    assert {entry.lds_base for entry in table} == {1 << 48, 0}
    client.fails(errno.EINVAL, "SET_MEMORY_POLICY", gpu_id=client.gpu, default_policy=7)
    client.call("SET_MEMORY_POLICY", gpu_id=client.gpu)
    client.fails(errno.EPERM, "SET_XNACK_MODE", xnack_enabled=1)
    assert client.call("SET_XNACK_MODE", xnack_enabled=-1).xnack_enabled == 0
