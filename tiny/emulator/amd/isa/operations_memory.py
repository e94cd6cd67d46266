"""Rows of instructions that reach memory: what they move, and how an atomic changes what it finds.

A row's signature has `address` for whatever the encoding builds an address from; `ACCESS` says the rest.
Flat, global, scratch and buffer instructions share their names' endings, so one list makes the rows of all
four.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tiny.emulator.amd.isa import float_atomics
from tiny.emulator.amd.isa.expression import Value, cast, join, larger, select, smaller
from tiny.emulator.amd.isa.operation import row


@dataclass(frozen=True, slots=True)
class Access:
    """What a memory instruction does.

    action   load, store, atomic, exchange; load lds: from memory into LDS, a dword for each lane; count: of
             the active lanes, added to one dword of LDS; none: nothing is seen of it; refused: see `reason`
    element  type of one element in memory: u8 i8 u16 i16 u32, for atomics also u64 f32 f64
    count    elements, one dword of registers each        places  2: two of them, at offset0 and offset1
    half     None: whole registers; 0, 1: the low or high half of the register, the other half is kept
    stride   what offset0 and offset1 of a ds_*_2addr count in bytes
    combine  atomic: function of (old, data) or (old, data, compare), all of type `element`, to what is
             written; of floats, it takes what becomes of denormals, too
    floats   f16 bf16 f32 f64: what a float atomic computes with
    """

    action: str
    element: str
    count: int = 1
    half: int | None = None
    places: int = 1
    stride: int = 0
    combine: Callable | None = field(default=None, compare=False)
    operands: int = 1
    floats: str = ""
    reason: str = ""

    @property
    def size(self) -> int:
        """Bytes of one place."""
        return int(self.element[1:]) // 8 * self.count

    def combined(self, flush: Callable[[Value], Value]) -> tuple[list[Value], Value]:
        """The inputs (what memory holds, then the data) and what an atomic writes, all of type `element`."""
        inputs = [Value(self.element, "input", n) for n in range(1 + self.operands)]
        return inputs, self.combine(*inputs, *((flush,) if self.floats else ()))


ACCESS: dict[str, Access] = {}
TOKEN = {1: "b32", 2: "b64", 3: "u32x3", 4: "u32x4"}


def memory(name: str, signature: str, access: Access, kind: str = "memory") -> None:
    row(name, signature, None, kind)
    ACCESS[name] = access


def increment(old: Value, limit: Value) -> Value:
    return select(old >= limit, old - old, old + 1)


def decrement(old: Value, limit: Value) -> Value:
    return select(old.equals(0) | (old > limit), limit, old - 1)


def wrap(old: Value, step: Value, limit: Value) -> Value:
    """ds_wrap: down by step, or up by limit where that would pass zero."""
    return select(old >= step, old - step, old + limit)


def conditional_subtract(old: Value, data: Value) -> Value:
    return select(old >= data, old - data, old)


def saturating_subtract(old: Value, data: Value) -> Value:
    return select(old >= data, old - data, old - old)


ATOMIC_SPACES = ("flat", "global", "buffer")
ATOMICS = {  # name -> (types, function)
    "swap": ("b", lambda old, data: data),
    "add": ("uf", None),
    "sub": ("u", lambda old, data: old - data),
    "min": ("iuf", None),
    "max": ("iuf", None),
    "and": ("b", lambda old, data: old & data),
    "or": ("b", lambda old, data: old | data),
    "xor": ("b", lambda old, data: old ^ data),
    "inc": ("u", increment),
    "dec": ("u", decrement),
}


INTEGERS = {"add": lambda old, data: old + data, "min": smaller, "max": larger}
FLOATS = {"add": float_atomics.add, "min": float_atomics.minimum, "max": float_atomics.maximum}


def atomic(name: str, element: str, function: Callable | None = None) -> Access:
    """The access of an atomic with one operand. name: add, min, max where there is no function."""
    if element[0] == "f":
        return Access("atomic", element, combine=FLOATS[name], floats=element)
    return Access("atomic", element, combine=function or INTEGERS[name])


def float_swap(element: str) -> Access:
    return Access("atomic", element, combine=float_atomics.compare_swap, operands=2, floats=element)


def packed(kind: str) -> Access:
    """Addition of two halves."""
    return Access("atomic", "u32", combine=float_atomics.packed_add(kind), floats=kind)


def refused(name: str, signature: str, reason: str, kind: str = "memory") -> None:
    """A row that is decoded and never executed; `reason` stands in the error."""
    memory(name, signature, Access("refused", "u32", reason=reason), kind)


def compare_swap(old: Value, data: Value, compare: Value) -> Value:
    return select(old.equals(compare), data, old)


LOADS = {
    f"{prefix}{kind}": Access("load", "u16" if kind == "b16" else kind, half=half)
    for prefix, half, kinds in (
        ("", None, ("u8", "i8", "u16", "i16")),
        ("d16_", 0, ("u8", "i8", "b16")),
        ("d16_hi_", 1, ("u8", "i8", "b16")),
    )
    for kind in kinds
}
LOADS |= {f"b{32 * n}": Access("load", "u32", n) for n in range(1, 5)}
STORES = {
    "b8": Access("store", "u8"),
    "b16": Access("store", "u16"),
    "d16_hi_b8": Access("store", "u8", half=1),
    "d16_hi_b16": Access("store", "u16", half=1),
} | {f"b{32 * n}": Access("store", "u32", n) for n in range(1, 5)}


def _addressed(space: str) -> None:
    """Loads, stores and atomics of flat, global, scratch or buffer instructions."""
    for name, access in LOADS.items():
        memory(f"{space}_load_{name}", f"{TOKEN[access.count]} = address", access)
    for name, access in STORES.items():
        memory(f"{space}_store_{name}", f"= address {TOKEN[access.count]}", access)
    if space == "scratch":
        return
    for name, (kinds, function) in ATOMICS.items():
        for kind in kinds:
            for width in (32, 64):
                element = f"{'u' if kind == 'b' else kind}{width}"
                token = "b32" if width == 32 else "b64"
                memory(
                    f"{space}_atomic_{name}_{kind}{width}",
                    f"{token} = address {token}",
                    atomic(name, element, function),
                )
    for kind, element in (("b32", "u32"), ("b64", "u64")):
        token, pair = ("b64", "u32x4") if kind == "b64" else ("b32", "b64")
        swap = Access("atomic", element, combine=compare_swap, operands=2)
        memory(f"{space}_atomic_cmpswap_{kind}", f"{token} = address {pair}", swap)
    memory(f"{space}_atomic_cmpswap_f32", "b32 = address b64", float_swap("f32"))
    for kind in ("f16", "bf16"):
        memory(f"{space}_atomic_pk_add_{kind}", "b32 = address b32", packed(kind))
    memory(  # gfx12 calls it sub_clamp
        f"{space}_atomic_csub_u32", "b32 = address b32", Access("atomic", "u32", combine=saturating_subtract)
    )


for space in ("flat", "global", "scratch", "buffer"):
    _addressed(space)
memory("global_load_addtid_b32", "b32 = address", Access("load", "u32"))
memory("global_store_addtid_b32", "= address b32", Access("store", "u32"))
TYPED = "a typed buffer converts between formats, which only graphics asks for"
for name, registers in (("x", 1), ("xy", 2), ("xyz", 3), ("xyzw", 4)):
    for half, count in (("", registers), ("d16_", (registers + 1) // 2)):
        for prefix in ("buffer", "tbuffer"):
            refused(f"{prefix}_load_{half}format_{name}", f"{TOKEN[count]} = address", TYPED)
            refused(f"{prefix}_store_{half}format_{name}", f"= address {TOKEN[count]}", TYPED)
refused("buffer_load_d16_hi_format_x", "b32 = address", TYPED)
refused("buffer_store_d16_hi_format_x", "= address b32", TYPED)
for name in ("buffer_gl0_inv", "buffer_gl1_inv"):
    row(name, "=", None, "wait")

# -- scalar memory -------------------------------------------------------------------------------------------
for count in (1, 2, 4, 8, 16):
    token = {1: "b32", 2: "b64"}.get(count, f"u32x{count}")
    memory(f"s_load_b{32 * count}", f"{token} = address", Access("load", "u32", count), "scalar memory")
    memory(f"s_buffer_load_b{32 * count}", f"{token} = buffer", Access("load", "u32", count), "scalar memory")
for name in ("s_gl1_inv", "s_dcache_inv"):
    row(name, "=", None, "wait")
memory("s_atc_probe", "= probe address", Access("none", "u32"), "scalar memory")
memory("s_atc_probe_buffer", "= probe buffer", Access("none", "u32"), "scalar memory")

# -- local data share ----------------------------------------------------------------------------------------
for name, access in (("u8", "u8"), ("i8", "i8"), ("u16", "u16"), ("i16", "i16")):
    memory(f"ds_load_{name}", "b32 = address", Access("load", access))
for name in ("u8", "i8", "u16"):
    memory(f"ds_load_{name}_d16", "b32 = address", Access("load", name, half=0))
    memory(f"ds_load_{name}_d16_hi", "b32 = address", Access("load", name, half=1))
for width in (8, 16):
    memory(f"ds_store_b{width}", "= address b32", Access("store", f"u{width}"))
    memory(f"ds_store_b{width}_d16_hi", "= address b32", Access("store", f"u{width}", half=1))
for count in range(1, 5):
    memory(f"ds_load_b{32 * count}", f"{TOKEN[count]} = address", Access("load", "u32", count))
    memory(f"ds_store_b{32 * count}", f"= address {TOKEN[count]}", Access("store", "u32", count))
for count in (1, 2):
    for middle, stride in (("", 4 * count), ("stride64_", 256 * count)):
        two = Access("load", "u32", count, places=2, stride=stride)
        memory(f"ds_load_2addr_{middle}b{32 * count}", f"{TOKEN[2 * count]} = address", two)
        two = Access("store", "u32", count, places=2, stride=stride)
        memory(f"ds_store_2addr_{middle}b{32 * count}", f"= address {TOKEN[count]} {TOKEN[count]}", two)
        two = Access("exchange", "u32", count, places=2, stride=stride)
        memory(
            f"ds_storexchg_2addr_{middle}rtn_b{32 * count}",
            f"{TOKEN[2 * count]} = address {TOKEN[count]} {TOKEN[count]}",
            two,
        )


def ds_atomic(name: str, kind: str, combine: Callable, operands: int = 1, returns_only: bool = False) -> None:
    element = f"u{kind[1:]}" if kind[0] == "b" else kind
    token = TOKEN[int(kind[1:]) // 32]
    access = Access("atomic", element, combine=combine, operands=operands)
    ds_rows(name, kind, access, token, operands, returns_only)


def ds_rows(
    name: str, kind: str, access: Access, token: str, operands: int = 1, returns_only: bool = False
) -> None:
    """An atomic of local memory, with and without a result."""
    data = f" {token}" * operands
    if not returns_only:
        memory(f"ds_{name}_{kind}", f"= address{data}", access)
    memory(f"ds_{name}_rtn_{kind}", f"{token} = address{data}", access)


def masked_or(old: Value, mask: Value, data: Value) -> Value:
    return old & ~mask | data


for width in (32, 64):
    for name, (kinds, function) in ATOMICS.items():
        for kind in kinds:
            if name == "swap":
                ds_atomic("storexchg", f"b{width}", function, returns_only=True)
            elif kind == "f":
                ds_rows(name, f"f{width}", atomic(name, f"f{width}"), TOKEN[width // 32])
            else:
                ds_atomic(name, f"{kind}{width}", function or INTEGERS[name])
    ds_atomic("rsub", f"u{width}", lambda old, data: data - old)
    ds_atomic("mskor", f"b{width}", masked_or, 2)
    ds_atomic("cmpstore", f"b{width}", compare_swap, 2)
    ds_rows("cmpstore", f"f{width}", float_swap(f"f{width}"), TOKEN[width // 32], 2)
for kind in ("f16", "bf16"):
    ds_rows("pk_add", kind, packed(kind), "b32")
ds_atomic("wrap", "b32", wrap, 2, returns_only=True)


def conditional_exchange(old: Value, data: Value) -> Value:
    """Each half of 32 bits is written where its highest bit is set, without that bit."""
    low, high = (
        select((part >> 31).differs(0), part & 0x7FFFFFFF, kept)
        for part, kept in zip(
            *((cast(each, "u32"), cast(each >> 32, "u32")) for each in (data, old)), strict=True
        )
    )
    return join(low, high)


ds_atomic("condxchg32", "b64", conditional_exchange, returns_only=True)
row("ds_nop", "=", None, "wait")
row("ds_swizzle_b32", "b32 = address", None, "lanes")
row("ds_permute_b32", "b32 = address b32", None, "lanes")
row("ds_bpermute_b32", "b32 = address b32", None, "lanes")
memory("ds_append", "b32 =", Access("count", "u32", combine=lambda old, lanes: old + lanes))
memory("ds_consume", "b32 =", Access("count", "u32", combine=lambda old, lanes: old - lanes))
memory("ds_store_addtid_b32", "= b32", Access("store", "u32"))
memory("ds_load_addtid_b32", "b32 =", Access("load", "u32"))
refused("ds_bvh_stack_rtn_b32", "b32 = address b32 u32x4", "a stack of ray tracing")
GLOBAL_SHARE = "global data share and wave sync: nothing allocates them for a compute queue"
for name in ("sema_release_all", "sema_v", "sema_p"):
    refused(f"ds_gws_{name}", "=", GLOBAL_SHARE)
for name in ("init", "sema_br", "barrier"):
    refused(f"ds_gws_{name}", "= address", GLOBAL_SHARE)
refused("ds_ordered_count", "b32 = address", GLOBAL_SHARE)
for name in ("add", "sub"):
    refused(f"ds_{name}_gs_reg_rtn", "b64 = b32", GLOBAL_SHARE)
