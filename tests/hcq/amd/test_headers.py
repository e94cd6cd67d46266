"""AMD's packet declarations against the tables generated from the kernel's headers."""
import pytest

from tiny.autogen import amd_hsa, amd_pm4, amd_pm4_gfx9, amd_sdma_4, amd_sdma_6
from tiny.hcq.amd import aql, dispatch, pm4, sdma
from tiny.hcq.amd.registers import GFX9, GFX11, GFX12, sh, uconfig
from tiny.hcq.layout import LayoutError

# packet -> {field: macro of nvd.h that moves a value to its place}
PM4 = {
    pm4.WriteData: {"to": "WRITE_DATA_DST_SEL", "cache_policy": "WRITE_DATA_CACHE_POLICY",
                    "engine": "WRITE_DATA_ENGINE_SEL"},
    pm4.WaitRegMem: {"function": "WAIT_REG_MEM_FUNCTION", "memory": "WAIT_REG_MEM_MEM_SPACE",
                     "operation": "WAIT_REG_MEM_OPERATION", "engine": "WAIT_REG_MEM_ENGINE"},
    pm4.IndirectBuffer: {"cache_policy": "INDIRECT_BUFFER_CACHE_POLICY",
                         "pre_enable": "INDIRECT_BUFFER_PRE_ENB"},
    pm4.EventWrite: {"event_type": "EVENT_TYPE", "event_index": "EVENT_INDEX"},
    pm4.DmaData: {"engine": "PACKET3_DMA_DATA_ENGINE",
                  "source_cache_policy": "PACKET3_DMA_DATA_SRC_CACHE_POLICY",
                  "to": "PACKET3_DMA_DATA_DST_SEL", "from_": "PACKET3_DMA_DATA_SRC_SEL",
                  "destination_cache_policy": "PACKET3_DMA_DATA_DST_CACHE_POLICY"},
    pm4.ReleaseMem: {"event_type": "PACKET3_RELEASE_MEM_EVENT_TYPE",
                     "event_index": "PACKET3_RELEASE_MEM_EVENT_INDEX",
                     "cache_policy": "PACKET3_RELEASE_MEM_CACHE_POLICY",
                     "data_sel": "PACKET3_RELEASE_MEM_DATA_SEL",
                     "interrupt": "PACKET3_RELEASE_MEM_INT_SEL", "to_l2": "PACKET3_RELEASE_MEM_DST_SEL"},
    pm4.AcquireMem: {name: f"PACKET3_ACQUIRE_MEM_GCR_CNTL_{name.upper()}" for name in pm4.AcquireMem.free
                     if name[:2] == "gl" or name == "seq"},
}
PM4_FLAGS = {                                                # one-bit fields that the header has as constants
    pm4.WriteData: {"one_address": "WR_ONE_ADDR", "confirm": "WR_CONFIRM"},
    pm4.IndirectBuffer: {"valid": "INDIRECT_BUFFER_VALID"},
    pm4.AcquireMem: {"range_is_pa": "PACKET3_ACQUIRE_MEM_GCR_RANGE_IS_PA"},
    pm4.ReleaseMem: {name: f"PACKET3_RELEASE_MEM_GCR_{name.upper()}" for name in pm4.ReleaseMem.free
                     if name[:2] == "gl" and name[:3] != "glk"} | {"execute": "PACKET3_RELEASE_MEM_EXECUTE",
                                                                  "seq": "PACKET3_RELEASE_MEM_GCR_SEQ"},
}
GFX9_FIELDS = {
    pm4.AcquireMemGfx9: {name: f"PACKET3_ACQUIRE_MEM_CP_COHER_CNTL_{name.upper()}_ACTION_ENA"
                         for name in pm4.AcquireMemGfx9.free if name[:2] in ("tc", "sh")},
    pm4.ReleaseMemGfx9: {"event_type": "EVENT_TYPE", "event_index": "EVENT_INDEX", "data_sel": "DATA_SEL",
                         "interrupt": "INT_SEL", "to_l2": "DST_SEL"},
}
GFX9_FLAGS = {pm4.ReleaseMemGfx9: {name: f"EOP_{name.upper()}_ACTION_EN" for name in pm4.ReleaseMemGfx9.free
                                   if name[:2] == "tc"} | {"execute": "EOP_EXEC"}}
# field of ours -> fields of the SDMA headers that it stands for, if they are named differently
SDMA_NAMES = {
    "nbytes": ("count",), "source": ("src_addr_31_0", "src_addr_63_32"), "from_": ("src_sw",),
    "destination": ("dst_addr_31_0", "dst_addr_63_32"), "destination_swap": ("dst_sw",),
    "source_swap": ("src_sw",),
    "destination_cache_policy": ("dst_cache_policy",), "source_cache_policy": ("src_cache_policy",),
    "swap": ("sw",),
    "values": ("data0",), "payload": ("data0",), "fill_size": ("fillsize",), "snoop": ("snp",),
    "function": ("func",),
    "memory": ("mem_poll",), "retries": ("retry_count",), "interrupt_id": ("int_context",),
    "atomic": ("atomic_op",),
    "operand": ("src_data_31_0", "src_data_63_32"), "compare": ("cmp_data_31_0", "cmp_data_63_32"),
    "register": ("addr",), "aperture": ("apertureid",), "byte_enable": ("byte_en",), "privileged": ("priv",),
    "size_dwords": ("ib_size",), "save_area": ("csa_addr_31_0", "csa_addr_63_32"),
    "count_dwords": ("exec_count",),
    "base": ("base_va_31_7", "base_va_47_32"), "limit": ("limit_va_31_7", "limit_va_47_32"),
}
SDMA = {"NOP": sdma.Nop, "COPY_LINEAR": sdma.CopyLinear, "WRITE_UNTILED": sdma.WriteLinear,
        "FENCE": sdma.Fence,
        "CONSTANT_FILL": sdma.ConstantFill, "POLL_REGMEM": sdma.PollRegMem,
        "TIMESTAMP_GET_GLOBAL": sdma.Timestamp,
        "TRAP": sdma.Trap, "INDIRECT": sdma.Indirect, "ATOMIC": sdma.Atomic, "SRBM_WRITE": sdma.SrbmWrite,
        "COND_EXE": sdma.CondExe, "GCR_REQ": sdma.GcrReq}
SDMA_GFX9 = SDMA | {"COPY_LINEAR": sdma.CopyLinearGfx9, "CONSTANT_FILL": sdma.ConstantFillGfx9,
                    "FENCE": sdma.FenceGfx9}


@pytest.mark.parametrize("header, fields, flags",
                         [(amd_pm4, PM4, PM4_FLAGS), (amd_pm4_gfx9, GFX9_FIELDS, GFX9_FLAGS)],
                         ids=["nvd.h", "soc15d.h"])
def test_pm4_fields_stand_where_the_header_shifts_them(header, fields, flags):
    for packet, names in fields.items():
        for name, macro in names.items():
            shift, width = header.FIELDS[macro]
            assert packet.fields[name].low == shift, f"{packet.__name__}.{name}"
            assert width in (None, packet.fields[name].width), f"{packet.__name__}.{name}"
    for packet, names in flags.items():
        for name, constant in names.items():
            assert 1 << packet.fields[name].low == getattr(header, constant), f"{packet.__name__}.{name}"


def places(packet, name: str) -> list[tuple[int, int, int]]:
    """The field as the headers cut it: (dword, lowest bit, width) in each word it lies in."""
    field = packet.fields[name]
    first = (field.dword, field.low, min(field.width, 32 - field.low))
    rest = field.width - first[2]
    return [first, (field.dword + 1, 0, rest)] if rest else [first]


@pytest.mark.parametrize("header, packets", [(amd_sdma_6, SDMA), (amd_sdma_4, SDMA_GFX9)],
                         ids=["gfx11", "gfx942"])
def test_sdma_fields_stand_where_the_header_says(header, packets):
    for name, rows in header.PACKETS.items():
        packet, seen = packets[name], set()
        for field in packet.fields:
            known = SDMA_NAMES.get(field, (field,))
            # each packet's header has its own word for these
            if field in ("address", "reference", "value"):
                known = [row for row in rows if row not in seen and row.split("_")[0] in (
                    {"address": ("addr", "write", "ib"), "value": ("data", "src"),
                     "reference": ("value", "reference")}
                    [field]) and row not in ("ib_size", "data0")]
            if not all(row in rows for row in known) or not known:
                continue                                     # gfx942 lacks it, or the header splits it
            cut = places(packet, field)
            for row, place in zip(known, cut, strict=False):
                low = rows[row]
                if packet is sdma.Indirect and row == "ib_base_31_0":
                    low = (1, 5, 27)                         # the header leaves the alignment out
                assert place == tuple(low), f"{packet.__name__}.{field} against {row}"
            seen |= set(known)
        covered = {place for field in packet.fields for place in places(packet, field)}
        bits = {(d, low + i) for d, low, w in covered for i in range(w)}
        for row, (dword, low, width) in rows.items():
            if packet is sdma.Indirect and row == "ib_base_31_0":
                continue
            lost = [low + i for i in range(width) if (dword, low + i) not in bits]
            assert not lost, f"{packet.__name__} does not declare {row}"


def test_aql_packets_are_the_structs_of_hsa_h():
    names = {
        aql.KernelDispatch: ("hsa_kernel_dispatch_packet_t", {
            "workgroup_x": "workgroup_size_x", "workgroup_y": "workgroup_size_y",
            "workgroup_z": "workgroup_size_z",
            "grid_x": "grid_size_x", "grid_y": "grid_size_y", "grid_z": "grid_size_z", "dimensions": "setup",
            "private_segment_bytes": "private_segment_size", "group_segment_bytes": "group_segment_size",
            "kernel_object": "kernel_object", "kernarg": "kernarg_address",
            "completion_signal": "completion_signal"}),
        aql.AgentDispatch: ("hsa_agent_dispatch_packet_t", {
            "function": "type", "return_address": "return_address", "arguments_0": "arg",
            "completion_signal": "completion_signal"}),
        aql.BarrierAnd: ("hsa_barrier_and_packet_t", {
            "signals_0": "dep_signal", "completion_signal": "completion_signal"}),
        aql.BarrierOr: ("hsa_barrier_or_packet_t", {
            "signals_0": "dep_signal", "completion_signal": "completion_signal"}),
    }
    for packet, (struct, members) in names.items():
        assert amd_hsa.ffi.sizeof(struct) == packet.size_bytes == 64
        for field, member in members.items():
            place = packet.fields[field].offset + packet.fields[field].low // 8
            assert place == amd_hsa.ffi.offsetof(struct, member), f"{packet.__name__}.{field}"


@pytest.mark.parametrize("form", [value for value in vars(dispatch).values()
                                  if isinstance(value, type) and issubclass(value, pm4.SetShReg)
                                  and value is not pm4.SetShReg], ids=lambda form: form.__name__)
def test_forms_write_the_same_registers_on_every_generation(form):
    expected = {"SetResources3": (GFX11, GFX12), "SetResources3Gfx9": (GFX9,)}.get(form.__name__,
        (GFX9, GFX11, GFX12))
    for file in expected:
        first = next(name for name in file if name.startswith("COMPUTE_")
                     and getattr(file, name).offset == 0x2c00 + form.fixed["register"])
        assert sh(getattr(file, first)) == form.fixed["register"]


def test_registers_know_their_windows():
    assert sh(GFX11.COMPUTE_PGM_LO) == 0x20c and uconfig(GFX11.GRBM_GFX_INDEX) == 0x200
    assert (sh(GFX9.COMPUTE_PGM_RSRC3), sh(GFX12.COMPUTE_PGM_RSRC3)) == (0x22d, 0x228)
    with pytest.raises(LayoutError, match="GRBM_GFX_INDEX at dword 0xc200 is outside of the SH window"):
        sh(GFX11.GRBM_GFX_INDEX)


def test_register_fields_follow_the_generation():
    assert GFX9.COMPUTE_TMPRING_SIZE.WAVESIZE.width == 13
    assert GFX11.COMPUTE_TMPRING_SIZE.WAVESIZE.width == 15
    assert GFX12.COMPUTE_TMPRING_SIZE.WAVESIZE.width == 18
    assert GFX11.COMPUTE_PGM_RSRC3.INST_PREF_SIZE.mask == 0x3f0
    assert GFX12.COMPUTE_PGM_RSRC3.INST_PREF_SIZE.mask == 0xff0


def test_a_launch_is_its_packets():
    data = bytearray(dispatch.Launch.size_bytes)
    initiator = GFX11.COMPUTE_DISPATCH_INITIATOR.word(COMPUTE_SHADER_EN=1, FORCE_START_AT_000=1, CS_W32_EN=1)
    dispatch.Launch.encode(data, code=0x7f00_0000_1000, kernarg=0x7f00_0000_2000, threads_x=256, threads_y=1,
                           threads_z=1,
                           groups_x=64, groups_y=1, groups_z=1, initiator=initiator)
    packets = list(pm4.Pm4.stream(data))
    assert [type(packet) for packet in packets] == [pm4.SetShReg] * 6 + [pm4.DispatchDirect]
    assert packets[0].values == (0x10, 0x7f) and packets[-1].initiator == 0x8005
    assert packets[5].values == (0, 0, 0, 256, 1, 1)
