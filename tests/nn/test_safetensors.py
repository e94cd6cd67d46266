"""Safetensors files against the reference package, in both directions; and damaged ones."""
import json

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load_file, save_file

from tests.nn.filled import filled
from tiny import Tensor, dtypes
from tiny.frontend.safetensors import DTYPES
from tiny.nn.state import FormatError, safe_load, safe_load_metadata, safe_save

NUMPY = {"bfloat16": ml_dtypes.bfloat16, "fp8e4m3": ml_dtypes.float8_e4m3fn, "fp8e5m2": ml_dtypes.float8_e5m2}


def arrays() -> dict[str, np.ndarray]:
    kinds = {dtype.name: NUMPY.get(dtype.name, dtype.name) for dtype in DTYPES.values()}
    found = {name: (filled(3, 2) * 100).astype(kind) for name, kind in kinds.items()}
    return found | {"scalar": np.array(2.5, np.float32), "empty": np.zeros((0, 3), np.float32)}


def test_files_of_the_reference_are_read(tmp_path):
    save_file(arrays(), tmp_path / "all.safetensors", metadata={"format": "pt"})
    loaded = safe_load(tmp_path / "all.safetensors")
    assert set(loaded) == set(arrays())
    for name, array in arrays().items():
        assert loaded[name].shape == array.shape
        np.testing.assert_array_equal(loaded[name].numpy().astype(np.float64), array.astype(np.float64), name)
    assert loaded["bfloat16"].dtype is dtypes.bfloat16


def test_the_reference_reads_what_is_saved(tmp_path):
    path = tmp_path / "mine.safetensors"
    save_file(arrays(), tmp_path / "all.safetensors")
    safe_save(safe_load(tmp_path / "all.safetensors"), path)
    without_fp8 = {name: array for name, array in arrays().items() if not name.startswith("fp8")}
    safe_save({name: safe_load(path)[name] for name in without_fp8}, path, metadata={"author": "me"})
    back = load_file(path)                                  # which has no fp8
    for name, array in without_fp8.items():
        np.testing.assert_array_equal(back[name].reshape(-1).view(np.uint8), array.reshape(-1).view(np.uint8))
    assert safe_load_metadata(path)[2]["__metadata__"] == {"author": "me"}


def test_bfloat16_from_a_list_goes_in_and_out(tmp_path):
    safe_save({"x": Tensor([1.5, -2.0], dtype=dtypes.bfloat16)}, tmp_path / "x.safetensors")
    assert safe_load(tmp_path / "x.safetensors")["x"].tolist() == [1.5, -2.0]


INTEGERS = st.lists(st.integers(-2**31, 2**31 - 1), max_size=6)


@given(st.dictionaries(st.text(min_size=1, max_size=8), INTEGERS, max_size=4))
def test_any_names_and_lengths_round_trip(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("round") / "trip.safetensors"
    content.pop("__metadata__", None)
    safe_save({name: Tensor(np.array(values, np.int32)) for name, values in content.items()}, path)
    assert {name: tensor.tolist() for name, tensor in safe_load(path).items()} == content


def test_lazy_tensors_and_views_are_saved_as_their_values(tmp_path):
    x = Tensor(filled(4, 3))
    safe_save({"sum": x.sum(0), "turned": x.transpose(), "part": x[1:3, 1]}, tmp_path / "x.safetensors")
    loaded = safe_load(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(loaded["turned"].numpy(), filled(4, 3).T)
    np.testing.assert_array_equal(loaded["part"].numpy(), filled(4, 3)[1:3, 1])


def test_a_file_can_be_saved_over_itself_and_written_tensors_leave_it_alone(tmp_path):
    path = tmp_path / "x.safetensors"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([3.0])}, path)
    before = path.read_bytes()
    loaded = safe_load(path)
    loaded["a"].assign(Tensor([5.0, 6.0])).realize()
    assert loaded["a"].tolist() == [5, 6]
    assert path.read_bytes() == before
    safe_save(loaded, path)
    assert {name: tensor.tolist() for name, tensor in safe_load(path).items()} == {"a": [5, 6], "b": [3]}
    assert list(tmp_path.iterdir()) == [path]


def test_a_model_in_several_files(tmp_path):
    safe_save({"a": Tensor([1.0])}, tmp_path / "model-00001-of-00002.safetensors")
    safe_save({"b": Tensor([2.0])}, tmp_path / "model-00002-of-00002.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    names = {name: f"model-0000{number}-of-00002.safetensors" for number, name in ((1, "a"), (2, "b"))}
    assert set(safe_load(tmp_path)) == {"a", "b"}
    index.write_text(json.dumps({"weight_map": names}))
    for place in (tmp_path, index):
        assert {name: tensor.item() for name, tensor in safe_load(place).items()} == {"a": 1, "b": 2}
    (tmp_path / names["b"]).unlink()
    with pytest.raises(FileNotFoundError, match="model-00002-of-00002.safetensors: named in model.safeten"):
        safe_load(tmp_path)
    index.write_text("{}")
    with pytest.raises(FormatError, match="no weight_map"):
        safe_load(index)
    (tmp_path / "none").mkdir()
    with pytest.raises(FileNotFoundError, match=r"no \.safetensors in this folder"):
        safe_load(tmp_path / "none")


def file_of(header, data: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def entry(dtype: str, shape: list, offsets: list) -> dict:
    return {"w": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}


WRONG = {
    b"": "the length of the header needs bytes 0 to 8, the file has 0",
    b"short": "the length of the header",
    b"\xff" * 20: "states a header of 18446744073709551615 bytes",
    file_of(b"{not json"): "the header is no JSON",
    file_of([1, 2]): "no JSON object",
    file_of(entry("F32", [2], [0, 8]), b"1234"): "tensor w needs bytes .*cut short",
    file_of(entry("F32", [3], [0, 8]), b"12345678"): r"w: 8 bytes for F32 \(3,\)",
    file_of(entry("F4", [2], [0, 1]), b"1"): "w has element type F4; read are BOOL",
    file_of({"w": {"dtype": "F32"}}): "w: its header entry is",
    file_of(entry("F32", [-1], [4, 0]), b"1234"): "w: its header entry is",
}


@pytest.mark.parametrize("content", WRONG, ids=lambda content: content[:60].hex())
def test_wrong_files_are_one_clear_error(tmp_path, content):
    path = tmp_path / "wrong.safetensors"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=WRONG[content]) as caught:
        safe_load(path)
    assert str(path) in str(caught.value)


def test_metadata_must_be_strings(tmp_path):
    with pytest.raises(TypeError, match="must map strings to strings"):
        safe_save({}, tmp_path / "x.safetensors", metadata={"epoch": 3})
