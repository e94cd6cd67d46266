"""What a process remembers of its kernels."""


def forget(monkeypatch) -> None:
    """As a new process, which has compiled and loaded nothing yet, until the test ends."""
    monkeypatch.setattr("tiny.realize.program._compiled", {})
    monkeypatch.setattr("tiny.realize.execute._plans", {})
