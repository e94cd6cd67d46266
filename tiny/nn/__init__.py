"""Layers, optimisers, model files and data sets: `nn.Linear`,
`nn.optim.Adam`, `nn.state.safe_load`, `nn.datasets`.
"""
import sys

from tiny.frontend import hints
from tiny.frontend.nn import (
    BatchNorm,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Dropout,
    Embedding,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    LayerNorm2d,
    Linear,
    LSTMCell,
    ModuleList,
    MultiheadAttention,
    RMSNorm,
    Sequential,
)
from tiny.nn import datasets, optim, state

__all__ = [
    "BatchNorm", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "Dropout", "Embedding", "GroupNorm", "InstanceNorm", "LSTMCell",
    "LayerNorm", "LayerNorm2d", "Linear", "ModuleList", "MultiheadAttention", "RMSNorm", "Sequential",
    "datasets", "optim", "state",
]


def __getattr__(name: str):
    raise hints.missing("module 'tiny.nn'", name, hints.NN, sys.modules[__name__])
