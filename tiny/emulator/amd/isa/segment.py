"""A run of vector instructions as one loop over the lanes: registers are variables inside it, loaded and
stored once.
"""

from tiny.emulator.amd.isa.c_text import Writer
from tiny.emulator.amd.isa.expression import Value, parts_of
from tiny.emulator.amd.isa.lower import Store

LANE_WISE = {"vgpr", "vgpr_at", "mask", "exec_lanes"}
EXEC = 126


class Segment:
    """Collects stores of instructions that run under one EXEC. `accepts` says whether the next one may join.
    """

    def __init__(self, wave_size: int, null: int):
        self.wave_size, self._null = wave_size, null
        self._before: list[str] = []  # in front of the loop: what is the same for all lanes
        self._loaded: list[str] = []  # at the top of the loop
        self._vectors: dict[int, str] = {}  # register -> its value now
        self._loads: dict[int, str] = {}  # register -> what it holds before the loop
        self._written: set[int] = set()
        self._masks: dict[int, str] = {}  # code of a mask -> this lane's bit
        self._uniform: dict[tuple, str] = {}
        self._indexed: list[str] = []  # stores to registers that M0 chooses
        self._writer = Writer(self._leaf)
        self.empty = True

    def accepts(self, stores: list[Store]) -> bool:
        """Whether these read nothing that the loop so far would have to finish first."""
        alone = any(uses_index(store) for store in stores)
        if EXEC in self._masks or self._indexed or alone and not self.empty:
            return False
        return all(
            self._reads_well(value)
            for store in stores
            for value in (store.value, store.condition)
            if value is not None
        )

    def _reads_well(self, value: Value, seen: set | None = None) -> bool:
        seen = set() if seen is None else seen
        if id(value) in seen:
            return True
        seen.add(id(value))
        if value.op == "gather" and value.args[1] in self._written:
            return False
        if value.op == "sgpr" and self._touches(value.args[0], 1):
            return False
        if (
            value.op == "lanebit"
            and value.args[0] not in self._masks
            and self._touches(value.args[0], self.wave_size // 32)
        ):
            return False
        if value.op in ("vccz", "execz", "exec") and self._masks:
            return False
        return all(self._reads_well(each, seen) for each in value.args if isinstance(each, Value))

    def _touches(self, code: int, count: int) -> bool:
        width = self.wave_size // 32
        return any(mask < code + count and code < mask + width for mask in self._masks)

    def add(self, stores: list[Store]) -> None:
        """One instruction: all is read before anything is written."""
        self.empty = False
        wanted = [each for store in stores for each in (store.value, store.condition) if each is not None]
        texts = dict(zip(map(id, wanted), self._writer.expressions(wanted), strict=True))
        for store in stores:
            text = texts[id(store.value)]
            if store.where == "vgpr":
                if store.condition is not None:
                    old = self._vector(store.index)
                    text = self._writer.temporary("u32", f"{texts[id(store.condition)]} ? {text} : {old}")
                self._load(store.index)
                self._vectors[store.index] = text
                self._written.add(store.index)
            elif store.where == "vgpr_at":
                place = f"V[{self._writer.expressions([store.lane])[0]} & 511][l]"
                old = self._writer.temporary("u32", place)
                self._indexed.append(f"{place} = on ? {text} : {old};")
            else:
                self._masks[store.index] = text

    def _hoisted(self, key: tuple, kind: str, text: str) -> str:
        """A value computed once before the loop."""
        found = self._uniform.get(key)
        if found is None:
            found = self._uniform[key] = f"h{len(self._uniform)}"
            self._before.append(f"const {kind} {found} = {text};")
        return found

    def _load(self, register: int) -> str:
        found = self._loads.get(register)
        if found is None:
            found = self._loads[register] = f"v{register}"
            self._loaded.append(f"u32 v{register} = V[{register}][l];")
        return found

    def _vector(self, register: int) -> str:
        found = self._vectors.get(register)
        if found is None:
            found = self._vectors[register] = self._load(register)
        return found

    def _leaf(self, value: Value) -> str | None:
        op, args = value.op, value.args
        if op in ("vgpr", "vgpr_kept"):
            return self._vector(args[0])
        if op == "sgpr":
            return "0u" if args[0] == self._null else self._hoisted(("s", args[0]), "u32", f"S[{args[0]}]")
        if op == "lanebit":
            if args[0] in self._masks:
                return self._masks[args[0]]
            mask = self._hoisted(("m", args[0]), "MASK", mask_text(args[0], self.wave_size))
            return self._writer.temporary("b1", f"{mask} >> l & 1")
        if op == "lane":
            return "l"
        if op in ("scc", "vccz", "execz", "exec", "first_lane"):
            kind = {"exec": "u64", "first_lane": "u32"}.get(op, "_Bool")
            return self._hoisted((op,), kind, uniform_leaf(value, self.wave_size, self._null))
        if op == "vgpr_at":
            return self._writer.temporary("u32", f"V[{self._writer.expressions([args[0]])[0]} & 511][l]")
        return self._across(value)

    def _across(self, value: Value) -> str | None:
        """Leaves that look at other lanes."""
        if value.op not in ("gather", "active", "lane_number"):
            return None
        index = self._writer.expressions([value.args[0]])[0]
        if value.op == "lane_number":
            return self._writer.temporary("u32", f"{index} & {self.wave_size - 1}")
        if value.op == "active":
            return self._writer.temporary("b1", f"e >> ({index} & {self.wave_size - 1}) & 1")
        register = value.args[1]
        key = ("row", register)
        if key not in self._uniform:
            self._uniform[key] = f"row{register}"
            self._before.append(f"u32 row{register}[LANES]; memcpy(row{register}, V[{register}], 4 * LANES);")
        return self._writer.temporary("u32", f"row{register}[{index} & {self.wave_size - 1}]")

    def per_lane(self, value: Value) -> str:
        """The text of a value inside the loop that `before` and `inside` are written around."""
        return self._writer.expressions([value])[0]

    def before(self) -> list[str]:
        return self._before

    def inside(self) -> list[str]:
        return [*self._loaded, *self._writer.statements]

    def text(self) -> list[str]:
        """The statements: a block with the loop in it."""
        exec_text = mask_text(EXEC, self.wave_size)
        lines = ["{", f"const MASK e = {exec_text};", *self._before]
        lines += [f"MASK o{code} = 0;" for code in self._masks]
        lines += [
            "VECTORIZE",
            "EACH_LANE {",
            "const _Bool on = e >> l & 1;",
            *self._loaded,
            *self._writer.statements,
        ]
        # A choice between variables, all loaded above: clang 22.1.8 moves a load behind a store to the same
        # place where the choice is one of loading or not (seen on v_swap_b32, 2026-11; test_lanes.py).
        for register in sorted(self._written):
            lines.append(f"V[{register}][l] = on ? {self._vectors[register]} : {self._loads[register]};")
        lines += self._indexed
        lines += [f"o{code} |= (MASK)(on & {text}) << l;" for code, text in self._masks.items()]
        lines.append("}")
        for code in self._masks:
            if code != self._null:
                lines.append(
                    f"S[{code}] = o{code};"
                    + (f" S[{code + 1}] = o{code} >> 32;" if self.wave_size == 64 else "")
                )
        return [*lines, "}"]


def uses_index(store: Store) -> bool:
    """Whether a register whose number is computed is read or written."""
    return store.where == "vgpr_at" or mentions(store.value, {"vgpr_at"})


def mentions(value: Value, ops: set[str]) -> bool:
    """Whether a leaf of those kinds occurs in a value."""
    return bool(parts_of([value], ops))


def mask_text(code: int, wave_size: int) -> str:
    """The C text of a mask of lanes in scalar registers."""
    return f"S[{code}]" if wave_size == 32 else f"((u64)S[{code + 1}] << 32 | S[{code}])"


def uniform_leaf(value: Value, wave_size: int, null: int) -> str | None:
    """The C text of a leaf that is the same for all lanes."""
    op, args = value.op, value.args
    if op == "sgpr":
        return "0u" if args[0] == null else f"S[{args[0]}]"
    if op == "scc":
        return "(w->scc != 0)"
    if op == "exec":
        return f"(u64){mask_text(EXEC, wave_size)}"
    if op in ("vccz", "execz"):
        return f"({mask_text(106 if op == 'vccz' else EXEC, wave_size)} == 0)"
    if op == "first_lane":
        mask = mask_text(EXEC, wave_size)
        return f"({mask} ? (u32)__builtin_ctzl({mask}) : 0)"
    return None
