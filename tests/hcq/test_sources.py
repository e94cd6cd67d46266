"""A hardware fact names its source: every declared packet and structure, in its docstring."""
import inspect
import re

import pytest

from tests.hcq.test_round_trip import LAYOUTS

SOURCE = re.compile(r"Source:\s|\bAs [A-Z]\w+|\.(h|c|cpp|json)\b")
# sequences of packets that have their own
JOINED = [layout for layout in LAYOUTS if hasattr(layout, "parts")]


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout not in JOINED],
                         ids=lambda layout: f"{layout.__module__[9:]}.{layout.__name__}")
def test_a_declaration_names_its_source(layout):
    words = inspect.getdoc(layout) or ""
    assert SOURCE.search(words), f"{layout.__name__}: say which header or document it is from"
