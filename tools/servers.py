"""Pruned models in others' servers: the same greedy tokens as in transformers, or exit code 1.

    python tools/servers.py MODEL --vllm PYTHON --llama PYTHON

MODEL is a language model of Llama's block. It is cut in two ways, with no repair: layers that keep
all, two thirds, one third and none of their key-value heads in turn, and two thirds in every layer.
Each is exported to what each server reads, and answers eight prompts. A server is a Python that has
it (`make servers` installs them); one that is not named is not run, which is said.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

import headcount as hc
from headcount.exports import run_gguf
from headcount.exports.gguf import TEXTS
from headcount.models.tokenizers import open_tokenizer

TOKENS = 24
EXPORTS = (("free", "vllm"), ("free", "gguf"), ("uniform", "stock"), ("uniform", "gguf"))


def main() -> int:
    """Cut, export, run, compare."""
    parser = argparse.ArgumentParser(description="Pruned models in servers of others.")
    parser.add_argument("model")
    parser.add_argument("--vllm", help="a Python with vLLM")
    parser.add_argument("--llama", help="a Python with xllamacpp")
    options = parser.parse_args()
    model = hc.load(options.model, dtype=torch.float32)
    tokenizer: Any = open_tokenizer(options.model)
    prompts = [list(tokenizer(text)["input_ids"]) for text in TEXTS]
    failed = False
    layout = hc.layout(model)
    masks = {
        "free": shares(layout, [(3, 3), (2, 3), (1, 3), (0, 3)]),
        "uniform": shares(layout, [(2, 3)]),
    }
    for name, to in EXPORTS:
        small = hc.remove(model, masks[name])
        counts = hc.layout(small)["decoder"].heads
        label = f"{name} ({', '.join(map(str, counts[:4]))} … heads) --to {to}"
        python = options.llama if to == "gguf" else options.vllm
        if python is None:
            sys.stdout.write(f"{label}: DID NOT RUN, its server is not named\n")
            continue
        expected = [greedy(small, prompt) for prompt in prompts]
        with tempfile.TemporaryDirectory() as work:
            weights = "f32" if to == "gguf" else None
            folder = Path(work) / "export"
            hc.export(small, to, folder, tokenizer=tokenizer, weights=weights)
            requests = {"prompts": prompts, "texts": [], "tokens": TOKENS}
            answers = served(python, folder, to, requests)
        end = tokenizer.eos_token_id
        pairs = zip(expected, answers, strict=True)
        same = sum(other == until(one, end, len(other)) for one, other in pairs)
        failed |= same < len(prompts)
        text = f"{label}: {same} of {len(prompts)} prompts have the same {TOKENS} greedy tokens"
        sys.stdout.write(text + "\n")
        sys.stdout.flush()
    return int(failed)


def shares(layout: hc.Layout, parts: list[tuple[int, int]]) -> hc.Mask:
    """A mask that keeps these shares of the key-value heads of one layer after the other."""
    stack, kept = layout["decoder"], []
    for layer, (heads, groups) in enumerate(zip(stack.heads, stack.groups, strict=True)):
        share, whole = parts[layer % len(parts)]
        many = round(groups * share / whole) if groups > 1 else groups * bool(share)
        kept += [("decoder", layer, head) for head in range(many * (heads // groups))]
    return hc.Mask.of(layout, kept)


def greedy(model: Any, prompt: list[int]) -> list[int]:
    """The tokens that transformers gives, the end of a text or not."""
    with torch.no_grad():
        ids = torch.tensor([prompt])
        model.generation_config.eos_token_id = None  # vLLM is told to go on as well
        made = model.generate(ids, max_new_tokens=TOKENS, do_sample=False)
    return made[0, len(prompt) :].tolist()


def until(tokens: list[int], end: int, count: int) -> list[int]:
    """The tokens before the end of the text, or with it, where a server stops there."""
    if count < len(tokens) and end in tokens[count - 1 : count + 1]:
        return tokens[:count]
    return tokens


def served(python: str, folder: Path, to: str, requests: dict[str, object]) -> list[list[int]]:
    """What the server answers, in a process of its own."""
    if to == "gguf":
        command = [python, run_gguf.__file__, str(folder / "model.gguf")]
    else:
        command = [python, str(Path(__file__).with_name("run_vllm.py")), str(folder)]
        command += ["--plain"] if to == "stock" else []
    done = subprocess.run(
        command, input=json.dumps(requests), capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = "\n".join(done.stderr.strip().splitlines()[-8:])
        sys.stderr.write(f"{to}: the server ended with {done.returncode}:\n{last}\n")
        return [[] for _ in range(len(TEXTS))]
    answers: Any = json.loads(done.stdout.splitlines()[-1])
    return answers if to != "gguf" else [answer["tokens"] for answer in answers["answers"]]


if __name__ == "__main__":
    sys.exit(main())
