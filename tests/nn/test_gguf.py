"""GGUF files against the reference package: headers, block types bit for bit, and damaged files."""
import struct
from pathlib import Path

import gguf
import numpy as np
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from tests.nn.filled import filled
from tiny import Tensor, dtypes
from tiny.frontend.gguf import BLOCK_TYPES
from tiny.frontend.quantised import DEQUANTISE
from tiny.ir import ops
from tiny.ir.node import toposort
from tiny.nn.state import FormatError, gguf_load


def test_the_table_of_block_types_is_the_references():
    reference = {kind.value: (kind.name, *GGML_QUANT_SIZES[kind]) for kind in GGMLQuantizationType}
    assert {number: row for number, row in BLOCK_TYPES.items() if number in reference} == \
        {number: row for number, row in reference.items() if number in BLOCK_TYPES}


@pytest.mark.parametrize("name", DEQUANTISE)
def test_blocks_equal_the_reference_bit_for_bit(name):
    kind = GGMLQuantizationType[name]
    size = GGML_QUANT_SIZES[kind][1]
    blocks = np.random.default_rng(len(name)).integers(0, 256, (40, size), dtype=np.uint8)
    with np.errstate(all="ignore"):
        expected = gguf.quants.dequantize(blocks, kind)
    found = DEQUANTISE[name](Tensor(blocks)).numpy()
    assert found.dtype == np.float32
    finite = ~np.isnan(expected)
    np.testing.assert_array_equal(np.isnan(found), ~finite)
    np.testing.assert_array_equal(found[finite].view(np.uint32), expected[finite].view(np.uint32))


QUANTISED = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0"]         # those that the reference can also make


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A file with values of each kind of metadata and tensors of several types."""
    path = tmp_path_factory.mktemp("gguf") / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_uint32("a.number", 7)
    writer.add_int64("a.negative", -5)
    writer.add_float32("a.fraction", 0.25)
    writer.add_bool("a.truth", True)
    writer.add_string("a.text", "grüße")
    writer.add_array("a.texts", ["one", "", "drei"])
    writer.add_array("a.numbers", [1, 2, 3])
    writer.add_tensor("plain", filled(3, 4))
    writer.add_tensor("half", filled(5).astype(np.float16))
    writer.add_tensor("integers", np.arange(6, dtype=np.int32).reshape(1, 2, 3))
    for name in QUANTISED:
        kind = GGMLQuantizationType[name]
        writer.add_tensor(name, gguf.quants.quantize(filled(4, 64), kind), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_metadata(written):
    metadata, _ = gguf_load(written)
    expected = {"general.architecture": "llama", "a.number": 7, "a.negative": -5, "a.fraction": 0.25,
                "a.truth": True, "a.text": "grüße", "a.texts": ["one", "", "drei"], "a.numbers": [1, 2, 3]}
    assert {key: metadata[key] for key in expected} == expected


def test_tensors(written):
    _, tensors = gguf_load(written)
    np.testing.assert_array_equal(tensors["plain"].numpy(), filled(3, 4))
    np.testing.assert_array_equal(tensors["half"].numpy(), filled(5).astype(np.float16))
    assert tensors["half"].dtype is dtypes.float16
    assert tensors["integers"].tolist() == [[[0, 1, 2], [3, 4, 5]]]
    for name in QUANTISED:
        assert (tensors[name].shape, tensors[name].dtype) == ((4, 64), dtypes.float32)
        expected = gguf.quants.dequantize(gguf.quants.quantize(filled(4, 64), GGMLQuantizationType[name]),
                                          GGMLQuantizationType[name])
        np.testing.assert_array_equal(tensors[name].numpy(), expected)


def test_quantised_tensors_stay_file_bytes(written):
    """Nothing but the file's bytes is in memory, and nothing of the graph has to be held in memory."""
    weight = gguf_load(written)[1]["Q4_1"]
    nodes = toposort(weight.node)
    buffers = [node for node in nodes if node.op is ops.BUFFER]
    assert [(node.dtype, node.shape) for node in buffers] == [(dtypes.uint8, (8, 20))]
    assert not {node.op for node in nodes} & {ops.CONTIGUOUS, ops.REDUCE, ops.SCATTER, ops.GATHER}


def patched(path: Path, old: bytes, new: bytes) -> bytes:
    content = path.read_bytes()
    assert content.count(old) == 1
    return content.replace(old, new)


def test_an_unsupported_block_type_is_named_with_the_supported_ones(written, tmp_path):
    """The error names the tensor and the type, not a bare number."""
    entry = struct.pack("<Q", 4) + b"Q4_1" + struct.pack("<IQQ", 2, 64, 4)
    for number, name in ((16, "IQ2_XXS"), (99, "type 99")):
        path = tmp_path / "other.gguf"
        path.write_bytes(patched(written, entry + struct.pack("<I", 3), entry + struct.pack("<I", number)))
        with pytest.raises(FormatError, match=rf"tensor Q4_1 \({name}\): .* supported are F32, F16, .*Q4_K"):
            gguf_load(path)


def test_rows_must_be_whole_blocks(written, tmp_path):
    entry = struct.pack("<Q", 4) + b"Q4_1"
    path = tmp_path / "odd.gguf"
    sizes = [entry + struct.pack("<IQQ", 2, width, 4) for width in (64, 63)]
    path.write_bytes(patched(written, *sizes))
    with pytest.raises(FormatError, match=r"Q4_1 \(Q4_1\): rows of .*63.* are no whole blocks of 32"):
        gguf_load(path)


def test_wrong_files_are_one_clear_error(written, tmp_path):
    content = written.read_bytes()
    cases = {
        b"": "starts with b'', not b'GGUF'",
        b"PK\x03\x04 a zip": "starts with .* not b'GGUF'",
        content[:4] + struct.pack("<I", 1) + content[8:]: "is GGUF version 1; versions 2 and 3 are read",
        content[:4] + struct.pack(">I", 3) + content[8:]: "is a big-endian GGUF",
        content[:8] + struct.pack("<Q", 2**60) + content[16:]: "the header does not end within the file",
        content[:-100]: "cut short or damaged, fetch it again",
        patched(written, struct.pack("<I", 6) + struct.pack("<f", 0.25), struct.pack("<If", 77, 0.25)):
            "metadata a.fraction has value type 77",
    }
    for wrong, message in cases.items():
        path = tmp_path / "wrong.gguf"
        path.write_bytes(wrong)
        with pytest.raises(FormatError, match=message) as caught:
            gguf_load(path)
        assert str(path) in str(caught.value)


def test_every_truncation_is_a_clear_error(written, tmp_path):
    content, path = written.read_bytes(), tmp_path / "cut.gguf"
    for end in range(0, len(content) - 40, 97):
        path.write_bytes(content[:end])
        with pytest.raises(FormatError, match="cut.gguf"):
            gguf_load(path)


def test_a_model_in_parts(tmp_path):
    names = [f"model-0000{number}-of-00002.gguf" for number in (1, 2)]
    for number, name in enumerate(names):
        writer = gguf.GGUFWriter(tmp_path / name, "llama")
        writer.add_uint16("split.count", 2)
        writer.add_tensor(f"part{number}", filled(2, phase=number))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
    assert set(gguf_load(tmp_path / names[0])[1]) == {"part0", "part1"}
    with pytest.raises(FormatError, match="is one part of 2; name the first"):
        gguf_load(tmp_path / names[1])
