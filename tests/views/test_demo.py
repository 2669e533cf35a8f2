from __future__ import annotations

import shlex

from headcount.views.demo import BEGIN, NEXT, STORY


def test_the_story_begins_with_a_model_and_ends_with_a_page():
    commands = [step.command.split()[0] for step in STORY]
    assert (commands[0], commands[1], commands[-1]) == ("train", "search", "report")
    assert {"curve", "redundancy", "importance", "roles", "bench"} <= set(commands)
    assert "offline" in BEGIN
    assert len(NEXT) == 3


def test_every_part_of_the_page_has_a_step():
    made = {step.command.split()[0] for step in STORY}
    assert {"attention", "transfer", "prune"} <= made  # where it looks, fine-tuning, gates
    for step in STORY:
        assert "{out}" in step.command
        assert shlex.split(step.command)
