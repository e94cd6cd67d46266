"""Which folders are packages: every folder of tiny/ with an __init__.py, and autogen/ under the name
tiny.autogen."""
from setuptools import find_packages, setup

setup(packages=[*find_packages(include=["tiny", "tiny.*"]),
                "tiny.autogen", *(f"tiny.autogen.{name}" for name in find_packages("autogen"))],
      package_data={"": ["*.c", "*.h", "*.json", "*.toml", "*.txt"]})
