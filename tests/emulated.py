"""What `make test-emulated` leaves out on a card, each with its reason."""

# value of EMULATE -> {test's id, with or without its parameters: why it is left out}
EXCLUDED: dict[str, dict[str, str]] = {
    "gfx1100": {},
    "gfx1201": {},
    "gfx942": {},
}
