"""Caption corpora from files: the same content whatever the format, interruption or order; refused when unclear."""

import json
import multiprocessing

import numpy as np
import pytest
from corpus_files import SPLITS, built, karpathy, lines, recap, sentences, silent

from forecast.errors import ForecastError
from runner.claim import claimed
from runner.corpora.captions_build import Recipe, build_captions
from runner.corpora.parts import split_of
from runner.corpora.places import PLACES, corpora_known, find_corpus, manifest_of, remember
from runner.corpora.reading import rows_of, units_of
from runner.corpora.reference import scene_ids
from runner.corpora.sources import captions_of
from runner.corpora.tokeniser import Tokeniser, text_hashes

LINES = captions_of("jsonl", scene="image", texts={"captions": "human"})


def build(paths, out, source, *, test_share=0.25, progress=silent, **changes):
    return build_captions(
        paths, Recipe(source, test_share, **{"vocabulary": 300, "longest": 24} | changes), out, progress=progress
    )


def content(folder):
    return {
        path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file() and path.name != ".lock"
    }


def text_of(corpus, row):
    """A text of a built corpus, decoded by the library."""
    from tokenizers import Tokenizer

    tokens, starts = np.load(corpus / "tokens.npy"), np.load(corpus / "starts.npy")
    inner = Tokenizer.from_file(str(corpus / "vocabulary.json"))
    return "".join(inner.id_to_token(int(i)) for i in tokens[starts[row] : starts[row + 1]]).replace("▁", " ").strip()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return built(tmp_path_factory.mktemp("karpathy"), reference=False)


def test_a_karpathy_file_keeps_its_scenes_texts_and_split(corpus):
    manifest, _ = manifest_of(corpus)
    first, split = np.load(corpus / "first.npy"), np.load(corpus / "split.npy")
    stated = [SPLITS[scene % 8 if scene % 3 else 0] for scene in range(160)]

    assert [f"{scene:06d}.jpg" for scene in range(160)] == scene_ids(corpus)
    assert [{"train": 0, "restval": 0, "test": 1, "val": 2}[name] for name in stated] == split.tolist()
    assert [5] * 160 == np.diff(first).tolist()
    assert "human (sentences)" == manifest["text_authors"]
    assert {"train", "test"} <= set(stated)
    assert (stated.count("test"), 800) == (manifest["counts"]["test_scenes"], manifest["counts"]["texts"])
    assert "there is a blue horse" not in text_of(corpus, 0)
    assert sentences(7)[3] == text_of(corpus, 38)


def test_recap_rows_are_scenes_of_an_alt_text_and_a_models_caption(tmp_path):
    manifest = build([recap(tmp_path / "a.parquet")], tmp_path / "out", captions_of("recap"))
    counts = np.diff(np.load(tmp_path / "out" / "first.npy"))

    assert "alt-text (org_caption); model:LLaVA-1.5-LLaMA3-8B (re_caption)" == manifest["text_authors"]
    assert [1 if row % 10 == 3 else 2 for row in range(160)] == counts.tolist()
    assert [0, 1] == np.load(tmp_path / "out" / "field.npy")[:2].tolist()


def test_a_scene_whose_texts_lie_in_several_files_is_one_scene(tmp_path):
    for number in range(3):
        rows = ({"image": f"s{k}", "text": sentences(k)[number]} for k in range(40))
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    build([tmp_path], tmp_path / "out", captions_of("jsonl", scene="image", texts={"text": "human"}))

    assert [3] * 40 == np.diff(np.load(tmp_path / "out" / "first.npy")).tolist()
    assert [f"s{k}" for k in range(40)] == scene_ids(tmp_path / "out")
    assert sentences(7)[1].lower() == text_of(tmp_path / "out", 7 * 3 + 1).replace(" .", ".").replace(" ,", ",")


def test_jsonl_and_parquet_of_equal_content_give_equal_arrays(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    lines(tmp_path / "a.jsonl")
    table = pa.table({"image": [f"s{k}" for k in range(160)], "captions": [sentences(k) for k in range(160)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=33)
    one = build([tmp_path / "a.jsonl"], tmp_path / "one", LINES)
    two = build(
        [tmp_path / "a.parquet"], tmp_path / "two", captions_of("parquet", scene="image", texts={"captions": "human"})
    )

    assert one["files"] == two["files"]
    assert one["build"] != two["build"]


class Killed(Exception):
    pass


def test_an_interrupted_build_goes_on_and_ends_with_the_same_bytes(tmp_path):
    files = [lines(tmp_path / f"{k}.jsonl", 40, first=40 * k) for k in range(4)]
    read = []

    def kill_after_two(what, done, total):
        if what == "tokenise" and done == 2:
            raise Killed

    def note(what, done, total):
        if what == "tokenise":
            read.append(done)

    build(files, tmp_path / "whole", LINES)
    with pytest.raises(Killed):
        build(files, tmp_path / "out", LINES, progress=kill_after_two)
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "parts").glob("*-00000[01].npz")}
    half = tmp_path / "out" / "parts" / ".half.npz.tmp"
    half.write_bytes(b"half")
    damaged = sorted(kept)[1]
    damaged.write_bytes(damaged.read_bytes()[:100])

    assert not (tmp_path / "out" / "manifest.json").exists()
    with pytest.raises(Killed):
        build(files, tmp_path / "out", LINES, progress=kill_after_two)
    assert kept[sorted(kept)[0]] == sorted(kept)[0].stat().st_mtime_ns
    build(files, tmp_path / "out", LINES, progress=note)
    assert content(tmp_path / "whole") == content(tmp_path / "out")
    assert not half.exists()
    assert [1, 2, 3, 4] == read


def test_a_finished_corpus_is_not_built_again_but_a_damaged_one_is(tmp_path):
    source = lines(tmp_path / "a.jsonl", 40)
    build([source], tmp_path / "out", LINES)
    before = content(tmp_path / "out")
    stages = []
    build([source], tmp_path / "out", LINES, progress=lambda what, done, total: stages.append(what))

    assert {"hash"} == set(stages)
    (tmp_path / "out" / "tokens.npy").write_bytes(b"damaged")
    build([source], tmp_path / "out", LINES)
    assert before == content(tmp_path / "out")


def test_another_corpus_is_never_written_over(tmp_path):
    build([lines(tmp_path / "a.jsonl", 40)], tmp_path / "out", LINES)
    before = content(tmp_path / "out")
    with pytest.raises(ForecastError, match="holds another corpus"):
        build([lines(tmp_path / "b.jsonl", 41)], tmp_path / "out", LINES)

    assert before == content(tmp_path / "out")


def test_a_second_build_in_the_same_folder_is_refused(tmp_path):
    source = lines(tmp_path / "a.jsonl", 40)
    with claimed(tmp_path / "out" / ".lock") as ours:
        assert ours
        with pytest.raises(ForecastError, match="another process is building"):
            build([source], tmp_path / "out", LINES)
    build([source], tmp_path / "out", LINES)


def _try_to_build(source, out, start, results):
    start.wait()
    try:
        results.put(build([source], out, LINES)["build"])
    except ForecastError as error:
        results.put(str(error))


def test_builds_that_begin_at_once_leave_one_whole_corpus(tmp_path):
    source = lines(tmp_path / "a.jsonl", 120)
    processes = multiprocessing.get_context("spawn")
    start, results = processes.Event(), processes.Queue()
    workers = [
        processes.Process(target=_try_to_build, args=(source, tmp_path / "out", start, results)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    start.set()
    said = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    build([source], tmp_path / "alone", LINES)

    assert manifest_of(tmp_path / "alone")[0]["build"] in said
    assert all("another process" in word or len(word) == 64 for word in said)
    assert content(tmp_path / "alone") == content(tmp_path / "out")


def test_the_split_follows_from_a_scenes_id_alone():
    keys = np.random.default_rng(0).integers(0, 2**64, (20_000, 2), dtype=np.uint64)

    assert 0.1 == pytest.approx(split_of(keys, 0.1).mean(), abs=0.01)
    np.testing.assert_array_equal(split_of(keys, 0.1)[::-1], split_of(keys[::-1], 0.1))
    assert set(np.flatnonzero(split_of(keys, 0.1))) <= set(np.flatnonzero(split_of(keys, 0.2)))


def test_test_texts_that_stand_in_the_training_texts_are_counted(tmp_path):
    rows = [
        {"image": "a", "text": ["A red dog.", "one dog, red"], "part": "train"},
        {"image": "b", "text": ["a  RED dog.", "no such text"], "part": "test"},
        {"image": "c", "text": ["never seen", "nor this"], "part": "test"},
        {"image": "d", "text": ["one dog, red"], "part": "val"},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = captions_of("jsonl", scene="image", texts={"text": "human"}, split="part")
    counts = build([tmp_path / "a.jsonl"], tmp_path / "out", source, test_share=None)["counts"]

    assert {"test_texts": 4, "test_texts_in_training": 1, "test_scenes_with_one": 1} == counts["overlap"]
    assert (5, 7) == (counts["unique_texts"], counts["texts"])


def test_texts_that_differ_in_case_or_space_only_share_a_hash_and_no_others():
    same, also, other = text_hashes(["A  red dog", "a red\tDOG", "a red dogs"])

    assert same == also
    assert same != other


def test_ids_leave_zero_to_padding_whatever_the_vocabulary():
    from tokenizers import Tokenizer, models

    own = Tokenizer(models.WordLevel({"red": 0, "dog": 1, "?": 2}, unk_token="?")).to_str()
    padded = Tokenizer(models.WordLevel({"[PAD]": 0, "red": 1, "?": 2}, unk_token="?")).to_str()

    assert [1] == Tokeniser(own, longest=4).encode(["red"])[0].tolist()
    assert [1] == Tokeniser(padded, longest=4).encode(["red"])[0].tolist()
    assert (4, 3) == (Tokeniser(own, longest=4).vocabulary, Tokeniser(padded, longest=4).vocabulary)
    with pytest.raises(ForecastError, match="not a vocabulary"):
        Tokeniser("{}", longest=4)


def test_a_vocabulary_made_elsewhere_is_used_and_its_hash_recorded(tmp_path, corpus):
    source = lines(tmp_path / "a.jsonl", 40)
    manifest = build([source], tmp_path / "out", LINES, vocabulary=corpus / "vocabulary.json")

    assert (corpus / "vocabulary.json").read_bytes() == (tmp_path / "out" / "vocabulary.json").read_bytes()
    assert manifest["vocabulary"] == f"sha256 {manifest['files']['vocabulary.json']}"


def test_a_large_file_is_read_in_units_that_lose_and_double_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("runner.corpora.reading.JSONL_BYTES", 700)
    monkeypatch.setattr("runner.corpora.reading.IMAGES", 30)
    monkeypatch.setattr("runner.corpora.reading.PARQUET_ROWS", 60)
    for source, path in (
        (LINES, lines(tmp_path / "a.jsonl", 100)),
        (captions_of("karpathy"), karpathy(tmp_path / "b.json", 100)),
        (captions_of("recap"), recap(tmp_path / "c.parquet", 170)),
    ):
        units = units_of(path, source)
        scenes = [scene for unit in units for scene in dict.fromkeys(rows_of(unit, source).scenes)]

        assert len(units) > 1
        assert len(scenes) == len(set(scenes)) == (170 if path.suffix == ".parquet" else 100)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"image": "a", "captions": [3]}', "3 where a text was expected"),
        ('{"captions": ["x"]}', "no field 'image'"),
        ('{"image": null, "captions": ["x"]}', "no scene id"),
        ('{"image": "a\\nb", "captions": ["x"]}', "line break"),
        ("[1]", "must be an object"),
        ("{", "not a line of JSON"),
        ('{"image": "a", "caption": ["x"]}', "no text was found"),
    ],
)
def test_rows_that_are_not_as_the_source_says_are_refused(tmp_path, line, words):
    (tmp_path / "a.jsonl").write_text(line + "\n")
    with pytest.raises(ForecastError, match=words):
        build([tmp_path / "a.jsonl"], tmp_path / "out", LINES, vocabulary=100)


def test_files_that_are_no_corpus_are_refused_by_name(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no parquet")
    (tmp_path / "b.json").write_text('{"pictures": []}')
    (tmp_path / "c.json").write_text("{")

    with pytest.raises(ForecastError, match=r"a\.parquet is not Parquet"):
        build([tmp_path / "a.parquet"], tmp_path / "out", captions_of("recap"))
    with pytest.raises(ForecastError, match="no list 'images'"):
        build([tmp_path / "b.json"], tmp_path / "out", captions_of("karpathy"), test_share=None)
    with pytest.raises(ForecastError, match=r"c\.json is not JSON"):
        build([tmp_path / "c.json"], tmp_path / "out", captions_of("karpathy"), test_share=None)
    with pytest.raises(ForecastError, match="does not exist"):
        build([tmp_path / "d.jsonl"], tmp_path / "out", LINES)
    with pytest.raises(ForecastError, match="no column 'image'"):
        build(
            [recap(tmp_path / "e.parquet", 10)],
            tmp_path / "out",
            captions_of("parquet", scene="image", texts={"x": "human"}),
        )


def test_scenes_in_two_splits_are_refused(tmp_path):
    rows = [{"image": "a", "text": "x y", "part": part} for part in ("train", "test")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = captions_of("jsonl", scene="image", texts={"text": "human"}, split="part")

    with pytest.raises(ForecastError, match="two splits"):
        build([tmp_path / "a.jsonl"], tmp_path / "out", source, test_share=None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"test_share": None}, "no scene would be held out"),
        ({"test_share": 1.5}, "must lie in"),
        ({"vocabulary": 10}, "vocabulary has"),
        ({"longest": 1}, "text keeps"),
    ],
)
def test_recipes_that_make_no_corpus_are_refused(changes, words):
    with pytest.raises(ForecastError, match=words):
        Recipe(**{"source": LINES, "test_share": 0.1} | changes)


def test_who_wrote_the_texts_must_be_said_and_be_of_the_known_kinds():
    with pytest.raises(ForecastError, match="who wrote them"):
        captions_of("jsonl", scene="image")
    with pytest.raises(ValueError, match="human, alt-text, procedure or model:NAME"):
        captions_of("jsonl", scene="image", texts={"text": "me"})
    assert "model:Llama (text)" == captions_of("jsonl", scene="i", texts={"text": "model:Llama"}).authors


def test_a_corpus_is_found_by_its_hash_and_never_by_a_stale_path(tmp_path, monkeypatch, corpus):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv(PLACES, raising=False)
    digest = manifest_of(corpus)[1]

    with pytest.raises(ForecastError, match="platocast world add"):
        find_corpus(digest)
    assert digest == remember(corpus)
    assert corpus.resolve() == find_corpus(digest)
    (tmp_path / "share" / "platocast" / "corpora" / digest).write_text(str(tmp_path))
    with pytest.raises(ForecastError, match="no corpus with the hash"):
        find_corpus(digest)
    monkeypatch.setenv(PLACES, str(corpus.parent))
    assert [(corpus, digest)] == corpora_known()


def test_folders_without_a_corpus_are_refused(tmp_path):
    with pytest.raises(ForecastError, match="no built corpus"):
        manifest_of(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ForecastError, match="not a corpus's manifest"):
        manifest_of(tmp_path)
    (tmp_path / "manifest.json").write_text('{"world": "glyphs"}')
    with pytest.raises(ForecastError, match="'glyphs', not a corpus"):
        manifest_of(tmp_path)
