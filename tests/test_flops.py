"""The FLOPs that a run reports against those that torch counts on a whole training step."""

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from runner.group import Group
from runner.objectives import Jepa
from runner.settings import complete_settings
from runner.sides import image_side, text_side
from runner.streams import Streams
from runner.worlds.glyphs import load_glyphs

DESIGNS = [
    {"encoder": "transformer"},
    {"encoder": "ngram_bag", "view.length": 24},
    {"modality": "image"},
]


@pytest.mark.parametrize("changes", DESIGNS, ids=lambda changes: "-".join(str(v) for v in changes.values()))
def test_the_reported_flops_are_those_of_a_training_step_within_three_percent(changes):
    full = complete_settings({"good_view_fraction": 0.5, "n_samples": 128} | changes)
    make = text_side if full["modality"] == "text" else image_side
    side = make(load_glyphs(), full, Streams.of(1, full))
    objective = Jepa(
        weight=0.1, directions=full["sigreg.directions"], generator=torch.Generator().manual_seed(1), group=Group()
    )
    with FlopCounterMode(display=False) as counter:
        objective(side.encoder.train()(*side.collate(side.draw(128))), 128)[0].backward()

    assert pytest.approx(counter.get_total_flops(), rel=0.03) == side.training_flops(128)
