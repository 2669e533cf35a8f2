from __future__ import annotations

from headcount.exports.export import export
from headcount.heads import Mask
from headcount.models.find import layout, sites_of
from headcount.models.instructions import attributes, checksum, emptied_kinds, parameters
from headcount.models.remove import remove
from models.zoo import build, removed


def test_what_is_written_names_the_heads_that_stay():
    model, mask, small = removed("llama", "whole groups")
    written = small.config.headcount
    assert [site["kept"] for site in written["sites"]] == [
        list(mask.indices(site.stack, site.layer)) for site in sites_of(model)
    ]
    assert written["check"] == checksum(written["sites"])
    assert checksum(written["sites"][1:]) != written["check"]


def test_a_second_cut_is_written_in_the_full_models_heads():
    model = build("bert", num_hidden_layers=1)
    once = remove(model, Mask.of(layout(model), [("encoder", 0, index) for index in (1, 2, 3)]))
    twice = remove(once, Mask.of(layout(once), [("encoder", 0, 0), ("encoder", 0, 2)]))
    assert [site["kept"] for site in twice.config.headcount["sites"]] == [[1, 3]]


def test_a_config_that_says_null_of_headcount_is_one_of_a_whole_model(tmp_path):
    model = build("bert", num_hidden_layers=1)
    model.config.headcount = None
    assert export(model, "zeroed", tmp_path / "zeroed").difference <= 1e-6
    small = remove(model, Mask.of(layout(model), [("encoder", 0, 1)]))
    assert [site["kept"] for site in small.config.headcount["sites"]] == [[1]]


def test_only_the_numbers_that_count_heads_are_changed():
    model = build("llama", num_hidden_layers=1)
    (site,) = sites_of(model)
    module = model.get_submodule(site.path)
    assert attributes(module, site, [0, 1], False) == {"num_key_value_groups": 2}
    module.num_heads, module.num_key_value_heads = 4, 2
    module.hidden_size, module.inner_dim = 32, 99
    found = attributes(module, site, [0, 2], True)
    assert found["num_heads"] == 2
    assert found["num_key_value_heads"] == 2
    assert found["num_key_value_groups"] == 1
    assert found["hidden_size"] == 16
    assert "inner_dim" not in found  # another number than the heads' width
    assert parameters(module, site) == {}


def test_layers_without_heads_are_told_by_their_class():
    model, mask, _ = removed("bert", "alternate layers emptied")
    (kind,) = emptied_kinds(model, sites_of(model), mask)
    assert kind == type(model.bert.encoder.layer[0].attention.self).__name__
    assert emptied_kinds(model, sites_of(model), Mask.full(layout(model))) == set()
