"""A process that has all imports behind it and starts others by forking: they begin at once.

python nursery.py

Each line it reads is a list of children, each with its words (a script and its arguments), its
environment and the files for what it prints. It answers with their exit codes when all have ended.
"""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
import traceback
from typing import Any


def born(asked: dict[str, Any]) -> int:
    """The process that does what is asked."""
    number = os.fork()
    if number:
        return number
    code = 1
    try:
        for stream, path in enumerate((os.devnull, asked["out"], asked["err"])):
            os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), stream)
        os.environ |= asked["environment"]
        sys.argv = asked["words"]
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Nothing here may run a backward pass: autograd cannot be forked after its first one."""
    for name in ("headcount.training.trainer", "learned.child", "training.child"):
        importlib.import_module(name)
    for line in sys.stdin:
        numbers = [born(asked) for asked in json.loads(line)]
        codes = [os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]) for number in numbers]
        sys.stdout.write(json.dumps(codes) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
