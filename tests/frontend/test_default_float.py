"""DEFAULT_FLOAT and `dtypes.default_float`: the type of floating tensors that are made without one."""
import numpy as np
import pytest

from tiny import Context, Tensor, TinyJit, dtypes
from tiny.config import ConfigError


def test_the_default_float_is_a_setting():
    with Context(DEFAULT_FLOAT="half"):
        assert Tensor([1.5]).dtype is Tensor.zeros(2).dtype is (Tensor([1]) * 1.5).dtype is dtypes.float16
        assert Tensor([1, 2]).mean().dtype is dtypes.default_float is dtypes.half
        assert Tensor(np.ones(2, np.float32)).dtype is dtypes.float32      # numpy's types stay
    with Context(DEFAULT_FLOAT=dtypes.bfloat16):
        assert Tensor(1.0).dtype is dtypes.bfloat16
    with Context():
        dtypes.default_float = dtypes.float64                               # until the Context ends
        assert Tensor([1.5]).dtype is dtypes.float64
    assert Tensor([1.5]).dtype is dtypes.default_float is dtypes.float32
    with Context(DEFAULT_FLOAT="int8"), pytest.raises(ConfigError, match="DEFAULT_FLOAT=int8.*float16"):
        Tensor([1.5])


def test_a_captured_function_sees_the_default_float_of_each_call():
    function = TinyJit(lambda x: (x * 1.5).realize())
    x = Tensor([1, 2]).realize()
    for _ in range(3):
        for name in ("float32", "float16"):
            with Context(DEFAULT_FLOAT=name):
                assert function(x).dtype.name == name
