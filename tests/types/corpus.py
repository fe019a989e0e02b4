"""All models of the corpus; each module says what it holds."""
import arithmetic

MODULES = (arithmetic,)


def cases():
    for m in MODULES:
        yield from m.cases()
