"""Tokenizers of the two pocket models, as plain transformers fast tokenizers.

The BERT reads stems and endings, the translator whole words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from headcount.tasks.pocket.lexicon import ENDINGS, ENGLISH, STEMS
from headcount.tasks.pocket.translation import vocabulary

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

BERT_SPECIALS: Final = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
TRANSLATOR_SPECIALS: Final = ("<pad>", "</s>", "<unk>")
BERT_LENGTH: Final = 64
TRANSLATOR_LENGTH: Final = 128


def _fast(
    words: tuple[str, ...], unknown: str, template: tuple[str, str, list[str]], *, pieces: bool
) -> Tokenizer:
    """A lower-casing tokenizer of words or word pieces; the template places special tokens."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    ids = {word: index for index, word in enumerate(words)}
    kind = models.WordPiece if pieces else models.WordLevel
    tokenizer = Tokenizer(kind(ids, unk_token=unknown))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    single, pair, specials = template
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(word, ids[word]) for word in specials]
    )
    return tokenizer


def bert_tokenizer() -> PreTrainedTokenizerFast:
    """`[CLS] text [SEP]` or `[CLS] text [SEP] text_b [SEP]` with segment ids."""
    from transformers import PreTrainedTokenizerFast

    words = (*BERT_SPECIALS, *STEMS, *(f"##{ending}" for ending in ENDINGS))
    template = ("[CLS] $A [SEP]", "[CLS] $A [SEP] $B:1 [SEP]:1", ["[CLS]", "[SEP]"])
    return PreTrainedTokenizerFast(
        tokenizer_object=_fast(words, "[UNK]", template, pieces=True),
        model_max_length=BERT_LENGTH,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def translator_tokenizer() -> PreTrainedTokenizerFast:
    """`text </s>`, both languages in one vocabulary; decoding starts from `<pad>`."""
    from transformers import PreTrainedTokenizerFast

    words = tuple(dict.fromkeys((*TRANSLATOR_SPECIALS, *ENGLISH, *vocabulary())))
    return PreTrainedTokenizerFast(
        tokenizer_object=_fast(words, "<unk>", ("$A </s>", "$A $B </s>", ["</s>"]), pieces=False),
        model_max_length=TRANSLATOR_LENGTH,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        model_input_names=["input_ids", "attention_mask"],
    )
