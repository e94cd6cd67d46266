"""Makes the files of torch.save in tests/nn/data. Run by hand where PyTorch is installed (the files: PyTorch
2.13):

    python -m tests.nn.torch_files
"""
import argparse
import collections
from pathlib import Path

import torch

FOLDER = Path(__file__).with_name("data")


def content() -> dict:
    base = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    return {
        "model": collections.OrderedDict(whole=base, turned=base.t(), part=base[1:, 2], one=torch.tensor(7)),
        "types": [torch.tensor([1.5, -2.0], dtype=dtype)
                  for dtype in (torch.float16, torch.bfloat16, torch.float64)],
        "small": (torch.tensor([True, False]), torch.tensor([1, 255], dtype=torch.uint8)),
        "parameter": torch.nn.Parameter(torch.ones(2)),
        "options": argparse.Namespace(rate=0.5),
        "epoch": 3,
    }


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    torch.save(content(), FOLDER / "torch_zip.pt")
    torch.save(content(), FOLDER / "torch_legacy.pt", _use_new_zipfile_serialization=False)
