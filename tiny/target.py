"""What an opened device can do, as plain data: all that schedule and render know about it."""
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Target:
    """Facts about one opened device. Hashable; `key` is part of the key of compiled programs.

    name         the device's kind: CPU, AMD, NV, METAL
    arch         instruction set and its version: x86_64, aarch64, gfx1100
    dialect      the dialect in tiny.render that speaks to it: c, amdgcn, nvptx, metal
    lanes        bytes of a vector register (CPU), or lanes of a wave (GPU)
    work_items   most work-items of a group; 1 where a group is one thread of a processor
    threads      workers that run groups of one command at the same time
    local_bytes  memory local to a group; 0 where groups use ordinary memory
    max_buffers  arguments a kernel may have
    index_bits   width of the widest address arithmetic
    features     instruction-set extensions, in the compiler's spelling: avx512f, avx512_bf16, amx-bf16
    compiler     the compiler and its version as one word, as it stands in cache keys
    cache_bytes  data caches by level, the last one shared: (32768, 1048576, 33554432); () if unknown
    """
    name: str
    arch: str
    dialect: str = "c"
    lanes: int = 16
    threads: int = 1
    work_items: int = 1
    local_bytes: int = 0
    max_buffers: int = 1 << 16
    index_bits: int = 64
    features: frozenset[str] = field(default_factory=frozenset)
    compiler: str = ""
    cache_bytes: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.name}:{self.arch}"

    @property
    def key(self) -> str:
        """Everything that may change a kernel, as text that is the same in every process."""
        numbers = (self.lanes, self.threads, self.work_items, self.local_bytes, self.index_bits,
                   *self.cache_bytes)
        return " ".join((self.name, self.arch, self.dialect, *map(str, numbers), self.compiler,
                         ",".join(sorted(self.features))))
