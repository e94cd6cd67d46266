"""Regenerate the bindings, or check that they are what their headers say: `python -m tiny.autogen --help`."""
from tiny.autogen.generator.command import main

if __name__ == "__main__":
    raise SystemExit(main())
