"""Rows that are conversations: messages with a role and a content, as the chat template has them.

{"messages": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Good day."}]}
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from headcount.base.errors import UsageError
from headcount.base.files import LINES, parse_json, read_text
from headcount.base.text import short
from headcount.tasks.files import JSON

MESSAGES = "messages"
"""The column of rows that are conversations."""
TODAY = (
    "{% macro strftime_now(form) %}{{ form | replace('%d', '26') | replace('%b', 'Jul') | "
    "replace('%B', 'July') | replace('%m', '07') | replace('%Y', '2024') }}{% endmacro %}"
)
"""The day, to templates that ask for it (Llama's): rows must not be others tomorrow."""
Conversation = list[dict[str, Any]]


def is_conversation(row: object) -> bool:
    """Whether a row has messages, or is a list of them."""
    if isinstance(row, Mapping):
        return MESSAGES in row and "input_ids" not in row
    return isinstance(row, list | tuple) and bool(row) and isinstance(row[0], Mapping)


def conversation(row: object, where: str) -> Conversation:
    """The messages of a row; refuses what no chat template can render."""
    messages = row.get(MESSAGES) if isinstance(row, Mapping) else row
    if not isinstance(messages, list | tuple) or not messages:
        raise UsageError(
            f"{where} is no conversation, a list of messages with a role and a content: "
            f"{short(messages, 60)}."
        )
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise UsageError(f"{where} has a message without a role: {short(message, 60)}.")
        content = message.get("content")
        if not isinstance(content, str | list) and not message.get("tool_calls"):
            raise UsageError(f"{where} has a message without a content: {short(message, 60)}.")
    return [dict(message) for message in messages]


def written(messages: Conversation) -> str:
    """A conversation as the text that it is in `Examples`."""
    return json.dumps(messages, ensure_ascii=False)


def rendered(tokenizer: PreTrainedTokenizerBase, rows: Iterable[Conversation]) -> list[str]:
    """What the chat template makes of conversations, with all special tokens that it wants."""
    if not tokenizer.chat_template:
        raise UsageError(
            "The rows are conversations, and this tokenizer has no chat template to write them "
            "with: put the chat_template.jinja of the model's instruct version into its folder, "
            "or give the rows as texts."
        )
    texts = []
    for number, messages in enumerate(rows, start=1):
        try:
            template = TODAY + tokenizer.get_chat_template()
            text = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False)
        except Exception as error:  # a template raises what it likes, its own refusals included
            reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise UsageError(
                f"The tokenizer's chat template cannot write conversation {number}: "
                f"{reason[:200].rstrip('.')}."
            ) from error
        texts.append(str(text))
    return texts


def calibration_texts(path: Path) -> list[str] | list[Conversation]:
    """The lines of a file of texts, or the conversations of a file of JSON lines."""
    text = read_text(path, "file of texts", LINES).removeprefix("\ufeff")
    lines = [line.strip() for line in text.split("\n")]
    numbered = [(number, line) for number, line in enumerate(lines, start=1) if line]
    if not numbered:
        raise UsageError(f"'{path}' has no lines with text.")
    if path.suffix.lower() not in JSON:
        return [line for _, line in numbered]
    rows = []
    for number, line in numbered:
        row = parse_json(line, f"'{path}' line {number} is not JSON")
        if not is_conversation(row):
            raise UsageError(
                f"'{path}' line {number} has no conversation in '{MESSAGES}': calibration data are "
                "texts, one a line of a .txt file, or conversations as JSON lines."
            )
        rows.append(conversation(row, f"'{path}' line {number}"))
    return rows
