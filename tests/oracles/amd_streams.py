"""Random valid AMD command streams, Mesa's text of them taken apart, and both compared, fact by fact."""
import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.hcq.test_round_trip import drawn
from tiny.hcq.amd import pm4, sdma
from tiny.hcq.amd.registers import FILES
from tiny.hcq.layout import Packet, Register
from tiny.trace import streams

# names of the SDMA packets, and of the PM4 ones, in Mesa's text
SDMA_NAMES = {"Nop": "NOP", "CopyLinear": "COPY LINEAR", "CopyLinearGfx9": "COPY LINEAR",
              "WriteLinear": "WRITE",
              "ConstantFill": "CONSTANT_FILL", "ConstantFillGfx9": "CONSTANT_FILL"}
PM4_NAMES = {"Nop": "NOP", "Filler": "NOP (type 2)", "AcquireMemGfx9": "ACQUIRE_MEM",
             "ReleaseMemGfx9": "RELEASE_MEM"}


def name_of(packet: Packet) -> str:
    """Mesa's name: ours with underscores, ReleaseMem as RELEASE_MEM."""
    name = type(packet).__name__
    if isinstance(packet, sdma.Sdma):
        return SDMA_NAMES[name]
    return PM4_NAMES.get(name) or re.sub(r"(?<!^)(?=[A-Z])", "_", name).upper()


COMMON = [pm4.Nop, pm4.DispatchDirect, pm4.DispatchIndirect, pm4.IndirectBuffer, pm4.CondExec, pm4.SetShReg,
          pm4.SetShRegIndex, pm4.SetUconfigReg, pm4.WriteData, pm4.DmaData, pm4.WaitRegMem, pm4.EventWrite]
PM4 = {9: [*COMMON, pm4.AcquireMemGfx9, pm4.ReleaseMemGfx9], 11: [*COMMON, pm4.AcquireMem, pm4.ReleaseMem],
       12: [*COMMON, pm4.AtomicMem, pm4.AcquireMem, pm4.ReleaseMem, pm4.DispatchDirectInterleaved]}
SDMA = {9: [sdma.Nop, sdma.CopyLinearGfx9, sdma.ConstantFillGfx9, sdma.WriteLinear],
        11: [sdma.Nop, sdma.CopyLinear, sdma.ConstantFill, sdma.WriteLinear],
        12: [sdma.Nop, sdma.CopyLinear, sdma.ConstantFill, sdma.WriteLinear]}
WINDOWS = {pm4.SetShReg: 0x2c00, pm4.SetShRegIndex: 0x2c00, pm4.SetUconfigReg: 0xc000}


def random_packet(kind: type[Packet], generation: int, random_: random.Random) -> Packet:
    """A packet with random fields; SET packets start at a register of the generation's table."""
    values = {name: drawn(f, random_) for name, f in kind.free.items()}
    if kind in WINDOWS:
        file, start = FILES[generation], WINDOWS[kind]
        known = [getattr(file, name).offset for name in file]
        values["register"] = random_.choice([o for o in known if start <= o < start + 0x400]) - start
    if kind is sdma.WriteLinear:                             # Mesa takes the whole dword for the count
        values["swap"] = values["cache_policy"] = 0
    # with cpv it has an eighth dword, unknown to Mesa
    if kind is sdma.CopyLinear and generation == 12:
        values["cpv"] = 0
    return kind(**values)


def random_stream(kinds: list[type[Packet]], generation: int, seed: int) -> bytes:
    random_ = random.Random(seed)
    return b"".join(bytes(random_packet(random_.choice(kinds), generation, random_))
                    for _ in range(random_.randrange(1, 12)))


@dataclass
class Said:
    """What Mesa says of one packet. items: (name, the dword read last or the value printed, {field:
    text}).
    """
    at: int
    name: str
    items: list[tuple[str, int, dict[str, str]]] = field(default_factory=list)


def taken_apart(text: str) -> list[Said]:
    """Mesa's text as packets. A dword begins a line; a line with a colon behind the name begins a packet."""
    packets, dwords, word = [], 0, 0
    for line in text.splitlines():
        match = re.match(r"([0-9a-f]{8}) (.*)", line)
        rest = line
        if match:
            word, rest, dwords = int(match[1], 16), match[2], dwords + 1
        if head := re.match(r"([A-Z0-9_]+)(?:\(.*\))*:$", rest.strip()):
            # 22.3's INDIRECT_BUFFER_CIK
            packets.append(Said(4 * (dwords - 1), head[1].removesuffix("_CIK")))
        elif match and (head := re.match(r"(NOP \(type 2\)|NOP|COPY LINEAR|WRITE|CONSTANT_FILL)$",
                                         rest.strip())):
            packets.append(Said(4 * (dwords - 1), head[1]))
        elif item := re.match(r"\s*(\w+) <- (.*)", rest):
            # 22.3 has the first field on the register's line
            first = re.match(r"(\w+) = (.*)", item[2])
            value = word if first else number(item[2])
            packets[-1].items.append((item[1], word if value is None else value, {first[1]: first[2]}
                                      if first else {}))
        elif entry := re.match(r"\s*(\w[\w ]*?)(?: =|:) (\w+)$", rest):
            if packets[-1].items and packets[-1].name not in ("COPY LINEAR", "WRITE", "CONSTANT_FILL"):
                packets[-1].items[-1][2][entry[1]] = entry[2]
            else:
                packets[-1].items.append((entry[1], int(entry[2], 16 if " va " in f" {entry[1]} " else 10),
                                          {}))
    return packets


def number(text: str) -> int | None:
    """The number in Mesa's spelling of a value; None for an enumerator's name."""
    for pattern in (r".*\((0x[0-9a-f]+)\)", r"(0x[0-9a-f]+)", r"(\d+)\s*$"):
        if found := re.match(pattern, text):
            return int(found[1], 0)
    return None


def enumerators(source: Path) -> dict[str, set[int]]:
    """Names that Mesa prints instead of numbers, with every value that some register gives them."""
    found: dict[str, set[int]] = {}
    for file in sorted((source / "src/amd/registers").glob("*.json")):
        for enum in json.loads(file.read_text()).get("enums", {}).values():
            for entry in enum["entries"]:
                found.setdefault(entry["name"], set()).add(entry["value"])
    return found


# Mesa's name -> our field, in the packet it stands for; "low"/"high": half of a 64-bit field
LOW, HIGH = "low", "high"
NAMES = {
    "RELEASE_MEM": {"DST_SEL": "to_l2", "INT_SEL": "interrupt", "DATA_SEL": "data_sel",
                    "ADDRESS_LO": ("address", LOW),
                    "ADDRESS_HI": ("address", HIGH), "DATA_LO": ("value", LOW), "DATA_HI": ("value", HIGH),
                    "CTXID": "interrupt_id", "EVENT_INDEX": "event_index", "TCL1_VOL_ACTION_ENA": "tcl1_vol",
                    "TC_VOL_ACTION_ENA": "tc_vol", "TC_WB_ACTION_ENA": "tc_wb", "TCL1_ACTION_ENA": "tcl1",
                    "TC_ACTION_ENA": "tc", "TC_NC_ACTION_ENA": "tc_nc", "TC_MD_ACTION_ENA": "tc_md"},
    "ACQUIRE_MEM": {"GCR_SIZE": ("size", LOW), "GCR_SIZE_HI": ("size", HIGH), "GCR_BASE_LO": ("base", LOW),
                    "GCR_BASE_HI": ("base", HIGH), "POLL_INTERVAL": "interval",
                    "CP_COHER_SIZE": ("size", LOW),
                    "CP_COHER_SIZE_HI": ("size", HIGH), "CP_COHER_BASE": ("base", LOW),
                    "CP_COHER_BASE_HI": ("base", HIGH),
                    "TC_NC_ACTION_ENA": "tc_nc", "TC_WC_ACTION_ENA": "tc_wc",
                    "TC_INV_METADATA_ACTION_ENA": "tc_inv_metadata",
                    "TCL1_VOL_ACTION_ENA": "tcl1_vol", "TC_WB_ACTION_ENA": "tc_wb", "TCL1_ACTION_ENA": "tcl1",
                    "TC_ACTION_ENA": "tc", "SH_KCACHE_ACTION_ENA": "sh_kcache",
                    "SH_KCACHE_VOL_ACTION_ENA": "sh_kcache_vol",
                    "SH_ICACHE_ACTION_ENA": "sh_icache", "SH_KCACHE_WB_ACTION_ENA": "sh_kcache_wb"},
    "WAIT_REG_MEM": {"ADDRESS_LO": ("address", LOW), "ADDRESS_HI": ("address", HIGH), "REF": "reference",
                     "MASK": "mask",
                     "POLL_INTERVAL": "interval"},
    "WRITE_DATA": {"DST_SEL": "to", "WR_ONE_ADDR": "one_address", "WR_CONFIRM": "confirm",
                   "ENGINE_SEL": "engine",
                   "DST_ADDR": "address", "DST_ADDR_LO": ("address", LOW), "DST_ADDR_HI": ("address", HIGH)},
    "DMA_DATA": {"ENGINE": "engine", "SRC_CACHE_POLICY": "source_cache_policy", "DST_SEL": "to",
                 "SRC_SEL": "from_",
                 "DST_CACHE_POLICY": "destination_cache_policy", "CP_SYNC": "sync", "SRC_ADDR": "source",
                 "DST_ADDR": "destination", "BYTE_COUNT": "size_bytes_", "SAS": "source_is_register",
                 "DAS": "destination_is_register", "SAIC": "source_stays", "DAIC": "destination_stays",
                 "RAW_WAIT": "wait_for_earlier", "DISABLE_WR_CONFIRM": "no_confirm",
                 "SRC_ADDR_LO": ("source", LOW),
                 "SRC_ADDR_HI": ("source", HIGH), "DST_ADDR_LO": ("destination", LOW),
                 "DST_ADDR_HI": ("destination", HIGH)},
    "INDIRECT_BUFFER": {"IB_BASE_LO": ("address", LOW), "IB_BASE_HI": ("address", HIGH),
                        "IB_SIZE": "size_dwords",
                        "CHAIN": "chain", "PRE_ENA": "pre_enable", "VALID": "valid"},
    "DISPATCH_DIRECT": {"COMPUTE_DIM_X": "groups_x", "COMPUTE_DIM_Y": "groups_y",
                        "COMPUTE_DIM_Z": "groups_z"},
    "DISPATCH_DIRECT_INTERLEAVED": {"COMPUTE_DIM_X": "groups_x", "COMPUTE_DIM_Y": "groups_y",
                                    "COMPUTE_DIM_Z": "groups_z"},
    "DISPATCH_INDIRECT": {"ADDR": "address"},
    "EVENT_WRITE": {"EVENT_TYPE": "event_type", "EVENT_INDEX": "event_index"},
    "ATOMIC_MEM": {"ATOMIC": "atomic", "COMMAND": "command", "CACHE_POLICY": "cache_policy",
                   "ENGINE_SEL": "engine",
                   "ADDR": "address", "SRC_DATA_LO": ("operand", LOW), "SRC_DATA_HI": ("operand", HIGH),
                   "CMP_DATA_LO": ("compare", LOW), "CMP_DATA_HI": ("compare", HIGH),
                   "LOOP_INTERVAL": "interval"},
    "COND_EXEC": {"ADDR": "address", "SIZE": "count_dwords"},
    "SET_SH_REG_INDEX": {"INDEX": "index"}, "SET_UCONFIG_REG": {"INDEX": "index"},
    "COPY LINEAR": {"copy bytes": "nbytes"},
    "WRITE": {"va lo": ("destination", LOW), "va hi": ("destination", HIGH), "written dword count": "values"},
    "CONSTANT_FILL": {"fill va lo": ("destination", LOW), "fill va hi": ("destination", HIGH),
                      "fill value": "value",
                      "fill byte count": "nbytes"},
}
# words that hold several fields: their own value is not compared, their fields are
WORDS = {"RELEASE_MEM_OP", "GCR_CNTL", "CONTROL", "IB_CONTROL", "DMA_DATA_WORD0", "COMMAND", "CP_COHER_CNTL",
         "VGT_EVENT_INITIATOR", "OP", "ENGINE_SEL"}


class Comparison:
    """Counts what was compared and collects each kind of disagreement once, with an example.

    only_mesa, only_tiny: what just one of the two has a name for.
    """

    def __init__(self, known_names: dict[str, set[int]], generation: int):
        self.enumerators, self.file = known_names, FILES[generation]
        self.packets = self.facts = 0
        self.differences: dict[tuple[str, str], str] = {}
        self.only_mesa: set[str] = set()
        self.only_tiny: set[str] = set()

    def equal(self, packet: str, name: str, ours: int, text: str) -> None:
        """One value by us and in Mesa's spelling."""
        self.facts += 1
        theirs = number(text)
        same = ours == theirs if theirs is not None else ours in self.enumerators.get(text, ())
        if not same:
            self.differences.setdefault((packet, name), f"tiny {ours:#x}, Mesa {text}")

    def stream(self, ours: Iterable[streams.Found], theirs: list[Said]) -> None:
        found = list(ours)
        mine = [(item.at, name_of(item.packet)) for item in found]
        mesa = [(said.at, said.name) for said in theirs]
        if mine != mesa:
            first = next((pair for pair in zip(mine, mesa, strict=False) if pair[0] != pair[1]),
                         (len(mine), len(mesa)))
            self.differences.setdefault((str(first[0]), "packets"), f"tiny {first[0]}, Mesa {first[1]}")
            return
        for item, said in zip(found, theirs, strict=True):
            self.packets += 1
            self.packet(item, said)

    def packet(self, item: streams.Found, said: Said) -> None:
        registers = {type(part).__name__: part for part in item.parts}
        table = NAMES.get(said.name, {})
        for name, value, fields in said.items:
            if name in registers:
                self.register(registers[name], value, fields)
                continue
            if name in table and name not in WORDS:
                self.equal(said.name, name, self.ours(item.packet, table[name]), str(value))
            elif name not in WORDS:
                self.unnamed(said.name, name)
            for key, text in fields.items():
                mapped = table.get(key, key.lower())
                if isinstance(mapped, tuple) or mapped in type(item.packet).fields:
                    self.equal(said.name, key, self.ours(item.packet, mapped), text)
                else:
                    self.only_mesa.add(f"{said.name}.{key}")

    def register(self, ours: Register, value: int, fields: dict[str, str]) -> None:
        """A register that both name: its word, as far as it has fields, and the fields that both name."""
        kind = type(ours)
        known = 0
        for each in kind.fields.values():
            known |= each.mask
        self.equal(kind.__name__, "word", int.from_bytes(bytes(ours), "little"), str(value & known))
        for key, text in fields.items():
            if key in kind.fields:
                self.equal(kind.__name__, key, getattr(ours, key), text)
            else:
                self.only_mesa.add(f"{kind.__name__}.{key}")

    def unnamed(self, packet: str, name: str) -> None:
        """A register that Mesa names or, by its address alone, does not."""
        if not name.startswith("0x"):
            self.only_mesa.add(f"{packet}: {name}")
        elif self.file.at_offset(int(name, 16) // 4) is not None:
            self.only_tiny.add(self.file.at_offset(int(name, 16) // 4).__name__)

    @staticmethod
    def ours(packet: Packet, mapped: str | tuple[str, str]) -> int:
        if isinstance(mapped, tuple):
            value = int(getattr(packet, mapped[0]))
            return value & 0xffffffff if mapped[1] == LOW else value >> 32
        value = getattr(packet, mapped)
        return len(value) if isinstance(value, tuple) else int(value)
