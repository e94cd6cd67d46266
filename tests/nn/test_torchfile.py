"""Files of torch.save, both containers; and that none of them can run code. The files: see torch_files.py."""
import io
import os
import pickle
import zipfile
from pathlib import Path

import pytest

from tiny import dtypes
from tiny.frontend.torchfile import LEGACY_MAGIC, Unknown
from tiny.nn.state import FormatError, torch_load

FOLDER = Path(__file__).with_name("data")
FILES = [FOLDER / "torch_zip.pt", FOLDER / "torch_legacy.pt"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_everything_in_a_file(path):
    found = torch_load(path)
    model = found["model"]
    whole = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    assert model["whole"].tolist() == whole
    assert model["turned"].tolist() == [list(column) for column in zip(*whole, strict=True)]
    assert model["part"].tolist() == [6, 10]
    assert model["one"].item() == 7
    assert [tensor.dtype for tensor in found["types"]] == [dtypes.float16, dtypes.bfloat16, dtypes.float64]
    assert [tensor.tolist() for tensor in found["types"]] == [[1.5, -2.0]] * 3
    assert [tensor.tolist() for tensor in found["small"]] == [[True, False], [1, 255]]
    assert found["parameter"].tolist() == [1, 1]
    assert found["epoch"] == 3


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_other_classes_become_placeholders(path):
    options = torch_load(path)["options"]
    assert isinstance(options, Unknown)
    assert repr(options) == "<argparse.Namespace, not loaded>"
    assert options.state == {"rate": 0.5}


class _Evil:
    """What pickles as a call of os.mkdir."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_file_cannot_run_code(tmp_path):
    target = tmp_path / "made by the file"
    with zipfile.ZipFile(tmp_path / "evil.pt", "w") as archive:
        archive.writestr("evil/data.pkl", pickle.dumps({"weight": _Evil(target)}))
    found = torch_load(tmp_path / "evil.pt")
    assert isinstance(found["weight"], Unknown)
    assert not target.exists()


def legacy(*values) -> bytes:
    stream = io.BytesIO()
    for value in values:
        pickle.dump(value, stream, protocol=2)
    return stream.getvalue()


def with_zip(path: Path, **entries: bytes) -> bytes:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            archive.writestr(f"x/{name}", content)
    return path.read_bytes()


def test_wrong_files_are_one_clear_error(tmp_path):
    path = tmp_path / "some.pt"
    cases = {
        b"": "is no file of torch.save",
        b"hello, this is text": "is no file of torch.save",
        legacy(1, 2, 3): "does not start as torch.save's files do",
        legacy(LEGACY_MAGIC, 1002, {}): "has protocol 1002",
        FILES[1].read_bytes()[:-30]: "cut short or damaged",
        FILES[1].read_bytes()[:600]: "is no file of torch.save, or damaged",
        with_zip(path, other=b"1"): "is a zip without data.pkl",
        with_zip(path, **{"data.pkl": pickle.dumps({}), "byteorder": b"big"}): "holds big-endian numbers",
        with_zip(path, **{"data.pkl": FILES[1].read_bytes()}): None,
    }
    for content, message in cases.items():
        path.write_bytes(content)
        if message is None:
            assert torch_load(path) == LEGACY_MAGIC         # a zip whose pickle is a number: odd, but whole
            continue
        with pytest.raises(FormatError, match=message) as caught:
            torch_load(path)
        assert str(path) in str(caught.value)
    with pytest.raises(FileNotFoundError):
        torch_load(tmp_path / "absent.pt")
