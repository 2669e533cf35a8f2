"""Run a model in vLLM: `python run_vllm.py FOLDER < requests.json`, as exports/run_gguf.py does.

Requests are {"prompts": [token ids…], "tokens": N}; the answer, behind the last line break of
stdout, has the greedy tokens of every prompt. It needs vLLM only.
"""

import json
import os
import sys


def main(path: str) -> None:
    """Answer the requests on stdin."""
    os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0"}
    from vllm import LLM, SamplingParams  # pyright: ignore[reportMissingImports]

    requests = json.load(sys.stdin)
    plain = "--plain" in sys.argv
    model = LLM(
        path,
        model_impl="auto" if plain else "transformers",
        trust_remote_code=not plain,
        dtype="float32",
        enforce_eager=True,
        max_model_len=512,
    )
    how = SamplingParams(temperature=0, max_tokens=requests["tokens"], ignore_eos=True)
    rows = [{"prompt_token_ids": prompt} for prompt in requests["prompts"]]
    answers = [list(row.outputs[0].token_ids) for row in model.generate(rows, how)]
    sys.stdout.write("\n" + json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1])
