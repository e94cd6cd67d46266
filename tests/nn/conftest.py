"""What some of the tests need."""
import pytest


@pytest.fixture
def on_device(request):
    """Skips a test of captured functions or of memory when the numpy oracle stands in for the device."""
    if request.config.getoption("--oracle"):
        pytest.skip("--oracle has numpy compute, which captures nothing and has no memory of its own: "
                    "leave it out to run this test")
