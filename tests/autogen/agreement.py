"""Does a generated module say what libclang, and a C compiler, say of the same headers? Used by the tests
beside it.
"""
import importlib
import subprocess
from pathlib import Path

from tests.tools import tool
from tiny.autogen.generator import emit
from tiny.autogen.generator.build import Built
from tiny.autogen.generator.manifest import HeaderSet


def module_of(wanted: HeaderSet):
    return importlib.import_module(f"tiny.autogen.{wanted.module}")


def layouts(wanted: HeaderSet, built: Built) -> list[str]:
    """Where the committed module's cffi layouts differ from libclang's, over every struct and every
    member.
    """
    ffi, wrong = module_of(wanted).ffi if built.records else None, []
    for record in built.records:
        # cffi knows no alignment attribute; placing is the owner's
        if ffi.sizeof(record.name) != record.size:
            wrong.append(f"{record.name}: {ffi.sizeof(record.name)} bytes, libclang {record.size}")
        for path, offset, width, size in record.paths():
            found = emit.member_place(ffi, record.name, path)
            if found[:2] != (offset, width) or (width is None and found[2] != size):
                wrong.append(f"{record.name}.{path}: {found}, libclang {(offset, width, size)}")
    return wrong


def c_program(built: Built) -> tuple[str, list[str]]:
    """A C program that prints sizeof, offsetof and the integer macros, and the lines it should print."""
    lines, expected = [], []
    for record in built.records:
        lines.append(f'  printf("%zu\\n", sizeof({record.name}));')
        expected.append(f"{record.size}")
        for path, offset, width, _ in record.paths():
            if width is None:
                lines.append(f'  printf("%zu\\n", offsetof({record.name}, {path}));')
                expected.append(f"{offset // 8}")
    for name, value in built.constants.items():
        # `1 << 31` is negative to a C compiler
        mask = 0xffffffff if value < 1 << 32 else 0xffffffffffffffff
        lines.append(f'  printf("%llx\\n", (unsigned long long)({name}) & {mask}ull);')
        expected.append(f"{value & mask:x}")
    head = f"{built.source.text}\n#include <stddef.h>\n#include <stdio.h>\nint main(void) {{\n"
    return head + "\n".join(lines) + "\n  return 0;\n}\n", expected


def compiled(built: Built, folder: Path) -> list[str]:
    """Where a C compiler's sizeof, offsetof and macro values differ from the generator's."""
    program, expected = c_program(built)
    (folder / "layout.c").write_text(program)
    compiler = tool("cc", "clang-22", "clang")
    flags = [flag for include in built.source.includes for flag in ("-isystem", include)]
    subprocess.run([compiler, "-w", *flags, "-o", "layout", "layout.c"], cwd=folder, check=True)
    run = subprocess.run([str(folder / "layout")], capture_output=True, text=True, check=True)
    printed = run.stdout.split()
    asked = [line for line in program.splitlines() if "printf" in line]
    assert len(printed) == len(expected)
    return [f"{line.strip()} printed {got}, generated {want}"
            for line, got, want in zip(asked, printed, expected, strict=True) if got != want]
