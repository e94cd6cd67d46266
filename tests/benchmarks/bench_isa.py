"""How fast the emulated Radeon executes: lane-instructions a second, the first call, the interpreter.

One lane-instruction is one vector instruction for one lane. The goal is a thousand million in one thread.
"""

import time

import numpy as np
import pytest

from tests.benchmarks.report import report
from tests.emulator.amd.isa import compiled
from tiny.emulator.amd.isa import code_object, interpreter, run
from tiny.emulator.amd.isa.memory import HostMemory
from tiny.emulator.amd.isa.state import ENDED, Dispatch, Group
from tiny.toolchain import Source, compile_objects, find_compiler

SOURCE = """
typedef float f4 __attribute__((ext_vector_type(4)));
#define KERNEL(name) __attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(1, 64))) void name
KERNEL(matmul)(float *restrict o, const float *restrict a, const float *restrict b) {
  int group = __builtin_amdgcn_workgroup_id_x(), lane = __builtin_amdgcn_workitem_id_x();
  int row = group / 4 * 16 + lane / 16 * 4, column = group % 4 * 64 + lane % 16 * 4;
  f4 sums[4] = {0};
  for (int k = 0; k < 256; k += 4) {
    f4 left[4];
    for (int i = 0; i < 4; i++) left[i] = *(f4 *)(a + (row + i) * 256 + k);
    for (int j = 0; j < 4; j++) {
      f4 right = *(f4 *)(b + (k + j) * 256 + column);
      for (int i = 0; i < 4; i++) sums[i] += left[i][j] * right;
    }
  }
  for (int i = 0; i < 4; i++) *(f4 *)(o + (row + i) * 256 + column) = sums[i];
}
KERNEL(add)(float *restrict o, const float *restrict a, const float *restrict b) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  o[i] = a[i] + b[i];
}
"""


@pytest.fixture(scope="module")
def image() -> code_object.Image:
    flags = [*compiled.KERNEL_FLAGS, "-mcpu=gfx1100", "-O3", "-ffp-contract=fast"]
    cache = compiled.cache()
    data = compile_objects([Source("bench", SOURCE)], find_compiler("", cache), flags, cache)[0]
    return code_object.load(data, compiled.ADDRESS)


class Work:
    """A kernel with its memory, and how many lane-instructions it is."""

    def __init__(self, image: code_object.Image, name: str, count: int, groups: int):
        rng = np.random.default_rng(0)
        self.buffers = [rng.normal(size=count).astype(np.float32) for _ in range(3)]
        self.arguments = np.array([each.ctypes.data for each in self.buffers], dtype=np.uint64)
        memory = HostMemory()
        for each in (*self.buffers, self.arguments):
            memory.map(each.ctypes.data, each.nbytes, each.ctypes.data)
        user_data = image.user_data(name, self.arguments.ctypes.data)
        self.dispatch = Dispatch(image.kernel(name), memory, user_data, (groups, 1, 1), (64, 1, 1))
        self.lane_instructions = self._of_one_group() * groups

    def _of_one_group(self) -> int:
        group = Group(self.dispatch, (0, 0, 0))
        stepper, count = interpreter.Interpreter(group), 0
        for wave in group.waves:
            while wave.state != ENDED:
                instruction = self.dispatch.kernel.at(wave.pc)
                stepper.step(wave)
                halves = 1 + (instruction.second is not None)
                count += wave.lanes * halves * instruction.name.startswith(("v_", "global_"))
        return count


def test_matmul_256(benchmark, image):
    work = Work(image, "matmul", 65536, 64)
    began = time.perf_counter()
    run.run(work.dispatch)
    report("emulated matmul 256^3: first call", 1e3 * (time.perf_counter() - began), "ms", 2900)
    best = min(_timed(work, benchmark))
    report("emulated matmul 256^3: repeat, 1 thread", 1e3 * best, "ms", 36)
    report("emulated matmul 256^3: lane-instructions", work.lane_instructions / best / 1e9, "G/s")


def test_add_1m(benchmark, image):
    work = Work(image, "add", 1 << 20, 16384)
    run.run(work.dispatch)
    best = min(_timed(work, benchmark))
    report("emulated add of 1M floats: repeat, 1 thread", 1e3 * best, "ms", 32)
    report("emulated add of 1M floats: lane-instructions", work.lane_instructions / best / 1e9, "G/s")


def test_interpreter(image):
    work = Work(image, "add", 1 << 10, 16)
    began = time.perf_counter()
    interpreter.run(work.dispatch)
    report(
        "interpreter: lane-instructions", work.lane_instructions / (time.perf_counter() - began) / 1e6, "M/s"
    )


def _timed(work: Work, benchmark) -> list[float]:
    times = []

    def once():
        began = time.perf_counter()
        run.run(work.dispatch)
        times.append(time.perf_counter() - began)

    benchmark.pedantic(once, rounds=7)
    return times
