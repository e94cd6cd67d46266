"""How benchmarks print a figure."""


def report(
    what: str, figure: float, unit: str, most: float | None = None, least: float | None = None
) -> None:
    """One line: the figure and, if there is one, its budget."""
    limit, missed = "", False
    if most is not None:
        limit, missed = f"   at most {most:g} {unit}", figure > most
    if least is not None:
        limit, missed = f"   at least {least:g} {unit}", figure < least
    print(f"\n{what:58}{figure:10.2f} {unit}{limit}{'   MISSED' if missed else ''}")
