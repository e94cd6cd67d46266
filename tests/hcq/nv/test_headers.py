"""NVIDIA's packet declarations against the tables generated from class and QMD headers."""
import pytest

from tiny.autogen import nv_class_c56f, nv_class_c86f, nv_qmd_c6c0
from tiny.hcq.nv import compute, copy, methods, push, qmd

FORMS = [(compute, methods.COMPUTE), (copy, methods.COPY)]
HOST_FORMS = {push.Semaphore: methods.HOST, push.SemaphoreAmpere: methods.HOST_AMPERE,
              push.WaitForIdle: methods.HOST,
              push.NonStallInterrupt: methods.HOST}


def words(form) -> dict[int, int]:
    """Method address -> the bits that the form's fields cover there."""
    first, found = form.fixed["method"], {}
    for name, field in form.free.items():
        if field.tail or name in push.Push.fields:
            continue
        mask = field.mask
        for index in range(field.size // 4):
            part = mask >> 32 * index & 0xffffffff
            address = first + 4 * (field.dword - 1 + index)
            found[address] = found.get(address, 0) | part
    return found


def forms() -> list[tuple]:
    found = list(HOST_FORMS.items())
    for module, file in FORMS:
        for name, value in vars(module).items():
            if isinstance(value, type) and issubclass(value, push.Push) and "method" in value.fixed:
                found.append((value, methods.COPY_AMPERE if name.endswith("Ampere") else file))
    return found


@pytest.mark.parametrize("form, file", forms(), ids=lambda value: getattr(value, "__name__", ""))
def test_forms_cover_bits_that_their_methods_have(form, file):
    for address, mask in words(form).items():
        register = file.at_offset(address)
        assert register is not None, f"{form.__name__}: no method at {address:#x}"
        known = 0
        for field in register.fields.values():
            known |= field.mask
        assert mask & ~known == 0, f"{form.__name__}: {register.__name__} has bits {known:#x}, not {mask:#x}"


def test_inline_qmd_methods_are_neighbours():
    assert methods.COMPUTE.SET_INLINE_QMD_ADDRESS_B.offset + 4 == methods.INLINE_QMD == 0x320
    data = bytes(compute.InlineQmd(address=0x1_0000_0000, qmd=(1, 2)))
    (packet,) = push.Push.stream(data)
    assert (packet.method, packet.values) == (0x318, (0, 0x0100_0000, 1, 2))


def test_a_method_without_a_form_is_called_by_its_table():
    packet = push.call(methods.COMPUTE.INVALIDATE_SAMPLER_CACHE, methods.COMPUTE_SUBCHANNEL, LINES=1, TAG=5)
    assert (packet.method, packet.subchannel, packet.values) == (0x1330, 1, (1 | 5 << 4,))


@pytest.mark.parametrize("header", [nv_class_c56f, nv_class_c86f], ids=["c56f", "c86f"])
def test_headers_and_ring_entries_stand_where_the_class_says(header):
    rows = header.METHODS
    places = {
        (push.Push, "method"): ("DMA", "METHOD_ADDRESS"),
        (push.Push, "subchannel"): ("DMA", "METHOD_SUBCHANNEL"),
        (push.Push, "form"): ("DMA", "SEC_OP"), (push.Incrementing, "count"): ("DMA", "METHOD_COUNT"),
        (push.Immediate, "value"): ("DMA_IMMD", "DATA"),
        (push.GpfifoEntry, "conditional"): ("GP_ENTRY0", "FETCH"),
        (push.GpfifoEntry, "level"): ("GP_ENTRY1", "LEVEL"),
        (push.GpfifoEntry, "length_dwords"): ("GP_ENTRY1", "LENGTH"),
        (push.GpfifoEntry, "sync"): ("GP_ENTRY1", "SYNC"),
        (push.GpfifoControl, "opcode"): ("GP_ENTRY1", "OPCODE"),
    }
    for (layout, name), (word, field) in places.items():
        ours = layout.fields[name]
        assert (ours.low, ours.width) == rows[word][2][field][:2], f"{layout.__name__}.{name}"
    low, high = rows["GP_ENTRY0"][2]["GET"][:2], rows["GP_ENTRY1"][2]["GET_HI"][:2]
    address = push.GpfifoEntry.address
    assert (address.low, address.width) == (low[0], low[1] + high[1]) and high[0] == 0
    assert [packet.fixed["form"] for packet in (push.Incrementing, push.NonIncrementing, push.Immediate,
                                                push.OnceIncrementing, push.EndSegment)] == [1, 3, 4, 5, 7]


# field of QmdV3 -> field of the header, where it is not its name in capitals
NAMES = {
    "group_id": "QMD_GROUP_ID", "global_caching": "SM_GLOBAL_CACHING_ENABLE", "membar": "CWD_MEMBAR_TYPE",
    "invalidate_texture_headers": "INVALIDATE_TEXTURE_HEADER_CACHE",
    "invalidate_samplers": "INVALIDATE_TEXTURE_SAMPLER_CACHE",
    "invalidate_texture_data": "INVALIDATE_TEXTURE_DATA_CACHE",
    "invalidate_shader_data": "INVALIDATE_SHADER_DATA_CACHE",
    "invalidate_instructions": "INVALIDATE_INSTRUCTION_CACHE",
    "invalidate_constants": "INVALIDATE_SHADER_CONSTANT_CACHE",
    "prefetch_address_shifted8_low": "PROGRAM_PREFETCH_ADDR_LOWER_SHIFTED",
    "prefetch_address_shifted8_high": "PROGRAM_PREFETCH_ADDR_UPPER_SHIFTED",
    "call_limit_ignored": "API_VISIBLE_CALL_LIMIT", "grid_x": "CTA_RASTER_WIDTH",
    "grid_y": "CTA_RASTER_HEIGHT",
    "grid_z": "CTA_RASTER_DEPTH", "dependent0": "DEPENDENT_QMD0_POINTER",
    "dependent0_enable": "DEPENDENT_QMD0_ENABLE",
    "dependent0_action": "DEPENDENT_QMD0_ACTION", "dependent0_prefetch": "DEPENDENT_QMD0_PREFETCH",
    "dependent1_enable": "DEPENDENT_QMD1_ENABLE", "dependent1_action": "DEPENDENT_QMD1_ACTION",
    "shared_bytes": "SHARED_MEMORY_SIZE", "min_shared_config": "MIN_SM_CONFIG_SHARED_MEM_SIZE",
    "max_shared_config": "MAX_SM_CONFIG_SHARED_MEM_SIZE",
    "target_shared_config": "TARGET_SM_CONFIG_SHARED_MEM_SIZE",
    "minor": "QMD_VERSION", "major": "QMD_MAJOR_VERSION", "block_x": "CTA_THREAD_DIMENSION0",
    "block_y": "CTA_THREAD_DIMENSION1", "block_z": "CTA_THREAD_DIMENSION2",
    "constants_valid": "CONSTANT_BUFFER_VALID",
    "register_count": "REGISTER_COUNT_V", "local_low_bytes": "SHADER_LOCAL_MEMORY_LOW_SIZE",
    "local_high_bytes": "SHADER_LOCAL_MEMORY_HIGH_SIZE", "release0_membar": "RELEASE0_MEMBAR_TYPE",
    "release0_wide": "RELEASE0_PAYLOAD64B", "release0_size": "RELEASE0_STRUCTURE_SIZE",
    "constants_invalidate": "CONSTANT_BUFFER_INVALIDATE", "constants_bytes": "CONSTANT_BUFFER_SIZE_SHIFTED4",
    "prefetch_size": "PROGRAM_PREFETCH_SIZE", "prefetch_type": "PROGRAM_PREFETCH_TYPE",
    "constants_address": "CONSTANT_BUFFER_ADDR", "program": "PROGRAM_ADDRESS",
}


@pytest.mark.parametrize("name", qmd.QmdV3.fields)
def test_qmd_3_fields_stand_where_the_header_says(name):
    field, stem, index = qmd.QmdV3.fields[name], name, 0
    if name[-2] == "_" and name[:-2] in NAMES and name[:9] == "constants":
        stem, index = name[:-2], int(name[-1])
    known = NAMES.get(stem, stem.upper())
    rows = nv_qmd_c6c0.FIELDS
    low, width, stride, _ = rows[known if known in rows else f"{known}_LOWER"]
    if known not in rows:                                    # address and payload come as _LOWER and _UPPER
        upper, more, _, _ = rows[f"{known}_UPPER"]
        assert upper == low + width, f"{known} is in two places"
        width += more
    assert (field.dword * 32 + field.low, field.width) == (low + index * stride, width)
