"""The struct layouts of NVIDIA's driver follow the version it reports."""
import pytest

from tiny.autogen import nv_abi

# sizes as measured for each branch (project facts, nv.md section 9, and the open module's tags)
SIZES = {
    "NVOS46_PARAMETERS": {"535": 56, "550": 56, "570": 56, "580": 64, "595": 64, "610": 64},
    "NVOS47_PARAMETERS": {"535": 40, "550": 48, "570": 48, "580": 48, "595": 48, "610": 48},
    "NV_VASPACE_ALLOCATION_PARAMETERS": {"535": 48, "550": 48, "570": 48, "580": 56, "595": 56, "610": 56},
    "NV_CHANNEL_ALLOC_PARAMS": {"535": 360, "550": 360, "570": 368, "580": 368, "595": 368, "610": 376},
    "NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS": {"535": 2, "555": 2, "570": 2, "575": 3, "580": 3, "610": 3},
    "NV_MEMORY_ALLOCATION_PARAMS": {"535": 120, "555": 128, "570": 128, "580": 128, "610": 128},
    "NV0080_CTRL_GPU_GET_CLASSLIST_V2_PARAMS": {"535": 644, "550": 700, "555": 404, "570": 404, "580": 804},
    "UVM_MAP_EXTERNAL_ALLOCATION_PARAMS": {"535": 1200, "550": 9264, "610": 9264},
    "UVM_FREE_PARAMS": {"535": 24, "580": 24, "590": 16, "610": 16},
    "UVM_UNREGISTER_CHANNEL_PARAMS": {"535": 28, "580": 28, "590": 12, "610": 12},
}


@pytest.mark.parametrize("struct", SIZES)
def test_sizes_follow_the_version(struct):
    assert {v: nv_abi.select(f"{v}.10.01").ffi.sizeof(struct) for v in SIZES[struct]} == SIZES[struct]


def test_610_moved_everything_after_the_inserted_handle():
    ffi = nv_abi.select("610.10").ffi
    members = ("hUserdMemory", "userdOffset", "engineType")
    places = {name: ffi.offsetof("NV_CHANNEL_ALLOC_PARAMS", name) for name in members}
    assert places == {"hUserdMemory": 36, "userdOffset": 72, "engineType": 136}


def test_an_unknown_version_says_what_is_known_and_how_to_go_on():
    with pytest.raises(LookupError, match="driver 900.1: .* 535 to 610; pass force=True"):
        nv_abi.select("900.1")
    with pytest.raises(LookupError, match="470"):
        nv_abi.select("470.82.01")
    assert nv_abi.select("900.1", force=True).__name__ == "tiny.autogen.nv_610"
    with pytest.raises(ValueError, match="'latest' is no NVIDIA driver version"):
        nv_abi.select("latest")


def test_a_layout_names_what_stands_behind_it():
    of_535 = nv_abi.origin(nv_abi.select("535.1"), "NVOS46_PARAMETERS")
    of_580 = nv_abi.origin(nv_abi.select("580.1"), "NVOS46_PARAMETERS")
    assert of_535.startswith("header: nvidia-open-gpu-kernel-modules")
    assert of_580.startswith("table: open-gpu-kernel-modules 580.65.06")
