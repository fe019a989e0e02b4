"""All cases of this suite; each module's docstring describes its cases."""
import attention_forms
import bounded
import bounded_layers
import contrib
import control
import decoder
import detection
import expert_forms
import experts
import forms
import found
import integer_products
import machine_learning
import masks
import microsoft
import narrow_experts
import old_opsets
import refusals
import structure

MODULES = (contrib, control, decoder, machine_learning, masks, microsoft, old_opsets, structure, bounded, bounded_layers, detection, experts,
           narrow_experts, expert_forms, attention_forms, forms, found, integer_products, refusals)


def cases():
    for m in MODULES:
        yield from m.cases()
