"""One intermediate representation in levels: nodes, the op table, element types, symbolic integers, rules."""
from tiny.ir import integer  # noqa: F401  index nodes get their arithmetic operators
