"""From a conversation to the prompt that a chat model was trained on."""
import re

from tiny.llm.errors import ModelError

try:
    from jinja2.exceptions import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment
except ImportError:                                         # then the three common layouts below serve
    ImmutableSandboxedEnvironment = None

Message = dict[str, str]  # {"role": "system" | "user" | "assistant", "content": text}


def render(template: str | None, messages: list[Message], begin: str = "", end: str = "") -> str:
    """The prompt for `messages`, ending where the assistant is to speak.

    template   Jinja source, as GGUF files and Hugging Face folders carry it
    begin, end the model's begin- and end-of-text tokens, spelt out; templates may use them
    """
    if template is None:
        raise ModelError("chat: the model has no chat template; leave --chat out and give a plain --prompt")
    if ImmutableSandboxedEnvironment is None:
        return render_plainly(template, messages, begin, end)
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    environment.globals["raise_exception"] = _refuse
    try:
        return environment.from_string(template).render(messages=messages, add_generation_prompt=True,
                                                        bos_token=begin, eos_token=end)
    except TemplateError as error:
        raise ModelError(f"chat: the model's template fails: {error}; leave --chat out") from error


def render_plainly(template: str, messages: list[Message], begin: str = "", end: str = "") -> str:
    """The same without Jinja, for templates of three common layouts, told apart by the tokens they name."""
    turns = [(message["role"], message["content"]) for message in messages]
    if "<|im_start|>" in template:
        usual = re.search(r"<\|im_start\|>system(?:\\n|\n)(.*?)<\|im_end\|>", template, re.DOTALL)
        if usual and "content" not in usual[1] and turns[0][0] != "system":
            turns.insert(0, ("system", usual[1]))
        return (
            "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns)
            + "<|im_start|>assistant\n"
        )
    if "<|start_header_id|>" in template:
        head = "<|start_header_id|>{}<|end_header_id|>\n\n"
        return (
            begin
            + "".join(f"{head.format(role)}{text}<|eot_id|>" for role, text in turns)
            + head.format("assistant")
        )
    if "[INST]" in template:
        system = "".join(f"<<SYS>>\n{text}\n<</SYS>>\n\n" for role, text in turns if role == "system")
        talk = "".join(
            f"[INST] {text} [/INST]" if role == "user" else f" {text} {end}"
            for role, text in turns
            if role != "system"
        )
        return begin + talk.replace("[INST] ", f"[INST] {system}", 1)
    raise ModelError(
        "chat: the model's template needs the Python package 'jinja2'; install it with: pip install jinja2"
    )


def _refuse(message: str) -> None:
    raise TemplateError(message)
