"""SmolLM2 in tiny or llama.cpp: tokens a second of decoding and of a prompt of 256 tokens; one JSON line.

    python -m tests.benchmarks.peers.language tiny FILE.gguf
    OMP_PROC_BIND=true OMP_PLACES=cores python -m tests.benchmarks.peers.language llama.cpp FILE.gguf

Medians of several runs in one process, two threads. A prompt's time ends with the first token after it.
"""
import json
import os
import resource
import statistics
import sys
import time
from importlib import import_module  # neither process needs the other's framework
from pathlib import Path

PROMPT = [504, 3575, 282, 4649, 314]                        # The capital of France is
LONG = (PROMPT * 52)[:256]
TOKENS, ROUNDS = 64, 7


def tiny(path: str):
    """(decode, prompt): functions that run once and return tokens a second."""
    files, generate, models = (import_module(f"tiny.llm.{name}") for name in ("files", "generate", "models"))
    file = files.load(Path(path))
    generator = generate.Generator(models.Llama(file.config, file.weights, 512 + max(generate.CHUNKS)))

    def decode() -> float:
        list(generator.tokens(PROMPT, TOKENS))
        return generator.figures.decoded_tokens / generator.figures.decode_s

    def prompt() -> float:
        list(generator.tokens(LONG, 1))
        return len(LONG) / generator.figures.prompt_s
    return decode, prompt


def llama_cpp(path: str):
    """(decode, prompt) of llama-cpp-python."""
    llama = import_module("llama_cpp").Llama
    model = llama(path, n_ctx=640, n_threads=2, n_threads_batch=2, n_batch=256, verbose=False)

    def decode() -> float:
        model.reset()
        tokens = model.generate(PROMPT, temp=0.0)
        next(tokens)
        start = time.perf_counter()
        for _ in range(TOKENS - 1):
            next(tokens)
        return (TOKENS - 1) / (time.perf_counter() - start)

    def prompt() -> float:
        model.reset()
        start = time.perf_counter()
        next(model.generate(LONG, temp=0.0))
        return len(LONG) / (time.perf_counter() - start)
    return decode, prompt


FRAMEWORKS = {"tiny": tiny, "llama.cpp": llama_cpp}


def main(framework: str, path: str) -> None:
    """Measure and print {"decode", "prompt of 256": tokens a second, "peak": bytes of memory}."""
    decode, prompt = FRAMEWORKS[framework](path)
    speeds = {}
    for name, run in (("decode", decode), ("prompt of 256", prompt)):
        for _ in range(3):
            run()
        speeds[name] = statistics.median(run() for _ in range(ROUNDS))
    speeds["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps(speeds), flush=True)
    os._exit(0)                                             # llama.cpp prints while it is taken down


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in FRAMEWORKS:
        sys.exit(__doc__)
    main(*sys.argv[1:])
