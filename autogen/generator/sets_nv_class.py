"""Header sets of NVIDIA's classes: what a push buffer says to the host, the compute engine and the copy
engine.
"""
from tiny.autogen.generator import tables
from tiny.autogen.generator.manifest import Folder, Header, HeaderSet, Table
from tiny.autogen.generator.packages import Package
from tiny.autogen.generator.sets_nv import V555

MESA = Package("mesa", "source", "bookworm-backports", ("src/nouveau/headers/nvidia/classes/clc[67]c0*.h",))
_MESA = "src/nouveau/headers/nvidia/classes"
_UVM = "kernel-open/nvidia-uvm"

_HOST = (r"SET_OBJECT", r"NON_STALL_INTERRUPT", r"MEM_OP_[A-D]",
         r"SEM_(ADDR_LO|ADDR_HI|PAYLOAD_LO|PAYLOAD_HI|EXECUTE)",
         r"WFI", r"GP_ENTRY[01]", r"DMA", r"DMA_(INCR|NONINCR|ONEINCR|IMMD|ENDSEG)")
_HOST_WORDS = ("GP_ENTRY0", "GP_ENTRY1", "DMA", "DMA_INCR", "DMA_NONINCR", "DMA_ONEINCR", "DMA_IMMD",
               "DMA_ENDSEG")
_COPY = (r"SET_SEMAPHORE_(A|B|PAYLOAD)", r"LAUNCH_DMA", r"OFFSET_(IN|OUT)_(UPPER|LOWER)", r"PITCH_(IN|OUT)",
         r"LINE_(LENGTH_IN|COUNT)", r"SET_REMAP_(CONST_A|CONST_B|COMPONENTS)", r"NOP")
_COMPUTE = (
    r"SET_OBJECT", r"NO_OPERATION", r"WAIT_FOR_IDLE", r"PM_TRIGGER", r"LINE_(LENGTH_IN|COUNT)",
    r"OFFSET_OUT(_UPPER)?",
    r"LAUNCH_DMA", r"LOAD_INLINE_DATA", r"SET_I2M_SEMAPHORE_[ABC]", r"INVALIDATE_SHADER_CACHES(_NO_WFI)?",
    r"INVALIDATE_SKED_CACHES", r"INVALIDATE_(SAMPLER|TEXTURE_HEADER)_CACHE(_NO_WFI)?",
    r"(SET|CHECK)_QMD_VERSION",
    r"SET_SPA_VERSION", r"SET_SHADER_(SHARED|LOCAL)_MEMORY_WINDOW_[AB]", r"SET_SHADER_LOCAL_MEMORY_[AB]",
    r"SET_SHADER_LOCAL_MEMORY_NON_THROTTLED_[ABC]", r"SEND_PCAS_[AB]", r"SEND_SIGNALING_PCAS2?_B",
    r"SET_INLINE_QMD_ADDRESS_[AB]", r"LOAD_INLINE_QMD_DATA", r"SET_REPORT_SEMAPHORE_[A-D]",
    r"SET_SHADER_EXCEPTIONS",
    r"SET_TRAP_HANDLER_A",
)


def _class(number: str, title: str, header: Header, methods: tuple[str, ...], words: tuple[str, ...] = (),
           notes: str = "") -> HeaderSet:
    package, folder = header.package, header.path.rsplit("/", 1)[0]
    return HeaderSet(f"nv_class_{number}", title, (header,), (Folder(package, folder),),
                     (Table("METHODS", tables.methods, methods,
                            {"prefix": f"NV{number.upper()}_", "words": words}),),
                     stubs=(("nvtypes.h",
                             "typedef unsigned char NvU8;\ntypedef unsigned int NvU32, NvV32;\n"),),
                     notes=notes)


def _uvm(number: str) -> Header:
    return Header(V555, f"{_UVM}/cl{number}.h", f"cl{number}.h")


def _mesa(name: str) -> Header:
    return Header(MESA, f"{_MESA}/{name}.h", f"{name}.h")


def _qmd(number: str, version: str, title: str) -> HeaderSet:
    return HeaderSet(f"nv_qmd_{number}", title, (_mesa(f"cl{number}qmd"),), (Folder(MESA, _MESA),),
                     (Table("FIELDS", tables.structure_bits, (r".*",),
                            {"prefix": f"NV{number.upper()}_{version}_"}),),
                     preamble="#define MW(range) range")


SETS = (
    _class("c56f", "Host methods and GPFIFO words of an Ampere channel.", _uvm("c56f"), _HOST, _HOST_WORDS),
    _class("c86f", "Host methods and GPFIFO words of a Hopper channel.", _uvm("c86f"), _HOST, _HOST_WORDS,
           "Blackwell's channels have the same methods where tiny uses them."),
    _class("c6b5", "Methods of Ampere's copy engine.", _uvm("c6b5"), _COPY),
    _class("c8b5", "Methods of Hopper's copy engine.", _uvm("c8b5"), _COPY,
           notes="Blackwell's copy engines have the same methods where tiny uses them."),
    _class("c6c0", "Compute methods, from Ampere on.", _mesa("clc6c0"), _COMPUTE,
           notes="The methods here have the same addresses in c7c0, c9c0, cbc0, cdc0 and cec0 (open-gpu-doc "
                 "classes/compute,\n"
                 "compared field by field), except that SET_QMD_VERSION and CHECK_QMD_VERSION end with "
                 "c9c0."),
    _qmd("c6c0", "QMDV03_00", "QMD version 3.0, Ampere and Ada: 256 bytes."),
)
