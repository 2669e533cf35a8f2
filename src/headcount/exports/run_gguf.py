"""Run a GGUF file in llama.cpp, in a process that has nothing else to lose.

    python run_gguf.py model.gguf < requests.json

Requests are {"prompts": [token ids…], "texts": […], "tokens": N}; the answer on stdout has the
greedy tokens of every prompt, the log-probabilities of the likeliest tokens at every step, and the
token ids of every text. It needs xllamacpp only, which `make servers` has without headcount.
"""

import json
import sys
import urllib.request
from typing import Any

import xllamacpp

llama: Any = xllamacpp  # compiled, without types
LIKELIEST = 5


def main(path: str) -> None:
    """Answer the requests on stdin."""
    requests = json.load(sys.stdin)
    longest = max(map(len, requests["prompts"])) + requests["tokens"]
    server = start(path, longest + 8)
    answers = [complete(server, prompt, requests["tokens"]) for prompt in requests["prompts"]]
    texts = [
        ask(server, "tokenize", {"content": text, "add_special": True})["tokens"]
        for text in requests["texts"]
    ]
    json.dump({"answers": answers, "texts": texts}, sys.stdout)


def start(path: str, context: int) -> Any:
    """A server that computes attention in float32: what differs from the model is the file's."""
    options = llama.CommonParams()
    options.model.path, options.n_ctx, options.n_parallel = path, context, 1
    options.verbosity, options.warmup, options.fit_params = -1, False, False
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    wide = llama.ggml_type.GGML_TYPE_F32
    options.cache_type_k = options.cache_type_v = wide
    options.flash_attn_type = llama.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
    return llama.Server(options)


def complete(server: Any, prompt: list[int], tokens: int) -> dict[str, list[object]]:
    """The greedy tokens after a prompt, and (id, log-probability) of the likeliest at each step.

    One token a request: llama.cpp gives none for a token that is no whole letter, and of several
    tokens it would not say which.
    """
    chosen, likeliest = [], []
    request = {"n_predict": 1, "temperature": 0, "n_probs": LIKELIEST, "return_tokens": True}
    for _ in range(tokens):
        answer = ask(server, "completion", {**request, "prompt": prompt + chosen})
        steps = answer.get("completion_probabilities", ())
        likeliest.append([(top["id"], top["logprob"]) for s in steps for top in s["top_logprobs"]])
        chosen += answer["tokens"]
        if answer["stop_type"] == "eos" or not answer["tokens"]:
            break
    return {"tokens": chosen, "likeliest": likeliest}


def ask(server: Any, path: str, request: dict[str, object]) -> dict[str, Any]:
    """The answer of the server in this process."""
    headers = {"Content-Type": "application/json"}
    body = json.dumps(request).encode()
    to = urllib.request.Request(f"{server.listening_address}/{path}", body, headers)
    with urllib.request.urlopen(to) as reply:
        return json.load(reply)


if __name__ == "__main__":
    main(sys.argv[1])
