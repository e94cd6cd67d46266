"""The methods of each class, as `COMPUTE.SEND_PCAS_A.word(QMD_ADDRESS_SHIFTED8=...)`; a method's `offset` is
its address.

They come from NVIDIA's class headers (tiny.autogen.nv_class_*). Host methods lie below 0x100 and are the same
on every subchannel.
"""
from types import ModuleType

from tiny.autogen import nv_class_c6b5, nv_class_c6c0, nv_class_c8b5, nv_class_c56f, nv_class_c86f, nv_rm
from tiny.hcq.layout import RegisterFile

# of the largest QMD: methods that take one word each
QMD_WORDS = 96


def _file(name: str, header: ModuleType) -> RegisterFile:
    rows = {}
    for method, (address, step, fields) in header.METHODS.items():
        if step:
            rows |= {f"{method}_{i}": (address + i * step, fields) for i in range(QMD_WORDS)}
        elif address is not None:
            rows[method] = (address, fields)
    return RegisterFile(name, rows)


HOST_AMPERE = _file("HOST_AMPERE", nv_class_c56f)
HOST = _file("HOST", nv_class_c86f)
COMPUTE = _file("COMPUTE", nv_class_c6c0)
COPY_AMPERE = _file("COPY_AMPERE", nv_class_c6b5)
COPY = _file("COPY", nv_class_c8b5)
# methods from here on belong to the subchannel's class
HOST_END = 0x100
INLINE_QMD, INLINE_QMD_STEP = nv_class_c6c0.METHODS["LOAD_INLINE_QMD_DATA"][:2]

# class number -> its methods: what SET_OBJECT binds a subchannel to
CLASSES = {
    nv_rm.AMPERE_COMPUTE_A: COMPUTE, nv_rm.AMPERE_COMPUTE_B: COMPUTE, nv_rm.ADA_COMPUTE_A: COMPUTE,
    nv_rm.HOPPER_COMPUTE_A: COMPUTE, nv_rm.BLACKWELL_COMPUTE_A: COMPUTE, nv_rm.BLACKWELL_COMPUTE_B: COMPUTE,
    nv_rm.AMPERE_DMA_COPY_A: COPY_AMPERE, nv_rm.AMPERE_DMA_COPY_B: COPY_AMPERE,
    nv_rm.HOPPER_DMA_COPY_A: COPY, nv_rm.BLACKWELL_DMA_COPY_A: COPY, nv_rm.BLACKWELL_DMA_COPY_B: COPY,
}
# subchannels as tiny binds them
COMPUTE_SUBCHANNEL, COPY_SUBCHANNEL = 1, 4
