"""`tiny abi --diff`: what a driver branch changed, and what each side rests on."""
from tiny.trace import abi


def test_a_changed_struct_tells_sizes_sources_and_members(capsys):
    assert abi.main(["--diff", "535", "595"]) == 0
    out = capsys.readouterr().out
    place = out.index("NVOS46_PARAMETERS: 56 -> 64 bytes")
    assert out[place:].splitlines()[1:7] == [
        "    535: header: nvidia-open-gpu-kernel-modules (bookworm)",
        "    595: table: open-gpu-kernel-modules 580.65.06, src/common/sdk/nvidia/inc/nvos.h",
        "  + flags2: uint32_t at 36",
        "  + kindOverride: uint32_t at 40",
        "  ~ dmaOffset: at 40 -> 48",
        "  ~ status: at 48 -> 56",
    ]
    assert "UVM_FREE_PARAMS: 24 -> 16 bytes" in out and "NVOS21_PARAMETERS" not in out


def test_versions_of_one_branch_have_nothing_to_tell(capsys):
    assert abi.main(["--diff", "580.65.06", "580.142"]) == 0
    assert "the same layouts" in capsys.readouterr().out


def test_an_unknown_version_is_told_in_one_line(capsys):
    assert abi.main(["--diff", "535", "1000"]) == 2
    assert "NVIDIA driver 1000: struct layouts are known for branches 535 to 610" in capsys.readouterr().err
