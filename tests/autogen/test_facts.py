"""Generated numbers against the same numbers read by hand: from the manuals and headers, as the project's
facts list them.
"""
import pytest

from tiny.autogen import (
    amd_gc_9_4_3,
    amd_gc_11_0_0,
    amd_gc_12_0_0,
    amd_hsa,
    amd_kernel_descriptor,
    amd_pm4,
    kfd_6_1,
    kfd_6_12,
    metal,
    nv_class_c6c0,
    nv_class_c8b5,
    nv_class_c86f,
    nv_rm,
)


@pytest.mark.parametrize("name, number, size", [
    ("GET_VERSION", 0x01, 8), ("DESTROY_QUEUE", 0x03, 8), ("CREATE_EVENT", 0x08, 32),
    ("WAIT_EVENTS", 0x0c, 24),
    ("GET_PROCESS_APERTURES_NEW", 0x14, 16), ("ACQUIRE_VM", 0x15, 8), ("ALLOC_MEMORY_OF_GPU", 0x16, 40),
    ("FREE_MEMORY_OF_GPU", 0x17, 8), ("MAP_MEMORY_TO_GPU", 0x18, 24), ("SVM", 0x20, 24),
    ("SET_XNACK_MODE", 0x21, 4),
])
def test_kfd_ioctls_are_the_same_in_both_kernels(name, number, size):
    words = {getattr(kfd, f"AMDKFD_IOC_{name}") for kfd in (kfd_6_1, kfd_6_12)}
    (word,) = words
    assert (word & 0xff, word >> 8 & 0xff, word >> 16 & 0x3fff) == (number, ord("K"), size)


def test_create_queue_grew():
    sizes = [kfd.ffi.sizeof("struct kfd_ioctl_create_queue_args") for kfd in (kfd_6_1, kfd_6_12)]
    assert sizes == [88, 96] and (kfd_6_1.KFD_IOCTL_MINOR_VERSION, kfd_6_12.KFD_IOCTL_MINOR_VERSION) == (11,
        17)
    assert kfd_6_12.KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE == 1 << 31
    assert kfd_6_12.ffi.sizeof("struct kfd_event_data") == 48


@pytest.mark.parametrize("register, gfx11, gfx9", [
    ("DISPATCH_INITIATOR", 0x1ba0, 0x0e00), ("START_X", 0x1ba4, 0x0e04), ("NUM_THREAD_X", 0x1ba7, 0x0e07),
    ("PGM_LO", 0x1bac, 0x0e0c), ("DISPATCH_SCRATCH_BASE_LO", 0x1bb0, 0x0e10), ("PGM_RSRC1", 0x1bb2, 0x0e12),
    ("RESOURCE_LIMITS", 0x1bb5, 0x0e15), ("TMPRING_SIZE", 0x1bb8, 0x0e18), ("RESTART_X", 0x1bbb, 0x0e1b),
    ("PGM_RSRC3", 0x1bc8, 0x0e2d), ("USER_DATA_0", 0x1be0, 0x0e40),
])
def test_compute_registers(register, gfx11, gfx9):
    rows = [header.REGISTERS[f"COMPUTE_{register}"][0]
            for header in (amd_gc_11_0_0, amd_gc_12_0_0, amd_gc_9_4_3)]
    assert rows == [gfx11, gfx11, gfx9]
    absolute = {amd_gc_11_0_0.GC_BASE__INST0_SEG0 + gfx11, amd_gc_9_4_3.GC_BASE__INST0_SEG0 + gfx9}
    assert len(absolute) == (2 if register == "PGM_RSRC3" else 1)


def test_events_and_opcodes():
    assert (amd_gc_11_0_0.CS_PARTIAL_FLUSH, amd_gc_11_0_0.CACHE_FLUSH_AND_INV_TS_EVENT) == (7, 0x14)
    assert (amd_pm4.PACKET3_RELEASE_MEM, amd_pm4.PACKET3_SET_SH_REG,
            amd_pm4.PACKET3_DISPATCH_DIRECT) == (0x49, 0x76, 0x15)
    assert amd_pm4.FIELDS["PACKET3_ACQUIRE_MEM_GCR_CNTL_GL2_WB"] == (15, None)


def test_structs_that_gpus_read():
    assert amd_hsa.ffi.sizeof("amd_signal_t") == 64 and amd_hsa.ffi.sizeof("amd_queue_t") == 256
    ffi, kind = amd_kernel_descriptor.ffi, "struct kernel_descriptor_t"
    places = {name: ffi.offsetof(kind, name) for name in ("kernarg_size", "kernel_code_entry_byte_offset",
                                                          "compute_pgm_rsrc3", "compute_pgm_rsrc1",
                                                          "kernel_code_properties")}
    assert list(places.values()) == [8, 16, 44, 48, 56] and ffi.sizeof(kind) == 64


@pytest.mark.parametrize("name, value", [
    ("NV_ESC_RM_FREE", 0x29), ("NV_ESC_RM_CONTROL", 0x2a), ("NV_ESC_RM_ALLOC", 0x2b),
    ("NV_ESC_RM_MAP_MEMORY", 0x4e),
    ("NV_ESC_CARD_INFO", 200), ("NV_ESC_REGISTER_FD", 201), ("NV_ESC_CHECK_VERSION_STR", 210),
    ("NV_ERR_INVALID_ARGUMENT", 0x1f),
    ("UVM_INITIALIZE", 0x30000001), ("UVM_MM_INITIALIZE", 75), ("UVM_REGISTER_GPU", 37),
    ("UVM_MAP_EXTERNAL_ALLOCATION", 33),
    ("NV2080_CTRL_CMD_GPU_GET_GID_INFO", 0x2080014a), ("NV2080_CTRL_CMD_GR_GET_INFO", 0x20801201),
    ("NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN", 0xc36f0108),
    ("NVA06C_CTRL_CMD_GPFIFO_SCHEDULE", 0xa06c0101),
    ("NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES", 0x83de030c),
    ("NV0080_CTRL_CMD_GPU_GET_CLASSLIST", 0x800201),
    ("HOPPER_COMPUTE_A", 0xcbc0), ("HOPPER_USERMODE_A", 0xc661), ("BLACKWELL_COMPUTE_B", 0xcec0),
    ("FERMI_VASPACE_A", 0x90f1),
])
def test_numbers_of_nvidias_driver(name, value):
    assert getattr(nv_rm, name) == value


def test_flags_of_nvidias_driver():
    assert nv_rm.FLAGS["NVOS32_ATTR_PAGE_SIZE"][:2] == (23, 2)
    assert nv_rm.FLAGS["NVOS32_ATTR_LOCATION"][:2] == (25, 2)
    assert nv_rm.FLAGS["NVOS46_FLAGS_PAGE_SIZE"][:2] == (8, 4)
    assert nv_rm.FLAGS["NVOS02_FLAGS_MAPPING"][2]["NO_MAP"] == 1


@pytest.mark.parametrize("table, method, address", [
    (nv_class_c6c0, "SEND_PCAS_A", 0x2b4), (nv_class_c6c0, "SEND_SIGNALING_PCAS2_B", 0x2c0),
    (nv_class_c6c0, "LOAD_INLINE_QMD_DATA", 0x320),
    (nv_class_c6c0, "INVALIDATE_SHADER_CACHES_NO_WFI", 0x1698),
    (nv_class_c6c0, "SET_SHADER_LOCAL_MEMORY_A", 0x790), (nv_class_c86f, "SEM_EXECUTE", 0x6c),
    (nv_class_c86f, "WFI", 0x78),
    (nv_class_c8b5, "LAUNCH_DMA", 0x300), (nv_class_c8b5, "LINE_LENGTH_IN", 0x418),
])
def test_method_addresses(table, method, address):
    assert table.METHODS[method][0] == address


@pytest.mark.parametrize("name, value", [
    ("MTLResourceStorageModePrivate", 32), ("MTLResourceHazardTrackingModeUntracked", 256),
    ("MTLCommandBufferStatusError", 5),
    ("MTLGPUFamilyApple7", 1007), ("MTLGPUFamilyMetal3", 5001), ("MTLDispatchTypeConcurrent", 1),
    ("MTLIndirectCommandTypeConcurrentDispatch", 32), ("MTLLanguageVersion3_1", 196609),
    ("MTLResourceUsageWrite", 2),
])
def test_numbers_of_metal(name, value):
    assert getattr(metal, name) == value


def test_messages_of_metal():
    assert metal.MESSAGES["ComputeCommandEncoder setBuffer:offset:atIndex:"] == (
        "void", ("void *", "unsigned long", "unsigned long"), False)
    assert metal.MESSAGES["ComputeCommandEncoder "
                          "dispatchThreadgroups:threadsPerThreadgroup:"][1] == ("struct Size",) * 2
    assert metal.MESSAGES["Device newSharedEvent"][2] and not metal.MESSAGES["CommandQueue commandBuffer"][2]
    assert metal.MESSAGES["CommandBuffer GPUStartTime"][0] == "double"
    assert (metal.ffi.sizeof("struct Size"), metal.ffi.sizeof("struct Range")) == (24, 16)
