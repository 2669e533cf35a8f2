"""Run by test_export.py in a fresh process: load every export without headcount, and compare.

python -I fresh.py FOLDER      # FOLDER/<family>/: the export, answers.pt, auto.txt
"""

import copy
import json
import pickle
import sys
from pathlib import Path

sys.modules["headcount"] = None  # an installed headcount is out of reach, too

import torch  # noqa: E402
import transformers  # noqa: E402
from transformers import AutoModel  # noqa: E402

transformers.utils.logging.disable_progress_bar()
LEFT_OUT = ("past_key_values",)


def run(model, inputs):
    with torch.no_grad():
        return list(floats(model(**inputs)))


def floats(value):
    if torch.is_tensor(value):
        if value.is_floating_point():
            yield value
    elif hasattr(value, "items"):
        for key, item in value.items():
            if key not in LEFT_OUT:
                yield from floats(item)
    elif isinstance(value, tuple):
        for item in value:
            yield from floats(item)


def difference(left, right):
    assert [a.shape for a in left] == [b.shape for b in right]
    return max(float((a - b).abs().max() / a.abs().max()) for a, b in zip(left, right, strict=True))


def changed(model, inputs):
    """How much the answers change when the attention projections do."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for name, parameter in other.named_parameters():
            if "att" in name.lower():
                parameter.mul_(1.3)
    return difference(run(model, inputs), run(other, inputs))


def look(folder):
    inputs, answers = torch.load(folder / "answers.pt")
    auto = getattr(transformers, (folder / "auto.txt").read_text())
    config = json.loads((folder / "config.json").read_text())
    remote = {"trust_remote_code": True} if "auto_map" in config else {}
    model = auto.from_pretrained(folder, **remote)
    found = {
        "class": type(model).__name__,
        "module": type(model).__module__,
        "difference": difference(answers, run(model, inputs)),
        "changed": changed(model, inputs),
        "headcount": "headcount" in json.dumps(config),
    }
    if remote:
        found |= more(model, auto, folder, inputs, answers)
    return found


def more(model, auto, folder, inputs, answers):
    """A standalone model copies, pickles, saves itself with its code, and gives its backbone."""
    model.save_pretrained(folder / "again")
    again = auto.from_pretrained(folder / "again", trust_remote_code=True)
    pickled = pickle.loads(pickle.dumps(model))
    return {
        "copied": difference(answers, run(copy.deepcopy(model), inputs)),
        "pickled": difference(answers, run(pickled, inputs)),
        "saved again": difference(answers, run(again, inputs)),
        "backbone": backbone(model, folder, inputs),
    }


def backbone(model, folder, inputs):
    """The largest difference in weight of what AutoModel brings; it must run, too."""
    bare = AutoModel.from_pretrained(folder, trust_remote_code=True)
    assert run(bare, inputs)
    own = model.state_dict()
    worst = 0.0
    for name, weight in bare.state_dict().items():
        # a pooler is not part of every task model, so a backbone may have a fresh one
        if "pooler" not in name:
            theirs = own.get(name, own.get(f"{model.base_model_prefix}.{name}"))
            assert weight.shape == theirs.shape, name
            worst = max(worst, float((weight - theirs).abs().max()) if weight.numel() else 0.0)
    return worst


found = {folder.name: look(folder) for folder in sorted(Path(sys.argv[1]).iterdir())}
left = [name for name, module in sys.modules.items() if name.startswith("headcount") and module]
assert not left, left
sys.stdout.write(json.dumps(found))
