"""Whole programs on the emulated card against the CPU: SmolLM2 says the same, the training example learns."""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.examples.test_fashion_mnist import EXAMPLE, small_data
from tests.llm import expected

ROOT = Path(__file__).resolve().parents[3]
EMULATED = {"AMD": "1", "EMULATE": "gfx1100"}
TOKENS, STEPS_OF_AN_EPOCH = 8, 4


def run(*command, **settings) -> str:
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, timeout=3000,
                          env=os.environ | settings, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
def test_smollm2_goes_on_as_on_the_cpu():
    text = run("-m", "tiny", "generate", "--prompt", expected.PROMPT, "--ids", "--max-tokens", TOKENS,
               **EMULATED)
    [ids] = re.findall(r"^ids: ([\d ]+)$", text, re.M)
    assert [int(number) for number in ids.split()] == expected.GREEDY_IDS[:TOKENS]
    assert " on AMD: " in text


@pytest.mark.slow
def test_the_training_example_learns_with_the_losses_of_the_cpu(tmp_path):
    data, losses = small_data(tmp_path / "data"), {}
    for name, settings in (("AMD", EMULATED), ("CPU", {"CPU": "1"})):
        figures = tmp_path / f"{name}.json"
        run(EXAMPLE, "--data", data, "--epochs", 5, "--picture", tmp_path / "loss.png", "--figures", figures,
            **settings)
        losses[name] = json.loads(figures.read_text())["losses"]
    assert len(losses["AMD"]) == 5 * STEPS_OF_AN_EPOCH
    np.testing.assert_allclose(losses["AMD"], losses["CPU"], rtol=1e-3)
    assert losses["AMD"][-1] < losses["AMD"][0] / 4
