"""The first page of the reproduction: three sentences and a picture for each paper."""

from __future__ import annotations

import re
from pathlib import Path

from headcount.papers.claims import Statistic, Verdict, Word, read_claims
from headcount.papers.numbers import PAPERS, read_paper
from headcount.papers.opening import TILES, opening, tiles


def verdicts(scale: str, **words: Word) -> list[Verdict]:
    """All claims not run, but these."""
    tested = {code: Statistic(what="w", value=1.0, verdict=word) for code, word in words.items()}
    return [
        Verdict(
            claim=claim,
            scale=scale,
            tested=[tested[code]] if code in tested else [],
            done=0,
            total=1,
        )
        for code, claim in read_claims().items()
    ]


def sentence(text: str, begins: str) -> str:
    return text.split(f"*{begins}.* ")[1].split(" *")[0]


def test_a_claim_counts_by_the_last_scale_that_ran_it(tmp_path: Path) -> None:
    pocket = verdicts("pocket", WL1="does not hold", WL5="does not hold", WL4="undecided")
    parts = opening([*pocket, *verdicts("small", WL5="holds", WL8="does not hold")], tmp_path)
    text = parts[parts.index(f"**{read_paper('weak-link').title}** (EMNLP 2020)") + 2]
    claims = read_claims()
    assert sentence(text, "Claims").startswith(read_paper("weak-link").claims)
    holds, fails = sentence(text, "Holds here"), sentence(text, "Does not, and why")
    assert "(WL5)" in holds
    assert "WL5" not in fails
    assert "(WL1 on pocket models: cause not tested)" in fails
    assert f"(WL8: {claims['WL8'].why})" in fails  # a cause is one of real weights
    assert "Undecided: WL4 on pocket models." in text
    assert re.search(r"Not run: WL2[^,]*, WL3", text)


def test_every_paper_has_its_picture_and_every_claim_its_tile(tmp_path: Path) -> None:
    every = verdicts("pocket", LO1="holds") + verdicts("small", LO1="undecided")
    parts = opening(every, tmp_path)
    for name in PAPERS:
        assert (tmp_path / f"overview-{name}.svg").is_file()
        assert any(f"{tmp_path.name}/overview-{name}.svg" in part for part in parts)
    of_paper = [verdict for verdict in every if verdict.claim.paper == "lay-off"]
    written = [text.get_text().strip() for text in tiles(of_paper).axes[0].texts]
    codes = [code for code in read_claims() if code.startswith("LO")]
    assert written[:10] == ["pocket", "small", *codes]
    signs = [TILES["holds"][0], *[TILES["not run"][0]] * 7, TILES["undecided"][0]]
    assert written[10:19] == signs


def test_short_forms_are_parts_of_a_sentence() -> None:
    for claim in read_claims().values():
        assert claim.short[0].islower() or claim.short[0].isdigit()
        assert not claim.short.endswith(".")
        assert not claim.why.endswith(".")
