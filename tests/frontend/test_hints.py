"""Names that PyTorch has and tiny has not: the error says what to write, and that exists."""
import copy
import re

import pytest

import tiny
from tiny import Tensor, dtypes, nn
from tiny.frontend import hints

OWNERS = [(Tensor([1.0]), hints.TENSOR), (tiny.nn.optim and tiny.nn, hints.NN), (tiny, hints.PACKAGE)]


@pytest.mark.parametrize(("owner", "name", "hint"), [
    (owner, name, hint) for owner, table in OWNERS for name, hint in table.items()])
def test_a_name_of_pytorch_leads_to_ours(owner, name, hint):
    with pytest.raises(AttributeError, match=re.escape(f"has no attribute {name!r}; write {hint}")):
        getattr(owner, name)
    for method in re.findall(r"(?:\bx|Tensor|^)\.(\w+)", hint):
        assert hasattr(Tensor, method)
    for path in re.findall(r"\bnn\.([\w.]+)", hint):
        found = nn
        for part in path.split("."):
            found = getattr(found, part)


def test_other_names_are_missing_as_ever():
    x = Tensor([1.0])
    with pytest.raises(AttributeError, match="^'Tensor' object has no attribute 'softmaxx'$") as error:
        x.softmaxx()
    assert error.value.name == "softmaxx" and error.value.obj is x
    assert not hasattr(x, "nothing") and not hasattr(nn, "nothing") and not hasattr(tiny, "nothing")
    assert copy.copy(x).tolist() == [1.0]


def test_to_casts_to_an_element_type():
    x = Tensor([1.5, 2.5])
    assert x.to(dtypes.float16).dtype is dtypes.float16 and x.to(dtypes.int32).tolist() == [1, 2]
