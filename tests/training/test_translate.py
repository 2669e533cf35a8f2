from __future__ import annotations

import pytest

from headcount.base.errors import UnsupportedError
from headcount.heads import Mask
from headcount.models.find import layout
from headcount.models.load import load
from headcount.models.remove import remove
from headcount.tasks import Examples, open_task
from headcount.tasks.encoding import encode
from headcount.tasks.loading import load_tokenizer
from headcount.tasks.rows import rows_of
from headcount.training.translate import generation_settings, translate


@pytest.fixture(scope="module")
def translator():
    model, words = load("pocket-translator"), load_tokenizer("pocket-translator")
    examples, rows = rows_of(model, open_task("pocket-translation"), words, "dev", limit=6)
    return model, words, examples, rows


def test_masks_side_by_side_say_what_each_says_alone(translator):
    model, words, examples, rows = translator
    full = Mask.full(layout(model))
    none = Mask.none(layout(model))
    plain, nothing = translate(model, rows, words, [full, none])
    assert [plain] == translate(model, rows, words)
    assert sum(said == right for said, right in zip(plain, examples.texts[1], strict=True)) >= 4
    assert nothing == translate(remove(model, none), rows, words)[0]
    assert nothing != plain


def test_words_are_not_drawn_and_end_somewhere(translator):
    model, _, _, rows = translator
    settings = generation_settings(model, rows, beams=3)
    assert (settings.num_beams, settings.do_sample) == (3, False)
    assert settings.max_new_tokens <= 2 * rows.lengths.max() + 10
    assert settings.eos_token_id == model.generation_config.eos_token_id


def test_a_target_may_be_longer_than_twice_the_source(translator):
    model, words, examples, _ = translator
    long = Examples((["a"], [" ".join([str(examples.texts[1][0])] * 2)]))
    rows = encode(open_task("pocket-translation"), long, words)
    assert isinstance(rows.labels, list)
    positions = model.config.max_position_embeddings
    assert 2 * rows.lengths.max() + 10 < len(rows.labels[0]) < positions
    assert generation_settings(model, rows, beams=1).max_new_tokens == len(rows.labels[0])


def test_a_model_without_a_decoder_is_refused(translator):
    _, words, _, rows = translator
    with pytest.raises(UnsupportedError, match="it cannot write a text"):
        translate(load("pocket"), rows, words)
