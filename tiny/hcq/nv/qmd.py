"""QMD: the structure in memory that describes one launch of a kernel, three versions of it.

Version 3.0 (Ampere, Ada; 256 bytes) is compared with Mesa's clc6c0qmd.h, tiny.autogen.nv_qmd_c6c0, by
tests/hcq/nv. No package carries headers of 4.0 (Hopper) and 5.0 (Blackwell), 384 bytes both: their
declarations are tables of this project, from NVIDIA's open-gpu-doc, classes/compute/clcbc0qmd.h and
clcdc0qmd.h, compared with every line of those files on 2026-11-30; `make test-oracles` compares them with the
QMDs that the NAK compiler of PyPI's tinymesa writes.

Names are the same in all versions; a builder takes the class that belongs to the compute class. Sizes and
addresses are in bytes, whatever unit is stored; `span` counts bits as the headers' MW(high:low) do.
Everything not named here stays 0.
"""
import enum

from tiny.hcq.layout import Struct, repeated, span


class QmdType(enum.IntEnum):
    """What the QMD launches (QMDV04_00_QMD_TYPE)."""
    QUEUE, GRID_NULL, GRID_CTA, GRID_GPC_CGA, GRID_GPU_CGA = range(5)


class Membar(enum.IntEnum):
    """Barrier after the grid (QMDV03_00_CWD_MEMBAR_TYPE)."""
    NONE = 0
    SYSTEM = 1
    MEMORY = 3


class ReleaseSize(enum.IntEnum):
    """Words a release writes (RELEASE0_STRUCTURE_SIZE): four are payload and time, 8 bytes each."""
    FOUR_WORDS, ONE_WORD, TWO_WORDS = range(3)


class DependentAction(enum.IntEnum):
    """What completing this QMD does to a dependent one (DEPENDENT_QMD0_ACTION)."""
    INCREMENT_PUT, SCHEDULE, INVALIDATE_COPY_SCHEDULE, DECREMENT_DEPENDENCE = range(4)


class QmdV3(Struct, dwords=64, major=3, minor=0):
    """Ampere and Ada: classes c6c0, c7c0, c9c0; Hopper's engine takes it too. Addresses have 40 bits,
    programs 49.

    call_limit_ignored: 1 does not check the API-visible call limit. Source: clc6c0qmd.h, QMDV03_00.
    """
    group_id = span(128, 6, default=0x3f)
    global_caching = span(134, 1, default=1)
    invalidate_texture_headers = span(186, 1)
    invalidate_samplers = span(187, 1)
    invalidate_texture_data = span(188, 1)
    invalidate_shader_data = span(189, 1)
    invalidate_instructions = span(190, 1)
    invalidate_constants = span(191, 1)
    prefetch_address_shifted8_low = span(256, 32)
    membar = span(368, 2, Membar, default=Membar.SYSTEM)
    call_limit_ignored = span(378, 1, default=1)
    sampler_index = span(382, 1)
    grid_x = span(384, 32, default=1)
    grid_y = span(416, 16, default=1)
    grid_z = span(448, 16, default=1)
    dependent0 = span(480, 32, unit=256)
    dependent0_enable = span(512, 1)
    dependent0_action = span(513, 3, DependentAction)
    dependent0_prefetch = span(516, 1)
    dependent1_enable = span(517, 1)
    dependent1_action = span(518, 3, DependentAction)
    shared_bytes = span(544, 18)
    min_shared_config = span(562, 6)
    max_shared_config = span(569, 6)
    minor = span(576, 4)
    major = span(580, 4)
    block_x = span(592, 16, default=1)
    block_y = span(608, 16, default=1)
    block_z = span(624, 16, default=1)
    constants_valid = repeated(8, span(640, 1), stride=1)
    register_count = span(648, 9)
    target_shared_config = span(657, 6)
    local_low_bytes = span(736, 24)
    barrier_count = span(763, 5)
    release0_address = span(768, 40)
    release0_membar = span(819, 1)
    release0_enable = span(823, 1)
    release0_wide = span(829, 1)
    release0_size = span(830, 2, ReleaseSize)
    release0_payload = span(832, 64)
    release1_address = span(896, 40)
    release1_payload = span(960, 64)
    constants_address = repeated(8, span(1024, 49), stride=64)
    constants_invalidate = repeated(8, span(1074, 1), stride=64)
    constants_bytes = repeated(8, span(1075, 13, unit=16), stride=64)
    program = span(1536, 49)
    local_high_bytes = span(1600, 24)
    prefetch_address_shifted8_high = span(1632, 9)
    prefetch_size = span(1641, 9)
    prefetch_type = span(1650, 2)
    sass_version = span(1656, 8)
    release2_address = span(1664, 40)
    release2_payload = span(1728, 64)


class QmdV4(Struct, dwords=96, major=4, minor=0):
    """Hopper: class cbc0. Source: open-gpu-doc clcbc0qmd.h, QMDV04_00."""
    group_id = span(16, 6, default=0x3f)
    type = span(23, 3, QmdType, default=QmdType.GRID_CTA)
    releases_enable = repeated(3, span(320, 1), stride=16)
    releases_size = repeated(3, span(321, 2, ReleaseSize), stride=16)
    releases_membar = repeated(3, span(323, 1), stride=16)
    releases_wide = repeated(3, span(332, 1), stride=16)
    dependent0_enable = span(368, 1)
    dependent0_action = span(369, 3, DependentAction)
    dependent0_prefetch = span(372, 1)
    dependent1_enable = span(373, 1)
    dependent1_action = span(374, 3, DependentAction)
    dependent1_prefetch = span(377, 1)
    constants_valid = repeated(8, span(416, 1), stride=4)
    constants_invalidate = repeated(8, span(419, 1), stride=4)
    dependent0 = span(448, 32, unit=256)
    dependent1 = span(480, 32, unit=256)
    local_low_bytes = span(512, 24)
    sass_version = span(536, 8)
    local_high_bytes = span(544, 24)
    call_limit_ignored = span(568, 1, default=1)
    sampler_index = span(569, 1)
    minor = span(576, 4)
    major = span(580, 4)
    shared_bytes = span(584, 18)
    invalidate_texture_headers = span(602, 1)
    invalidate_samplers = span(603, 1)
    invalidate_texture_data = span(604, 1)
    invalidate_shader_data = span(605, 1)
    invalidate_instructions = span(606, 1)
    invalidate_constants = span(607, 1)
    min_shared_config = span(608, 6)
    max_shared_config = span(614, 6)
    target_shared_config = span(620, 6)
    release0_address = span(640, 57)
    release0_payload = span(704, 64)
    release1_address = span(768, 57)
    release1_payload = span(832, 64)
    release2_address = span(896, 57)
    release2_payload = span(960, 64)
    grid_x = span(1024, 32, default=1)
    grid_y = span(1056, 16, default=1)
    grid_z = span(1088, 16, default=1)
    membar = span(1136, 2, Membar, default=Membar.SYSTEM)
    block_x = span(1152, 16, default=1)
    block_y = span(1168, 16, default=1)
    block_z = span(1184, 16, default=1)
    register_count = span(1200, 9)
    barrier_count = span(1211, 5)
    program = span(1216, 57)
    prefetch_address = span(1344, 49, unit=256)
    prefetch_size = span(1393, 9)
    prefetch_type = span(1402, 2)
    constants_address = repeated(8, span(1536, 51, unit=64), stride=64)
    constants_bytes = repeated(8, span(1587, 13, unit=16), stride=64)
    cluster_x = span(2144, 6)
    cluster_y = span(2152, 6)
    cluster_z = span(2160, 6)


class QmdV5(Struct, dwords=96, major=5, minor=0):
    """Blackwell: classes cdc0 and cec0. 5.1 has sub-tasks instead and is not used. block_z has 8 bits only.

    Source: open-gpu-doc clcdc0qmd.h, QMDV05_00; clcec0qmd.h is the same.
    """
    group_id = span(144, 6, default=0x3f)
    type = span(151, 3, QmdType, default=QmdType.GRID_CTA)
    releases_enable = repeated(3, span(288, 1), stride=16)
    releases_size = repeated(3, span(289, 2, ReleaseSize), stride=16)
    releases_membar = repeated(3, span(291, 1), stride=16)
    releases_wide = repeated(3, span(300, 1), stride=16)
    dependent0_enable = span(336, 1)
    dependent0_action = span(337, 3, DependentAction)
    dependent0_prefetch = span(340, 1)
    dependent1_enable = span(344, 1)
    dependent1_action = span(345, 3, DependentAction)
    dependent1_prefetch = span(348, 1)
    dependent0 = span(384, 32, unit=256)
    dependent1 = span(416, 32, unit=256)
    sass_version = span(448, 8)
    call_limit_ignored = span(456, 1, default=1)
    sampler_index = span(457, 1)
    minor = span(464, 4)
    major = span(468, 4)
    invalidate_texture_headers = span(472, 1)
    invalidate_samplers = span(473, 1)
    invalidate_texture_data = span(474, 1)
    invalidate_shader_data = span(475, 1)
    invalidate_instructions = span(476, 1)
    invalidate_constants = span(477, 1)
    release0_address = span(480, 57)
    release0_payload = span(544, 64)
    membar = span(624, 2, Membar, default=Membar.SYSTEM)
    release1_address = span(768, 57)
    release1_payload = span(832, 64)
    release2_address = span(896, 57)
    release2_payload = span(960, 64)
    program = span(1024, 53, unit=16)
    prefetch_size = span(1077, 9)
    prefetch_type = span(1086, 2)
    block_x = span(1088, 16, default=1)
    block_y = span(1104, 16, default=1)
    block_z = span(1120, 8, default=1)
    register_count = span(1128, 9)
    barrier_count = span(1137, 5)
    shared_bytes = span(1152, 11, unit=128)
    min_shared_config = span(1163, 6)
    max_shared_config = span(1169, 6)
    target_shared_config = span(1175, 6)
    local_low_bytes = span(1184, 16, unit=16)
    local_high_bytes = span(1200, 16, unit=16)
    grid_x = span(1248, 32, default=1)
    grid_y = span(1280, 16, default=1)
    grid_z = span(1312, 16, default=1)
    constants_address = repeated(8, span(1344, 51, unit=64), stride=64)
    constants_bytes = repeated(8, span(1395, 13, unit=16), stride=64)
    constants_valid = repeated(8, span(1856, 1), stride=4)
    constants_invalidate = repeated(8, span(1859, 1), stride=4)
    prefetch_address = span(1888, 49, unit=256)
    cluster_x = span(2048, 6)
    cluster_y = span(2056, 6)
    cluster_z = span(2064, 6)


# compute class -> the QMD its launches take
VERSIONS = {0xc6c0: QmdV3, 0xc7c0: QmdV3, 0xc9c0: QmdV3, 0xcbc0: QmdV4, 0xcdc0: QmdV5, 0xcec0: QmdV5}
