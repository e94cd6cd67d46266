"""Makes torch_values.json, the values that layers, losses and optimisers are compared with.

Run by hand where PyTorch is installed (the file's are of PyTorch 2.13):

    python -m tests.nn.torch_values > tests/nn/torch_values.json
"""
import json

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from tests.nn.filled import filled, weights

LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), (2, 4)),
    "conv1d": (lambda: nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), (2, 2, 7)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3, padding=1), (1, 2, 4, 5)),
    "conv2d same": (lambda: nn.Conv2d(2, 2, (2, 3), padding="same", dilation=(1, 2)), (1, 2, 4, 5)),
    "conv3d": (lambda: nn.Conv3d(1, 2, 2, dilation=2), (1, 1, 4, 3, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 2, 3, 2, padding=1, output_padding=1, groups=2),
                   (1, 2, 3, 2)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "instance norm": (lambda: nn.InstanceNorm2d(2, affine=True), (2, 2, 3, 2)),
    "layer norm": (lambda: nn.LayerNorm((3, 2)), (2, 3, 2)),
    "rms norm": (lambda: nn.RMSNorm(4, eps=1e-6), (3, 4)),
    "batch norm": (lambda: nn.BatchNorm2d(3), (2, 3, 2, 2)),
    "batch norm at rest": (lambda: nn.BatchNorm2d(3).eval(), (2, 3, 2, 2)),
}


def load(module) -> None:
    """Give a module the values of `filled.weights`."""
    named = {name: tensor for name, tensor in module.state_dict().items() if tensor.is_floating_point()}
    values = {name: torch.tensor(value) for name, value in weights(named).items()}
    module.load_state_dict(values, strict=False)


def numbers(tensor) -> list:
    return np.round(tensor.detach().double().numpy().reshape(-1), 8).tolist()


def with_gradient(function, *arrays) -> dict:
    """The result, and the gradient of its sum times filled numbers by the first array."""
    inputs = [torch.tensor(array) for array in arrays]
    inputs[0].requires_grad_()
    result = function(*inputs)
    (result * torch.tensor(filled(*result.shape, phase=9.0))).sum().backward()
    return {"result": numbers(result), "gradient": numbers(inputs[0].grad)}


def layers() -> dict:
    found = {}
    for name, (make, shape) in LAYERS.items():
        module = make()
        load(module)
        found[name] = with_gradient(module, filled(*shape))
        if name == "batch norm":
            found[name] |= {"mean": numbers(module.running_mean), "var": numbers(module.running_var)}
    cell = nn.LSTMCell(3, 2)
    load(cell)
    found["lstm cell"] = with_gradient(lambda x, h, c: torch.cat(cell(x, (h, c))), filled(2, 3),
                                       filled(2, 2, phase=1), filled(2, 2, phase=2))
    heads = nn.MultiheadAttention(4, 2, batch_first=True)
    load(heads)
    found["heads"] = with_gradient(lambda x, y: heads(x, y, y, need_weights=False)[0], filled(1, 3, 4),
                                   filled(1, 5, 4, phase=1))
    return found


def losses() -> dict:
    classes, rows = torch.tensor([2, 0, -100, 1]), torch.tensor([[0, 1], [2, 1]])
    factors, shares = torch.tensor([0.5, 1.0, 2.0]), torch.tensor(filled(4, 3, phase=3)).softmax(1)
    x, wide, unit = filled(4, 3), filled(2, 3, 2), np.abs(filled(4, 3)) * np.float32(0.9) + np.float32(0.05)
    y = torch.tensor(filled(4, 3, phase=4))
    cases = {
        "cross entropy": (lambda p: F.cross_entropy(p, classes), x),
        "smoothed": (lambda p: F.cross_entropy(p, classes, label_smoothing=0.2), x),
        "smoothed and weighted": (lambda p: F.cross_entropy(p, classes, factors, label_smoothing=0.2), x),
        "of axis 1": (lambda p: F.cross_entropy(p, rows, reduction="none"), wide),
        "of shares": (lambda p: F.cross_entropy(p, shares, label_smoothing=0.1), x),
        "nll": (lambda p: F.nll_loss(p, classes, factors, reduction="sum"), x),
        "binary": (lambda p: F.binary_cross_entropy(p, y.abs()), unit),
        "binary of logits": (lambda p: F.binary_cross_entropy_with_logits(p, y.abs(), pos_weight=factors), x),
        "smooth l1": (lambda p: F.smooth_l1_loss(p, y, beta=0.5), x),
        "mse": (lambda p: F.mse_loss(p, y), x),
        "l1": (lambda p: F.l1_loss(p, y, reduction="sum"), x),
        "kl": (lambda p: F.kl_div(p, shares, reduction="sum"), x),
    }
    return {name: with_gradient(function, array) for name, (function, array) in cases.items()}


def attention() -> dict:
    q, k, v = filled(1, 4, 3, 2), filled(1, 2, 5, 2, phase=1), filled(1, 2, 5, 2, phase=2)
    k4, v4 = k.repeat(2, 1), v.repeat(2, 1)
    mask, added = torch.tensor(filled(3, 5, phase=5)) > -0.3, torch.tensor(filled(3, 5, phase=6))
    attend = F.scaled_dot_product_attention
    return {
        "plain": with_gradient(attend, q, k4, v4),
        "causal": with_gradient(lambda *qkv: attend(*qkv, is_causal=True), q, k4, v4),
        "mask": with_gradient(lambda *qkv: attend(*qkv, attn_mask=mask, scale=0.3), q, k4, v4),
        "added": with_gradient(lambda *qkv: attend(*qkv, attn_mask=added), q, k4, v4),
        "shared heads": with_gradient(lambda *qkv: attend(*qkv, enable_gqa=True), q, k, v),
    }


OPTIMISERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "SGD with momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "SGD with Nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.8, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, 0.05),
    "Adam with decay": lambda p: torch.optim.Adam(p, 0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.2),
    "Muon": lambda p: torch.optim.Muon(p[:1], 0.05, weight_decay=0.1),
}


def optimisers() -> dict:
    """Parameters after six steps on a loss that is no parabola. Muon's matrix products in float32 here too.
    """
    torch.Tensor.bfloat16 = torch.Tensor.float
    found = {}
    for name, make in OPTIMISERS.items():
        params = [torch.tensor(values).requires_grad_() for values in (filled(4, 3), filled(3, phase=1))]
        x, optimiser = torch.tensor(filled(5, 4, phase=2)), make(params)
        for _ in range(6):
            optimiser.zero_grad()
            ((x @ params[0] + params[1]).tanh() - 0.3).square().sum().backward()
            optimiser.step()
        found[name] = numbers(params[0]) + numbers(params[1])
    return found


if __name__ == "__main__":
    torch.manual_seed(0)
    parts = {"layers": layers(), "losses": losses(), "attention": attention(), "optimisers": optimisers()}
    print(json.dumps(parts, indent=0, separators=(",", ":")).replace(",\n", ", "))
