"""The words of the pocket world: an English-like side and an invented one.

Every content word carries its translation. Nouns have a gender in the invented language, which
articles, adjectives and verbs there agree with, so that no word can be translated alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Noun(NamedTuple):
    """A noun in both numbers, its translation and its gender (0, 1 or 2) there."""

    singular: str
    plural: str
    foreign: str
    gender: int


class Verb(NamedTuple):
    """A verb: `chases` (one does), `chase` (many do), `chased` (by someone), its translation."""

    singular: str
    plural: str
    participle: str
    foreign: str


class Adjective(NamedTuple):
    """An adjective, what contradicts it, and its translation."""

    word: str
    opposite: str
    foreign: str


NOUNS: Final = tuple(
    Noun(*row, gender=number % 3)
    for number, row in enumerate(
        (
            ("dog", "dogs", "kavo"),
            ("cat", "cats", "misu"),
            ("boy", "boys", "tarel"),
            ("girl", "girls", "lumi"),
            ("teacher", "teachers", "odren"),
            ("doctor", "doctors", "vesk"),
            ("farmer", "farmers", "brunot"),
            ("king", "kings", "zarim"),
            ("queen", "queens", "zarilu"),
            ("sailor", "sailors", "peltan"),
            ("painter", "painters", "ikor"),
            ("singer", "singers", "nadis"),
        )
    )
)

# What opinions are about; only the sentiment sentences speak of these.
TOPICS: Final = (
    ("film", "films"),
    ("book", "books"),
    ("song", "songs"),
    ("play", "plays"),
    ("trip", "trips"),
    ("show", "shows"),
)

TRANSITIVE: Final = (
    Verb("chases", "chase", "chased", "rokat"),
    Verb("follows", "follow", "followed", "semit"),
    Verb("helps", "help", "helped", "dulan"),
    Verb("pushes", "push", "pushed", "trak"),
    Verb("watches", "watch", "watched", "ovil"),
    Verb("calls", "call", "called", "henat"),
    Verb("greets", "greet", "greeted", "salor"),
    Verb("visits", "visit", "visited", "botim"),
)

INTRANSITIVE: Final = (
    Verb("sleeps", "sleep", "", "numu"),
    Verb("runs", "run", "", "jarat"),
    Verb("laughs", "laugh", "", "hihal"),
    Verb("waits", "wait", "", "stolu"),
    Verb("sings", "sing", "", "nadat"),
    Verb("dances", "dance", "", "palit"),
)

ADJECTIVES: Final = tuple(
    Adjective(*row)
    for row in (
        ("big", "small", "gor"),
        ("small", "big", "pim"),
        ("old", "young", "senek"),
        ("young", "old", "junek"),
        ("tall", "short", "altun"),
        ("short", "tall", "kortun"),
        ("rich", "poor", "oprem"),
        ("poor", "rich", "miskel"),
    )
)

PREPOSITIONS: Final = (("near", "ves"), ("behind", "dor"), ("beside", "lan"), ("with", "kom"))

SINGULAR_DETERMINERS: Final = ("the", "a", "this", "that", "every")
PLURAL_DETERMINERS: Final = ("the", "many", "these", "those", "two")
# The same row as above, in the invented language; `the` agrees in gender there, see translation.
FOREIGN_SINGULAR: Final[dict[str, str]] = dict(
    zip(SINGULAR_DETERMINERS, ("", "un", "ti", "to", "omi"), strict=True)
)
FOREIGN_PLURAL: Final[dict[str, str]] = dict(
    zip(PLURAL_DETERMINERS, ("", "polu", "ti", "to", "dua"), strict=True)
)

PRAISE: Final = ("good", "great", "lovely", "clever")
BLAME: Final = ("bad", "awful", "dull", "weak")
LIKING: Final = (("likes", "like"), ("enjoys", "enjoy"))
DISLIKING: Final = (("hates", "hate"), ("avoids", "avoid"))

FUNCTION_WORDS: Final = (
    *("is", "are", "does", "do", "not", "never", "hardly", "very", "by", "who", "but", "although"),
    *("and", "it", "they", ",", "."),
)


def _lemmas() -> dict[str, int]:
    """A number for every content word, the same for all forms of it."""
    forms: list[tuple[str, ...]] = [noun[:2] for noun in NOUNS]
    forms += list(TOPICS)
    forms += [verb[:3] for verb in TRANSITIVE + INTRANSITIVE]
    forms += [(adjective.word,) for adjective in ADJECTIVES]
    forms += [(word,) for word in PRAISE + BLAME]
    forms += list(LIKING + DISLIKING)
    return {word: number for number, row in enumerate(forms) for word in row if word}


LEMMAS: Final = _lemmas()

ENDINGS: Final = ("s", "es", "d", "ed")

ENGLISH: Final = tuple(
    dict.fromkeys(
        (
            *FUNCTION_WORDS,
            *SINGULAR_DETERMINERS,
            *PLURAL_DETERMINERS,
            *(word for word, _ in PREPOSITIONS),
            *LEMMAS,
        )
    )
)

# Words without their endings: what the BERT reads, so that all forms of a word have one stem.
STEMS: Final = tuple(
    word
    for word in ENGLISH
    if not any(word.removesuffix(ending) in ENGLISH for ending in ENDINGS if word.endswith(ending))
)
