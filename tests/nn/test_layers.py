"""Layers against PyTorch's results and gradients, and against each other where PyTorch has none."""
import numpy as np
import pytest

from tests.nn.common import TORCH, check_with_gradient, close, load
from tests.nn.filled import filled
from tiny import Context, Tensor, nn
from tiny.nn.state import get_state_dict

LAYERS = {
    "linear": (lambda: nn.Linear(4, 3), (2, 4)),
    "conv1d": (lambda: nn.Conv1d(2, 4, 3, stride=2, padding=1, groups=2), (2, 2, 7)),
    "conv2d": (lambda: nn.Conv2d(2, 3, 3, padding=1), (1, 2, 4, 5)),
    "conv2d same": (lambda: nn.Conv2d(2, 2, (2, 3), padding="same", dilation=(1, 2)), (1, 2, 4, 5)),
    "conv3d": (lambda: nn.Conv3d(1, 2, 2, dilation=2), (1, 1, 4, 3, 4)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 2, 3, 2, padding=1, output_padding=1, groups=2),
                   (1, 2, 3, 2)),
    "group norm": (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
    "instance norm": (lambda: nn.InstanceNorm(2), (2, 2, 3, 2)),
    "layer norm": (lambda: nn.LayerNorm((3, 2)), (2, 3, 2)),
    "rms norm": (lambda: nn.RMSNorm(4, eps=1e-6), (3, 4)),
    "batch norm at rest": (lambda: nn.BatchNorm2d(3), (2, 3, 2, 2)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer_equals_torch(name):
    make, shape = LAYERS[name]
    layer = make()
    load(layer)
    check_with_gradient(TORCH["layers"][name], layer, filled(*shape))


def test_batch_norm_in_training_equals_torch():
    layer = nn.BatchNorm(3)
    load(layer)
    expected = TORCH["layers"]["batch norm"]
    with Context(TRAINING=1):
        check_with_gradient(expected, layer, filled(2, 3, 2, 2))
    close(layer.running_mean, expected["mean"])
    close(layer.running_var, expected["var"])
    assert layer.num_batches_tracked.item() == 1


def test_lstm_cell_equals_torch():
    cell = nn.LSTMCell(3, 2)
    load(cell)
    check_with_gradient(TORCH["layers"]["lstm cell"], lambda x, h, c: Tensor.cat(*cell(x, (h, c))),
                        filled(2, 3), filled(2, 2, phase=1), filled(2, 2, phase=2))


def test_lstm_cell_starts_from_zeros():
    cell, x = nn.LSTMCell(3, 2), Tensor(filled(2, 3))
    zeros = Tensor.zeros(2, 2)
    for mine, given in zip(cell(x), cell(x, (zeros, zeros)), strict=True):
        np.testing.assert_array_equal(mine.numpy(), given.numpy())


def test_multihead_attention_equals_torch():
    heads = nn.MultiheadAttention(4, 2)
    load(heads)
    check_with_gradient(TORCH["layers"]["heads"], heads, filled(1, 3, 4), filled(1, 5, 4, phase=1))


def test_names_of_weights_are_torchs():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.LSTMCell(2, 2),
                          nn.MultiheadAttention(4, 2))
    assert list(get_state_dict(model)) == [
        "0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var",
        "1.num_batches_tracked", "2.weight_ih", "2.weight_hh", "2.bias_ih", "2.bias_hh", "3.in_proj_weight",
        "3.in_proj_bias", "3.out_proj.weight", "3.out_proj.bias"]


def test_embedding_takes_rows_and_collects_gradients():
    table = nn.Embedding(num_embeddings=4, embedding_dim=2)
    idx = Tensor([[1, 3], [1, 0]])
    assert table(idx).shape == (2, 2, 2)
    np.testing.assert_array_equal(table(idx).numpy(), table.weight.numpy()[idx.numpy()])
    slope, = table(idx).sum().gradient(table.weight)
    assert slope.tolist() == [[1, 1], [2, 2], [0, 0], [1, 1]]


def test_layer_norm_2d_normalises_channels():
    x = Tensor(filled(2, 3, 2, 2))
    expected = nn.LayerNorm(3)(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    np.testing.assert_allclose(nn.LayerNorm2d(3)(x).numpy(), expected.numpy())


def test_dropout_and_batch_norm_follow_the_training_switch():
    """Each spelling of training mode works: the setting, the context, the assignment."""
    x = Tensor.ones(1000)
    assert nn.Dropout(0.5)(x) is x
    with Context(TRAINING=1):
        assert 350 < (nn.Dropout(0.5)(x).numpy() == 0).sum() < 650
        assert Tensor.training
    with Tensor.train():
        assert Tensor.training
        with Tensor.train(False):
            assert nn.Dropout(0.5)(x) is x
    with Context():
        Tensor.training = True
        assert Tensor.training
        assert set(nn.Dropout(0.75)(x).numpy().tolist()) == {0.0, 4.0}
    assert not Tensor.training


def test_linear_starts_within_the_usual_bounds():
    layer = nn.Linear(100, 50)
    values = np.concatenate([layer.weight.numpy().reshape(-1), layer.bias.numpy()])
    assert -0.1 <= values.min() < -0.099
    assert 0.099 < values.max() <= 0.1
    assert layer.weight.requires_grad


@pytest.mark.parametrize(("make", "message"), [
    (lambda: nn.Conv2d(3, 4, 3, groups=2), "3 input and 4 output channels are not both multiples of"),
    (lambda: nn.GroupNorm(3, 4), "4 channels do not make 3 equal groups"),
    (lambda: nn.MultiheadAttention(5, 2), "5 features do not make 2 equal heads"),
    (lambda: nn.LayerNorm(4)(Tensor.ones(2, 3)), r"the shape \(2, 3\) does not end in \(4,\)"),
])
def test_errors_name_the_sizes(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_layers_without_inputs():
    """The bias alone, as in torch."""
    layer = nn.Linear(0, 2)
    np.testing.assert_array_equal(layer(Tensor.zeros(3, 0)).numpy(), np.tile(layer.bias.numpy(), (3, 1)))
