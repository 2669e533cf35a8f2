"""Make the shipped pocket models anew, from a fixed seed.

    python -m tools.pocket.build --out DIR            # both
    python -m tools.pocket.build --out DIR --bert     # one of them

A killed run goes on from its last checkpoint when the same command is given again. The same
seed, machine and number of threads give the same bytes. Times are in the folder's README.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from tools.pocket.masking import IGNORED, Masking, corpus_batches
from tools.pocket.pretraining import (
    POOL,
    Batch,
    Batches,
    Loss,
    Plan,
    own_loss,
    pretrain,
)
from tools.pocket.tokenizer import (
    BERT_LENGTH,
    TRANSLATOR_LENGTH,
    bert_tokenizer,
    translator_tokenizer,
)
from tools.pocket.translating import translation_batches

# First only what is true, with much of it hidden: words and what they come to. Then also pairs
# that do not belong together, and the question whether they do. Asked from the start, the model
# learns to compare and never learns what opinions come to.
BERT_PLANS = (Plan(steps=3600, batch=96), Plan(steps=3000, rate=1.5e-3, seed=1))
BERT_MASKING = (Masking(heavy=0.5, bare=0.0), Masking())
TRANSLATOR_PLAN = Plan(steps=1200)
DROPOUT = 0.1  # what the saved configs say, for fine-tuning; nothing drops out in pre-training

Say = Callable[[str], None]


def build_bert(folder: Path, plans: tuple[Plan, Plan] = BERT_PLANS, *, say: Say) -> None:
    """Pre-train the pocket BERT in two stages and save it with its tokenizer."""
    from transformers import BertConfig, BertForPreTraining

    tokenizer: Any = bert_tokenizer()
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=6,
        num_attention_heads=8,
        intermediate_size=256,
        max_position_embeddings=BERT_LENGTH,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        initializer_range=0.06,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = seeded(plans[0].seed, lambda: BertForPreTraining(config))
    for stage, plan in enumerate(plans):

        def batches(pool: int, stage: int = stage, plan: Plan = plan) -> list[Batch]:
            return corpus_batches(
                tokenizer,
                split="train",
                seed=plan.seed,
                pool=pool,
                size=plan.batch,
                count=POOL,
                masking=BERT_MASKING[stage],
                apart=stage > 0,
            )

        _run(model, batches, plan, folder, say, stage=stage, loss_of=bert_loss)
    model.config.hidden_dropout_prob = DROPOUT
    model.config.attention_probs_dropout_prob = DROPOUT
    _ship(model, tokenizer, folder)


def bert_loss(model: Any, batch: Batch) -> torch.Tensor:
    """Hidden words, and next sentences where any are asked for: BERT's own loss is NaN for none."""
    labels = batch["next_sentence_label"]
    given = {name: value for name, value in batch.items() if "label" not in name}
    out = model(**given)
    loss = cross_entropy(out.prediction_logits.flatten(0, 1), batch["labels"].flatten())
    if (labels != IGNORED).any():
        loss = loss + cross_entropy(out.seq_relationship_logits, labels)
    return loss


def build_translator(folder: Path, plan: Plan = TRANSLATOR_PLAN, *, say: Say) -> None:
    """Train the pocket encoder-decoder and save it with its tokenizer."""
    from transformers import MarianConfig, MarianMTModel

    tokenizer: Any = translator_tokenizer()
    config = MarianConfig(
        vocab_size=len(tokenizer),
        d_model=64,
        encoder_layers=3,
        decoder_layers=3,
        encoder_attention_heads=8,
        decoder_attention_heads=8,
        encoder_ffn_dim=128,
        decoder_ffn_dim=128,
        max_position_embeddings=TRANSLATOR_LENGTH,
        activation_function="gelu",
        dropout=0.0,
        attention_dropout=0.0,
        activation_dropout=0.0,
        scale_embedding=True,
        tie_word_embeddings=True,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
        decoder_start_token_id=tokenizer.pad_token_id,
        forced_eos_token_id=None,
    )
    model = seeded(plan.seed, lambda: MarianMTModel(config))

    def batches(pool: int) -> list[Batch]:
        return translation_batches(
            tokenizer, seed=plan.seed, pool=pool, size=plan.batch, count=POOL
        )

    _run(model, batches, plan, folder, say)
    model.config.dropout = DROPOUT
    model.generation_config.max_length = TRANSLATOR_LENGTH
    _ship(model, tokenizer, folder)


def seeded(seed: int, make: Callable[[], Any]) -> Any:
    """A fresh model whose first weights depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()


def _run(
    model: Any,
    batches: Batches,
    plan: Plan,
    folder: Path,
    say: Say,
    *,
    stage: int = 0,
    loss_of: Loss = own_loss,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    weights = sum(weight.numel() for weight in model.parameters())
    say(f"{folder}: {weights:,} weights, stage {stage + 1}")
    pretrain(model, batches, plan, _checkpoint(folder, stage), say, loss_of)


def _checkpoint(folder: Path, stage: int) -> Path:
    return folder.with_name(f"{folder.name}.{stage}.checkpoint")


def _ship(model: Any, tokenizer: Any, folder: Path) -> None:
    """Save for transformers; only then are the checkpoints not needed any more."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for stage in range(len(BERT_PLANS)):
        _checkpoint(folder, stage).unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.pocket.build")
    parser.add_argument("--out", type=Path, required=True, help="folder for the models")
    parser.add_argument("--bert", action="store_true", help="make the BERT only")
    parser.add_argument("--translator", action="store_true", help="make the translator only")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads (default 1)")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    both = options.bert == options.translator

    def say(text: str) -> None:
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    if options.bert or both:
        build_bert(options.out / "pocket-bert", say=say)
    if options.translator or both:
        build_translator(options.out / "pocket-translator", say=say)


if __name__ == "__main__":
    main()
