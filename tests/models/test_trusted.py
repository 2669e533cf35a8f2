from __future__ import annotations

import copy
import json
import shutil
from contextlib import nullcontext

import pytest

from headcount.base.errors import HeadcountError, NotFoundError, UsageError
from headcount.heads import Mask
from headcount.models.config import load_config
from headcount.models.find import layout
from headcount.models.instructions import checksum
from headcount.models.load import load, skeleton
from headcount.models.probe import probe_inputs, relative_difference, run
from headcount.models.remove import remove
from headcount.models.trusted import require_instructions
from models.zoo import build, mixed, shallow

CHECKED = {"kept", "share", "returns", "batch_axis", "check"}
"""What may be right of another model, so that only the check number tells that it is damaged."""
STRANGE = (None, True, -1, 0, 7, 10**9, 10**30, 0.5, "x", [], [0], {"x": 1})


@pytest.fixture(scope="module", params=["llama", "t5"])
def saved(request, tmp_path_factory):
    """(folder, config.json as it was written, the model) of a small pruned model."""
    folder = tmp_path_factory.mktemp("saved") / request.param
    model = build(request.param, **shallow(request.param, 2))
    small = remove(model, mixed(layout(model)))
    small.save_pretrained(folder)
    return folder, json.loads((folder / "config.json").read_text()), small


def places(value, path=()):
    """Every place in a JSON value, the whole first."""
    yield path
    if isinstance(value, (dict, list)):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(item, (*path, key))


def at(value, path):
    for key in path:
        value = value[key]
    return value


def damaged(told):
    """Every place in the instructions deleted, doubled, and replaced by something strange."""
    keep = {0, len(told["sites"]) - 1}  # the sites in between are damaged alike
    for path in places(told):
        if len(path) > 1 and path[0] == "sites" and path[1] not in keep:
            continue
        for strange in STRANGE:
            if not path:
                yield path, strange, strange
                continue
            changed = copy.deepcopy(told)
            parent, last = at(changed, path[:-1]), path[-1]
            if strange == parent[last] and type(strange) is type(parent[last]):
                continue
            parent[last] = strange
            yield path, strange, changed
        if path:
            changed = copy.deepcopy(told)
            del at(changed, path[:-1])[path[-1]]
            yield path, "deleted", changed
            parent = at(told, path[:-1])
            if isinstance(parent, list):
                changed = copy.deepcopy(told)
                at(changed, path[:-1]).append(copy.deepcopy(parent[path[-1]]))
                yield path, "doubled", changed
            else:
                changed = copy.deepcopy(told)
                at(changed, path[:-1])["strange"] = 1
                yield path, "something beside it", changed


def test_no_damage_is_accepted_wrongly(saved, tmp_path):
    folder, written, model = saved
    shutil.copytree(folder, tmp_path / "damaged")
    kind = type(build(folder.name, **shallow(folder.name, 2)))
    inputs = probe_inputs(model)
    expected = run(model, inputs)
    config = load_config(folder)
    refused = 0
    for where, what, changed in damaged(written["headcount"]):
        fitting = [] if CHECKED & set(where) else [with_its_check(changed)]
        for told in (changed, *fitting):
            config.headcount = told
            try:
                require_instructions(config, kind, kind)
            except HeadcountError:
                refused += 1
                continue
            # what is not refused must be harmless, or not fit the weights
            text = json.dumps(written | {"headcount": told})
            (tmp_path / "damaged" / "config.json").write_text(text)
            try:
                again = load(tmp_path / "damaged")
            except HeadcountError:
                refused += 1
                continue
            assert relative_difference(expected, run(again, inputs)) == 0, (where, what)
            assert layout(again) == layout(model), (where, what)
    assert refused > 500


def with_its_check(told):
    """As a careless hand would leave it: the check number made to fit."""
    if not isinstance(told, dict) or not isinstance(told.get("sites"), list):
        return told
    return told | {"check": checksum(told["sites"])}


def test_the_right_instructions_are_accepted(saved):
    folder, written, model = saved
    assert layout(skeleton(load_config(folder), type(model).base_class)) == layout(model)
    config = load_config(folder)
    config.headcount = {key: written["headcount"][key] for key in ("version", "sites")}
    assert layout(skeleton(config, type(model).base_class)) == layout(model), "written before check"


def test_other_heads_of_the_same_number_are_noticed(tmp_path):
    """T5's heads take their share of the position bias: kept 1, 2 is not kept 1, 3."""
    model = build("t5", **shallow("t5", 2))
    remove(model, mixed(layout(model))).save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    site = next(s for s in config["headcount"]["sites"] if s["kept"] == [1, 3])
    site["kept"] = [1, 2]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(NotFoundError, match=r"is damaged: its check number does not fit"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("bert", [{"returns": 1}, {"returns": 3}, {"batch_axis": 1}, {"share": "share"}]),
        ("bloom", [{"returns": 0}, {"share": ""}]),
        ("t5", [{"returns": 2}]),
    ],
)
def test_without_a_check_number_the_model_is_asked_how_its_layers_are_called(family, changes):
    """A skipped layer that returns one thing where two are taken would fail in its first call."""
    model = build(family, **shallow(family, 2))
    full = layout(model)
    kind = type(model)
    config = remove(model, Mask.full(full).drop([h for h in full if h.layer == 1])).config
    told = {key: config.headcount[key] for key in ("version", "sites")}
    for change in [{}, *changes]:
        config.headcount = copy.deepcopy(told)
        next(site for site in config.headcount["sites"] if site["empty"]).update(change)
        refused = pytest.raises(NotFoundError, match=f"is damaged: .*{next(iter(change), '')} is")
        with refused if change else nullcontext():
            require_instructions(config, kind, kind)


@pytest.mark.parametrize("told", [7, "x", [1], {"0": 3}, {"x": [1]}, {"0": ["a"]}, {"0": [99]}])
def test_heads_pruned_by_transformers_4_and_damaged(told, tmp_path):
    build("bert").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {"pruned_heads": told}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(HeadcountError):
        load(tmp_path)


def test_weights_of_another_size_than_the_config_says(saved, tmp_path):
    folder, written, _ = saved
    shutil.copytree(folder, tmp_path / "other")
    text = json.dumps({key: value for key, value in written.items() if key != "headcount"})
    (tmp_path / "other" / "config.json").write_text(text)
    with pytest.raises(NotFoundError, match=r"other sizes than its config\.json says"):
        load(tmp_path / "other")


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
@pytest.mark.parametrize("asked", ["someone/kernel:run", {"text_config": "someone/kernel:run"}])
def test_attention_from_a_repository_is_refused(key, asked, tmp_path):
    build("clip").save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text()) | {key: asked}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match=r"code from the repository 'someone/kernel:run': take"):
        load(tmp_path)
    with pytest.raises(UsageError, match="trust_remote_code=True if you trust it"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("../elsewhere.safetensors", "outside its folder"),
        ("/etc/passwd", "outside its folder"),
        ("part/model.safetensors", "outside its folder"),
        ("model.bin", r"not a \.safetensors file"),
        ("absent.safetensors", "is not there"),
    ],
)
def test_weights_outside_the_folder_are_refused(file, why, tmp_path):
    build("bert").save_pretrained(tmp_path / "model", max_shard_size="20KB")
    index = tmp_path / "model" / "model.safetensors.index.json"
    told = json.loads(index.read_text())
    first = next(iter(told["weight_map"]))
    told["weight_map"][first] = file
    index.write_text(json.dumps(told))
    with pytest.raises(HeadcountError, match=why):
        load(tmp_path / "model")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"weight_map": 3}'])
def test_a_damaged_index_is_told_in_one_sentence(text, tmp_path):
    build("bert").save_pretrained(tmp_path, max_shard_size="20KB")
    (tmp_path / "model.safetensors.index.json").write_text(text)
    with pytest.raises(UsageError, match="no index of weights"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("biases", "says"),
    [
        ("x", "its biases are 'x', not a list of paths"),
        ([3], "not a list of paths"),
        (["model.layers.0.mlp.down_proj"], "is no output projection without a bias"),
        (["model.layers.9.self_attn.o_proj"], "is no output projection without a bias"),
        (["model.layers.0.self_attn.o_proj"], ""),
    ],
)
def test_biases_are_those_of_output_projections_without_one(biases, says, tmp_path):
    model = build("llama", num_hidden_layers=2)
    small = remove(model, Mask.parse("24", layout(model)))
    small.save_pretrained(tmp_path)
    config = load_config(str(tmp_path))
    told = config.headcount | {"biases": biases}
    if isinstance(biases, list):
        told["check"] = checksum(told["sites"], biases)
    config.headcount = told
    with pytest.raises(NotFoundError, match=says) if says else nullcontext():
        require_instructions(config, type(model), type(model))
    if not says:  # and one that the check number does not vouch for is damaged
        config.headcount = {key: value for key, value in told.items() if key != "biases"}
        with pytest.raises(NotFoundError, match="check number does not fit"):
            require_instructions(config, type(model), type(model))
