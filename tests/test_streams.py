"""The random streams of a run."""

import numpy as np

from runner.streams import STREAMS, Streams


def test_streams_are_the_first_children_of_the_runs_seed():
    children = np.random.SeedSequence(7).spawn(4)
    streams = Streams.of(7, {"seed.streams": "separate"})

    assert [int(child.generate_state(1, np.uint64)[0] >> 1) for child in children] == list(streams.seeds.values())
    assert list(STREAMS) == list(streams.seeds)
    assert 4 == len(set(streams.seeds.values()))


def test_a_stream_that_is_held_fixed_is_the_same_for_every_seed_and_the_others_are_not():
    one, two = (Streams.of(seed, {"seed.init": 5}).seeds for seed in (1, 2))

    assert one["init"] == two["init"]
    assert all(one[name] != two[name] for name in ("order", "slices"))


def test_without_a_stream_of_their_own_views_are_drawn_from_the_order():
    joint, separate = Streams.of(1, {}), Streams.of(1, {"seed.streams": "separate"})
    order = joint.order_rng()

    assert joint.views_rng(order) is order
    assert joint.seeds["views"] == joint.seeds["order"]
    assert separate.views_rng(order) is not order
