"""All cases of this suite; each module says what it holds."""
import contrib
import control
import masks
import microsoft
import old_opsets
import refusals
import structure

MODULES = (contrib, control, masks, microsoft, old_opsets, structure, refusals)


def cases():
    for m in MODULES:
        yield from m.cases()
