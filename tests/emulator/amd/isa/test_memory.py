"""Memory instructions of every space, on every family, by the interpreter and the translation; and that every
entry of the table that reaches memory or other lanes has a case or a reason why it is refused.
"""

import pytest

from tests.emulator.amd.isa import (
    cases_buffers,
    cases_lanes,
    cases_local,
    cases_matrix,
    cases_memory,
    registers,
)
from tests.emulator.amd.isa.cases_buffers import CASES_BUFFERS
from tests.emulator.amd.isa.cases_local import CASES_LOCAL
from tests.emulator.amd.isa.cases_memory import CASES_MEMORY
from tiny.emulator.amd.isa import assemble, interpreter, run
from tiny.emulator.amd.isa.decode import DecodeError
from tiny.emulator.amd.isa.families import family_named
from tiny.emulator.amd.isa.memory import HostMemory, MemoryFault
from tiny.emulator.amd.isa.operation import OPERATIONS
from tiny.emulator.amd.isa.operations_memory import ACCESS
from tiny.emulator.amd.isa.state import Dispatch, EmulationError

CASES = {"memory": CASES_MEMORY, "local": CASES_LOCAL, "buffers": CASES_BUFFERS}


@pytest.mark.parametrize("space", CASES)
@pytest.mark.parametrize("processor", registers.PROCESSORS)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_memory_instructions_move_what_the_manual_says(space, processor, translated):
    registers.check(CASES[space], processor, translated)


KINDS = {"memory", "scalar memory", "matrix", "matrix move", "lanes", "indirect"}
MODULES = (cases_buffers, cases_lanes, cases_local, cases_matrix, cases_memory)


@pytest.mark.parametrize("processor", registers.PROCESSORS)
def test_every_entry_has_a_case_or_a_reason(processor):
    family = family_named(processor)
    shown = set().union(*(module.COVERS[processor] for module in MODULES))
    missing, refused = set(), {}
    for name in {name for table in family.opcodes.values() for name in table.values()}:
        operation = OPERATIONS.get(family.aliases.get(name, name))
        if operation is None:
            continue
        access = ACCESS.get(operation.name)
        if access is not None and access.action == "refused":
            refused[name] = access.reason
        elif operation.kind in KINDS and name not in shown:
            missing.add(name)
    assert not missing
    assert refused and all(refused.values())


REFUSALS = {
    "buffer_load_format_x v1, off, s[12:15], s20": "a typed buffer",
    "ds_append v1 gds": "global data share",
    "ds_ordered_count v1, v2 gds": "global data share",
    "ds_bvh_stack_rtn_b32 v1, v2, v3, v[4:7]": "ray tracing",
    "buffer_load_b32 v[1:2], off, s[12:15], s20 tfe": "tfe",
    "image_load v1, v2, s[4:11] dmask:0x1 dim:SQ_RSRC_IMG_1D": "is MIMG, an image: graphics",
}


@pytest.mark.parametrize("line", REFUSALS)
def test_what_is_refused_says_where_and_why(line):
    image = assemble.assemble(line, "gfx1100", lds=64)
    dispatch = Dispatch(image.kernel("kernel"), HostMemory(), (0, 0), (1, 1, 1), (32, 1, 1))
    with pytest.raises((EmulationError, DecodeError), match=REFUSALS[line]) as error:
        run.run(dispatch)
    if isinstance(error.value, EmulationError):
        assert "kernel, workgroup (0, 0, 0), wave 0" in str(error.value)


UNMAPPED = {  # instruction -> (processor, what the fault calls it)
    "global_load_b32 v1, v[2:3], off": ("gfx1100", "read"),
    "global_store_b32 v[2:3], v1, off": ("gfx1100", "write"),
    "global_atomic_add_u32 v1, v[2:3], v4, off glc": ("gfx1100", "write"),
    "flat_atomic_add_f32 v[2:3], v4": ("gfx1100", "write"),
    "global_atomic_cmpswap_b64 v[2:3], v[4:7], off": ("gfx1201", "write"),
    "s_atomic_add s4, s[20:21], 0x0": ("gfx942", "write"),
}


@pytest.mark.parametrize("line", UNMAPPED)
@pytest.mark.parametrize("translated", [False, True], ids=["interpreted", "translated"])
def test_an_atomic_on_unmapped_memory_is_a_write(line, translated):
    processor, action = UNMAPPED[line]
    place = "s_mov_b32 s20, 0x1000\ns_mov_b32 s21, 0\nv_mov_b32 v2, s20\nv_mov_b32 v3, s21\n"
    image = assemble.assemble(place + line, processor)
    dispatch = Dispatch(image.kernel("kernel"), HostMemory(), (), (1, 1, 1), (1, 1, 1))
    with pytest.raises(MemoryFault) as error:
        (run if translated else interpreter).run(dispatch)
    assert (error.value.address, error.value.action) == (0x1000, action)
