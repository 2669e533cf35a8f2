"""From English into an invented language, by rule.

There the verb comes last, a relative clause or a postposition phrase comes before its noun and
the adjective after it, and articles, adjectives and verbs agree with a noun's gender and number
by separate words. So an output word's place and form hang on words far away in the source.
"""

from __future__ import annotations

from random import Random
from typing import Final

from headcount.tasks.pocket.grammar import (
    Clause,
    NounPhrase,
    PocketRow,
    Prepositional,
    active,
    draw_clause,
    passive,
)
from headcount.tasks.pocket.lexicon import (
    ADJECTIVES,
    FOREIGN_PLURAL,
    FOREIGN_SINGULAR,
    INTRANSITIVE,
    NOUNS,
    PREPOSITIONS,
    TRANSITIVE,
    Verb,
)

ARTICLES: Final = ("lo", "la", "le")  # `the`, by gender
QUALITY_ENDINGS: Final = ("ok", "ak", "ek")  # behind an adjective, by the noun's gender
VERB_ENDINGS: Final = (("on", "an", "en"), ("oni", "ani", "eni"))  # by number, then gender
PLURAL, OBJECT, AGENT, PASSIVE, NEGATION, RELATIVE, BEING = (
    *("ri", "ko", "de", "pa", "na", "zu", "es"),
)

AND, BUT, ALTHOUGH = "he", "mas", "tun"


def _say_verb(out: list[str], verb: Verb, subject: NounPhrase) -> None:
    out += (verb.foreign, VERB_ENDINGS[subject.plural][subject.noun.gender])


def _say_phrase(out: list[str], phrase: NounPhrase) -> None:
    tail = phrase.tail
    if isinstance(tail, Prepositional):
        _say_phrase(out, tail.phrase)
        out.append(tail.preposition[1])
    elif tail is not None:
        if tail.phrase is not None:
            _say_phrase(out, tail.phrase)
            if not tail.inverted:
                out.append(OBJECT)
        _say_verb(out, tail.verb, tail.phrase if tail.inverted and tail.phrase else phrase)
        out.append(RELATIVE)
    out.append(phrase.noun.foreign)
    if phrase.plural:
        out.append(PLURAL)
    if phrase.adjective is not None:
        out += (phrase.adjective.foreign, QUALITY_ENDINGS[phrase.noun.gender])
    row = FOREIGN_PLURAL if phrase.plural else FOREIGN_SINGULAR
    out.append(row[phrase.determiner] or ARTICLES[phrase.noun.gender])


def say_foreign(clause: Clause, *, in_passive: bool) -> list[str]:
    """The clause in the invented language, in the voice of the English one, no full stop."""
    out: list[str] = []
    subject, other = clause.subject, clause.patient
    if in_passive and other is not None:
        subject, other = other, subject
    _say_phrase(out, subject)
    if other is not None:
        _say_phrase(out, other)
        out.append(AGENT if in_passive else OBJECT)
    if clause.quality is not None:
        out += (clause.quality.foreign, QUALITY_ENDINGS[subject.noun.gender])
    if clause.negated:
        out.append(NEGATION)
    if clause.verb is None:
        out += (BEING, VERB_ENDINGS[subject.plural][subject.noun.gender])
    else:
        if in_passive and other is not None:
            out.append(PASSIVE)
        _say_verb(out, clause.verb, subject)
    return out


def vocabulary() -> tuple[str, ...]:
    """Every word of the invented language."""
    entries = (*NOUNS, *TRANSITIVE, *INTRANSITIVE, *ADJECTIVES)
    words = [
        *(PLURAL, OBJECT, AGENT, PASSIVE, NEGATION, RELATIVE, BEING, AND, BUT, ALTHOUGH, "."),
        *ARTICLES,
        *QUALITY_ENDINGS,
        *(ending for row in VERB_ENDINGS for ending in row),
        *(word for row in (FOREIGN_SINGULAR, FOREIGN_PLURAL) for word in row.values() if word),
        *(word for _, word in PREPOSITIONS),
        *(entry.foreign for entry in entries),
    ]
    return tuple(dict.fromkeys(words))


def _draw_part(rng: Random) -> tuple[list[str], list[str]]:
    """One clause in both languages, without full stops."""
    clause = draw_clause(rng)
    in_passive = rng.random() < 0.33
    source = passive(clause) if in_passive else active(clause)
    return source[:-1], say_foreign(clause, in_passive=in_passive)


def example(rng: Random) -> PocketRow:
    """One sentence of one or two clauses with its translation."""
    source, target = _draw_part(rng)
    kind = rng.random()
    if kind < 0.6:
        second, translated = _draw_part(rng)
        if kind < 0.15:
            source, target = [*source, "and", *second], [*target, AND, *translated]
        elif kind < 0.3:
            source, target = [*source, "but", *second], [*target, BUT, *translated]
        # What one says `although` of comes first there, wherever English has it.
        elif kind < 0.45:
            source = ["although", *source, ",", *second]
            target = [*target, ALTHOUGH, *translated]
        else:
            source = [*source, "although", *second]
            target = [*translated, ALTHOUGH, *target]
    return {"source": " ".join([*source, "."]), "target": " ".join([*target, "."])}
