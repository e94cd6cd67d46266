"""State dicts: what is found in a model, what is loaded into one, and the warnings about what is missed."""
import collections
import functools
import io
import tarfile
import warnings
import zipfile

import numpy as np
import pytest

from tests.nn.filled import filled
from tiny import Tensor, TinyJit, dtypes, nn
from tiny.nn.optim import SGD
from tiny.nn.state import (
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_save,
    tar_extract,
    zip_extract,
)

Pair = collections.namedtuple("Pair", "left right")


class Model:
    """Tensors in every kind of container, one of them twice, and a cycle."""

    def __init__(self):
        self.layers = [nn.Linear(2, 3, bias=False), (Tensor([1.0]), {"inner": Tensor([2.0])})]
        self.pair = Pair(Tensor([3.0]), "text")
        self.tied = self.layers[0].weight
        self.sequence = nn.Sequential(nn.Linear(1, 1, bias=False))
        self.parent = self
        self.name, self.size, self.nothing = "model", 3, None


def test_names_follow_attributes_and_containers():
    assert list(get_state_dict(Model())) == [
        "layers.0.weight", "layers.1.0", "layers.1.1.inner", "pair.left", "tied", "sequence.0.weight"]
    assert list(get_state_dict(Model(), "net.")) == [f"net.{name}" for name in get_state_dict(Model())]
    assert len(get_parameters(Model())) == 6


def test_layers_only_a_closure_knows_give_a_warning():
    class Hidden:
        def __init__(self):
            layers = [nn.Linear(4, 8)]
            self.main = lambda x: x.sequential(layers)

    with pytest.warns(UserWarning, match=r"main holds 2 tensors, left out here: .*0\.weight, .*0\.bias"):
        assert get_state_dict(Hidden()) == {}


@pytest.mark.parametrize("hide", [
    lambda layer: functools.partial(Tensor.sequential, layers=[layer]),
    lambda layer: (lambda x, layer=layer: layer(x)),
    lambda layer: layer.__call__,
    lambda layer: TinyJit(lambda x: layer(x)),
], ids=["partial", "default", "method", "jit"])
def test_other_functions_that_hide_tensors_give_a_warning(hide):
    holder = Pair(Tensor([1.0]), hide(nn.Linear(1, 1)))
    with pytest.warns(UserWarning, match="the function right holds 2 tensors"):
        assert list(get_state_dict(holder)) == ["left"]


def test_functions_over_known_tensors_give_none():
    class Known:
        def __init__(self):
            self.layer = nn.Linear(1, 1)
            self.forward = TinyJit(lambda x: self.layer(x))
            self.step = self.layer.__call__

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert list(get_state_dict(Known())) == ["layer.weight", "layer.bias"]


def test_loading_takes_the_models_type_and_leaves_the_given_tensors_alone(tmp_path):
    source = {"weight": Tensor(filled(3, 2).astype(np.float64)), "bias": Tensor(filled(3))}
    safe_save(source, tmp_path / "x.safetensors")
    given, layer = safe_load(tmp_path / "x.safetensors"), nn.Linear(2, 3)
    loaded = load_state_dict(layer, given)
    assert loaded == [layer.weight, layer.bias]
    assert layer.weight.dtype is dtypes.float32
    np.testing.assert_array_equal(layer.weight.numpy(), filled(3, 2))
    optimiser = SGD(get_parameters(layer), lr=1.0)
    for _ in range(3):
        optimiser.zero_grad()
        layer(Tensor.ones(1, 2)).sum().backward()
        optimiser.step()
    np.testing.assert_allclose(layer.bias.numpy(), filled(3) - 3, rtol=1e-6)
    np.testing.assert_array_equal(given["bias"].numpy(), filled(3))


def test_loading_names_what_does_not_fit():
    layer, weight = nn.Linear(2, 3), Tensor(filled(3, 2))
    with pytest.raises(KeyError, match=r"1 of the model's 2 tensors are not given: bias"):
        load_state_dict(layer, {"weight": weight})
    load_state_dict(layer, {"weight": weight}, strict=False)
    with pytest.raises(ValueError, match=r"bias has shape \(4,\), the model's has \(3,\)"):
        load_state_dict(layer, {"weight": weight, "bias": Tensor.zeros(4)})
    extra = {"weight": weight, "bias": Tensor.zeros(3), "other": Tensor.zeros(1)}
    with pytest.warns(UserWarning, match="no place for 1 of the values given: other"):
        load_state_dict(layer, extra)
    load_state_dict(layer, extra, verbose=False, consume=True)
    assert list(extra) == ["other"]


def test_archives(tmp_path):
    zipped, tarred = tmp_path / "a.zip", tmp_path / "a.tar.gz"
    with zipfile.ZipFile(zipped, "w") as archive:
        archive.writestr("folder/file", b"\x01\x02")
    with tarfile.open(tarred, "w:gz") as archive:
        entry = tarfile.TarInfo("folder/file")
        entry.size = 2
        archive.addfile(entry, io.BytesIO(b"\x01\x02"))
    for extract, path in ((zip_extract, zipped), (tar_extract, tarred)):
        for source in (path, str(path), Tensor(path)):
            found = extract(source)
            assert {name: tensor.tolist() for name, tensor in found.items()} == {"folder/file": [1, 2]}
