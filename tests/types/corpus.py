"""All models of the corpus; each module says what it holds."""
import arithmetic
import products

MODULES = (arithmetic, products)


def cases():
    for m in MODULES:
        yield from m.cases()
